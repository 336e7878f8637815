"""Messages in, values out, and back."""

from __future__ import annotations

import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as pb
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2

from services.chunker import codec
from services.chunker.adapters.cutter_process import cut
from services.chunker.domain.chunking import Sizes, chunk
from services.chunker.domain.document import Block, BlockKind, NormalizedText, RevisionAddress, Run


def document() -> ingest_pb.NormalizedDocument:
    return ingest_pb.NormalizedDocument(
        text="id;größe\n1;2\n",
        runs=[
            ingest_pb.TextRun(text_end=9, char_end=9, byte_end=11, verbatim=True),
            ingest_pb.TextRun(text_start=9, text_end=13, char_start=9, char_end=14, byte_start=11, byte_end=16),
        ],
        blocks=[
            ingest_pb.TextBlock(kind=ingest_pb.BLOCK_KIND_HEADING, text_end=9, heading_path=["T"]),
            ingest_pb.TextBlock(
                kind=ingest_pb.BLOCK_KIND_RECORD, text_start=9, text_end=13, heading_path=["T"], context="id;größe"
            ),
        ],
        headings=["T"],
        charset="utf-8",
        title="Sizes",
    )


def manifest() -> ingest_pb.SourceManifest:
    return ingest_pb.SourceManifest(
        source_id="a/b.csv",
        uri="https://example.org/b.csv",
        media_type="text/csv",
        charset="utf-8",
        title="ignored",
        metadata={"b": "2", "a": "1"},
        source_domain="example.org",
        notices=["1 NUL character replaced at byte 27"],
        links=["old.csv", "https://example.org/c.csv"],
    )


def parts() -> dict[str, bytes]:
    return {"normalized": document().SerializeToString(), "manifest": manifest().SerializeToString(), "raw": b"..."}


def test_a_source_pack_is_read() -> None:
    text, description = codec.source(parts())
    assert text == NormalizedText(
        "id;größe\n1;2\n",
        (Run(0, 9, 0, 9, 0, 11, True), Run(9, 13, 9, 14, 11, 16, False)),
        (Block(BlockKind.HEADING, 0, 9, ("T",)), Block(BlockKind.RECORD, 9, 13, ("T",), "id;größe")),
    )
    assert (description.title, description.headings, description.media_type) == ("Sizes", ("T",), "text/csv")
    assert description.metadata == (("a", "1"), ("b", "2"))


