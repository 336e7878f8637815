"""Protobuf <-> domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from affidavit.chunker.v1 import chunker_events_pb2 as pb
from affidavit.chunker.v1 import chunker_service_pb2 as service_pb
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from google.protobuf.message import DecodeError, Message

from services.chunker.domain.chunking import Sizes, effective_sizes
from services.chunker.domain.document import Block, BlockKind, Chunk, Description, NormalizedText, RevisionAddress, Run

_DEFAULT_CHARSET = "utf-8"
_KINDS = {
    ingest_pb.BLOCK_KIND_PARAGRAPH: BlockKind.PARAGRAPH,
    ingest_pb.BLOCK_KIND_HEADING: BlockKind.HEADING,
    ingest_pb.BLOCK_KIND_CODE: BlockKind.CODE,
    ingest_pb.BLOCK_KIND_TABLE: BlockKind.TABLE,
    ingest_pb.BLOCK_KIND_LIST: BlockKind.LIST,
    ingest_pb.BLOCK_KIND_RECORD: BlockKind.RECORD,
}


def source(parts: Mapping[str, bytes]) -> tuple[NormalizedText, Description]:
    """Read what chunking needs from a source pack.

    Args:
        parts: Parts by name; "normalized" and "manifest" are used.

    Returns:
        The text and what travels with it.

    Raises:
        ValueError: When a part is missing or isn't what its name says.
    """
    try:
        document = ingest_pb.NormalizedDocument.FromString(parts["normalized"])
        manifest = ingest_pb.SourceManifest.FromString(parts["manifest"])
    except KeyError as error:
        raise ValueError(f"the source pack has no part {error}") from error
    except DecodeError as error:
        raise ValueError("a part of the source pack is no message of its kind") from error
    description = Description(
        title=document.title or manifest.title,
        headings=tuple(document.headings),
        media_type=manifest.media_type,
        source_id=manifest.source_id,
        source_domain=manifest.source_domain,
        uri=manifest.uri,
        metadata=tuple(sorted(manifest.metadata.items())),
        notices=tuple(manifest.notices),
        links=tuple(manifest.links),
    )
    return normalized(document), description


def normalized(document: ingest_pb.NormalizedDocument) -> NormalizedText:
    """Read a normalised document.

    Args:
        document: As ingest writes it.

    Returns:
        The text; blocks of unknown kind count as paragraphs.

    Raises:
        ValueError: When its blocks or runs contradict its text.
    """
    return NormalizedText(
        text=document.text,
        runs=tuple(_run(run) for run in document.runs),
        blocks=tuple(
            Block(
                _KINDS.get(block.kind, BlockKind.PARAGRAPH),
                block.text_start,
                block.text_end,
                tuple(block.heading_path),
                block.context,
            )
            for block in document.blocks
        ),
        charset=document.charset or _DEFAULT_CHARSET,
    )


def previewed(document: ingest_pb.NormalizedDocument) -> NormalizedText:
    """Read a document of a preview; where it has no runs, its text is the original.

    Raises:
        ValueError: When blocks or runs contradict the text, or the charset can't encode it.
    """
    found = normalized(document)
    if found.runs or not found.text:
        return found
    try:
        size_bytes = len(found.text.encode(found.charset))
    except (LookupError, UnicodeEncodeError) as error:
        raise ValueError(f"charset {found.charset!r} can't encode the text") from error
    size_chars = len(found.text)
    return replace(found, runs=(Run(0, size_chars, 0, size_chars, 0, size_bytes, verbatim=True),))


def sizes(settings: settings_pb2.ChunkSettings, *, max_input_chars: int) -> Sizes:
    """Read chunk settings.

    Args:
        settings: Absent fields mean the defaults.
        max_input_chars: Of the embedding provider, 0 for no limit.

    Returns:
        The sizes that hold.

    Raises:
        ValueError: When the size is out of range.
    """
    return effective_sizes(
        settings.size_chars if settings.HasField("size_chars") else None,
        settings.overlap_chars if settings.HasField("overlap_chars") else None,
        max_input_chars=max_input_chars,
    )


def max_input_chars(configured: Message | None) -> int:
    """Bound that a crate's embedding provider sets.

    Args:
        configured: The crate's last CrateConfigured, None when there is none.

    Returns:
        Code points of one input, 0 for no bound.
    """
    if not isinstance(configured, ingest_pb.CrateConfigured):
        return 0
    bounds = (
        provider.max_input_chars
        for provider in configured.providers
        if provider.role == settings_pb2.PROVIDER_ROLE_EMBEDDING and provider.enabled and provider.max_input_chars
    )
    return min(bounds, default=0)


def chunk_set(
    chunks: Sequence[Chunk], document: NormalizedText, description: Description, notices: Sequence[str]
) -> bytes:
    """Write part "chunks" of a chunks pack.

    Args:
        chunks: In order.
        document: What they were cut from.
        description: What travels with them.
        notices: Of chunking; those of ingest come first.

    Returns:
        Encoded ChunkSet.
    """
    message = pb.ChunkSet(
        chunks=(_chunk(chunk) for chunk in chunks),
        charset=document.charset,
        title=description.title,
        headings=description.headings,
        media_type=description.media_type,
        source_id=description.source_id,
        source_domain=description.source_domain,
        uri=description.uri,
        metadata=dict(description.metadata),
        notices=(*description.notices, *notices),
        links=description.links,
    )
    return message.SerializeToString(deterministic=True)


def chunked(ingested: ingest_pb.DocumentIngested, count: int, pack: tuple[bytes, int] | None) -> pb.DocumentChunked:
    """Build the fact that a revision was cut.

    Args:
        ingested: The fact that it follows from.
        count: Chunks.
        pack: Id and size of the chunks pack, None when there is no chunk.

    Returns:
        The event's body.
    """
    return pb.DocumentChunked(
        document_id=ingested.document_id,
        revision=ingested.revision,
        settings_digest=ingested.settings_digest,
        chunks=None if pack is None else envelope_pb2.PackRef(id=pack[0], size_bytes=pack[1]),
        chunk_count=count,
        form=ingested.form,
    )


def address(crate_id: str, message: ingest_pb.DocumentIngested | ingest_pb.DocumentErased) -> RevisionAddress:
    """The revision that an event is about."""
    return RevisionAddress(crate_id, message.document_id, message.revision)


def preview(chunks: Sequence[Chunk], notices: Sequence[str]) -> service_pb.PreviewResponse:
    """Build the reply of a preview."""
    return service_pb.PreviewResponse(chunks=(_chunk(chunk) for chunk in chunks), notices=notices)


def _run(run: ingest_pb.TextRun) -> Run:
    return Run(
        run.text_start, run.text_end, run.char_start, run.char_end, run.byte_start, run.byte_end, verbatim=run.verbatim
    )


def _chunk(chunk: Chunk) -> pb.Chunk:
    return pb.Chunk(
        ordinal=chunk.ordinal,
        text=chunk.text,
        heading_path=chunk.heading_path,
        context=chunk.context,
        runs=(
            ingest_pb.TextRun(
                text_start=run.text_start,
                text_end=run.text_end,
                char_start=run.char_start,
                char_end=run.char_end,
                byte_start=run.byte_start,
                byte_end=run.byte_end,
                verbatim=run.verbatim,
            )
            for run in chunk.runs
        ),
        overlap_chars=chunk.overlap_chars,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        byte_start=chunk.byte_start,
        byte_end=chunk.byte_end,
    )
