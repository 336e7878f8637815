"""Content of source packs: parts as bytes <-> values."""

from __future__ import annotations

from typing import Final

from affidavit.ingest.v1 import ingest_events_pb2 as pb
from google.protobuf.message import DecodeError

from services.ingest.domain.documents import Manifest
from services.ingest.domain.normalize import Normalized
from services.ingest.domain.refusals import Refused

MANIFEST: Final = "manifest"
RAW: Final = "raw"
NORMALIZED: Final = "normalized"
SECRET: Final = "secret"  # noqa: S105  (name of a part, no secret)
SECRET_BYTES: Final = 32
_KINDS: Final = {
    "paragraph": pb.BLOCK_KIND_PARAGRAPH,
    "heading": pb.BLOCK_KIND_HEADING,
    "code": pb.BLOCK_KIND_CODE,
    "table": pb.BLOCK_KIND_TABLE,
    "list": pb.BLOCK_KIND_LIST,
    "record": pb.BLOCK_KIND_RECORD,
}


def manifest_bytes(manifest: Manifest) -> bytes:
    """Write a manifest."""
    message = pb.SourceManifest(
        source_id=manifest.source_id,
        uri=manifest.uri,
        media_type=manifest.media_type,
        charset=manifest.charset,
        title=manifest.title,
        metadata=dict(manifest.metadata),
        source_domain=manifest.source_domain,
        content_hash=manifest.content_hash,
        size_bytes=manifest.size_bytes,
        notices=manifest.notices,
        links=manifest.links,
    )
    return message.SerializeToString(deterministic=True)


def manifest_value(data: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        Refused: When the bytes are none.
    """
    try:
        message = pb.SourceManifest.FromString(data)
    except DecodeError as error:
        raise Refused("the source pack's manifest can't be read") from error
    return Manifest(
        source_id=message.source_id,
        uri=message.uri,
        media_type=message.media_type,
        charset=message.charset,
        title=message.title,
        metadata=tuple(sorted(message.metadata.items())),
        source_domain=message.source_domain,
        content_hash=message.content_hash,
        size_bytes=message.size_bytes,
        notices=tuple(message.notices),
        links=tuple(message.links),
    )


def normalized_bytes(document: Normalized, title: str) -> bytes:
    """Write a normalised document.

    Args:
        document: As the normaliser read it.
        title: As resolved: the caller's wins over the document's own.

    Returns:
        Part "normalized" of a source pack.
    """
    message = pb.NormalizedDocument(
        text=document.text,
        headings=document.headings,
        charset=document.charset,
        title=title,
        runs=[
            pb.TextRun(
                text_start=run.text_start,
                text_end=run.text_end,
                char_start=run.char_start,
                char_end=run.char_end,
                byte_start=run.byte_start,
                byte_end=run.byte_end,
                verbatim=run.verbatim,
            )
            for run in document.runs
        ],
        blocks=[
            pb.TextBlock(
                kind=_KINDS[block.kind.value],
                text_start=block.text_start,
                text_end=block.text_end,
                heading_path=block.heading_path,
                context=block.context,
            )
            for block in document.blocks
        ],
    )
    return message.SerializeToString(deterministic=True)