def test_the_manifest_s_title_stands_in() -> None:
    untitled = document()
    untitled.title = ""
    assert codec.source(parts() | {"normalized": untitled.SerializeToString()})[1].title == "ignored"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"normalized": b"\xff"}, "no message of its kind"),
        ({"manifest": b"\xff"}, "no message of its kind"),
        (
            {
                "normalized": ingest_pb.NormalizedDocument(
                    text="a", runs=[ingest_pb.TextRun(text_end=9)]
                ).SerializeToString()
            },
            "the runs end at 9",
        ),
    ],
)
def test_a_damaged_source_pack_is_refused(changed: dict[str, bytes], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        codec.source(parts() | changed)


@pytest.mark.parametrize("missing", ["normalized", "manifest"])
def test_a_missing_part_is_named(missing: str) -> None:
    with pytest.raises(ValueError, match=f"no part '{missing}'"):
        codec.source({name: part for name, part in parts().items() if name != missing})


def test_unknown_kinds_are_paragraphs_and_no_charset_is_utf_8() -> None:
    text = codec.normalized(ingest_pb.NormalizedDocument(text="a", blocks=[ingest_pb.TextBlock(text_end=1)]))
    assert text.blocks == (Block(BlockKind.PARAGRAPH, 0, 1),)
    assert text.charset == "utf-8"


def test_a_set_of_chunks_carries_everything() -> None:
    count, encoded = cut(parts(), Sizes(50, 25, ("said",)))
    found = pb.ChunkSet.FromString(encoded)
    assert count == len(found.chunks) == 1
    assert found.chunks[0] == pb.Chunk(
        ordinal=0,
        text="id;größe\n1;2\n",
        heading_path=["T"],
        context="id;größe",
        runs=document().runs,
        char_start=0,
        char_end=14,
        byte_start=0,
        byte_end=16,
    )
    assert (found.charset, found.title, found.media_type) == ("utf-8", "Sizes", "text/csv")
    assert (found.source_id, found.source_domain, found.uri) == ("a/b.csv", "example.org", "https://example.org/b.csv")
    assert dict(found.metadata) == {"a": "1", "b": "2"}
    assert list(found.headings) == ["T"]
    assert list(found.notices) == ["1 NUL character replaced at byte 27", "said"]
    assert list(found.links) == ["old.csv", "https://example.org/c.csv"]


def test_no_chunk_is_no_set() -> None:
    empty = ingest_pb.NormalizedDocument(text=" \n", runs=[ingest_pb.TextRun(text_end=2, char_end=2, byte_end=2)])
    assert cut(parts() | {"normalized": empty.SerializeToString()}, Sizes(50, 0)) == (0, b"")


def test_a_preview_without_runs_is_its_own_original() -> None:
    text = codec.previewed(ingest_pb.NormalizedDocument(text="größe", charset="utf-8"))
    assert text.runs == (Run(0, 5, 0, 5, 0, 7, verbatim=True),)
    assert codec.previewed(document()).runs == codec.normalized(document()).runs
    assert codec.previewed(ingest_pb.NormalizedDocument()).runs == ()


@pytest.mark.parametrize("charset", ["ascii", "no-such"])
def test_a_preview_that_its_charset_can_not_encode_is_refused(charset: str) -> None:
    with pytest.raises(ValueError, match=f"charset '{charset}' can't encode"):
        codec.previewed(ingest_pb.NormalizedDocument(text="größe", charset=charset))


def test_sizes_are_read_with_their_defaults() -> None:
    assert codec.sizes(settings_pb2.ChunkSettings(), max_input_chars=0) == Sizes(1_000, 200)
    assert codec.sizes(settings_pb2.ChunkSettings(size_chars=100, overlap_chars=0), max_input_chars=0) == Sizes(100, 0)
    assert codec.sizes(settings_pb2.ChunkSettings(), max_input_chars=300).size_chars == 300


def provider(role: settings_pb2.ProviderRole.ValueType, chars: int, *, enabled: bool = True) -> settings_pb2.Provider:
    return settings_pb2.Provider(role=role, enabled=enabled, max_input_chars=chars)


def test_only_an_enabled_embedding_provider_bounds_the_size() -> None:
    embedding, answer = settings_pb2.PROVIDER_ROLE_EMBEDDING, settings_pb2.PROVIDER_ROLE_ANSWER
    configured = ingest_pb.CrateConfigured(
        providers=[
            provider(answer, 10),
            provider(embedding, 20, enabled=False),
            provider(embedding, 0),
            provider(embedding, 400),
        ]
    )
    assert codec.max_input_chars(configured) == 400
    assert codec.max_input_chars(ingest_pb.CrateConfigured()) == 0
    assert codec.max_input_chars(None) == 0


def test_the_event_names_the_pack_only_where_there_is_one() -> None:
    ingested = ingest_pb.DocumentIngested(
        document_id="d" * 32, revision=3, settings_digest="s", form=envelope_pb2.FORM_STRUCTURED
    )
    full = codec.chunked(ingested, 2, (b"i" * 32, 99))
    assert full == pb.DocumentChunked(
        document_id="d" * 32,
        revision=3,
        settings_digest="s",
        chunks=envelope_pb2.PackRef(id=b"i" * 32, size_bytes=99),
        chunk_count=2,
        form=envelope_pb2.FORM_STRUCTURED,
    )
    assert not codec.chunked(ingested, 0, None).HasField("chunks")


def test_events_name_their_revision() -> None:
    assert codec.address("main", ingest_pb.DocumentErased(document_id="d", revision=2)) == RevisionAddress(
        "main", "d", 2
    )


def test_a_preview_shows_chunks_and_notices() -> None:
    chunks = chunk(NormalizedText("some text"), size_chars=50, overlap_chars=0)
    reply = codec.preview(chunks, ("said",))
    assert [each.text for each in reply.chunks] == ["some text"]
    assert list(reply.notices) == ["said"]
