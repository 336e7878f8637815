"""What ingest's normalisers write, the chunker reads: every span cuts the original, every format has its shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as pb

from services.chunker.adapters.cutter_process import cut
from services.chunker.domain.chunking import Sizes
from services.ingest.codec import content
from services.ingest.domain.normalize import normalize

DEMO = Path(__file__).resolve().parents[2] / "deploy" / "demo" / "documents"
G01 = (
    b"# Installing the relay\n\nRun the steps below.\n\n```bash\n# fetch the package\nrelayctl fetch --channel stable\n"
    b"# start the service\nrelayctl up\n```\n\nThe relay listens on port 7443.\n\n## Removing the relay\n\n"
    b"Run `relayctl purge`.\n"
)
G02 = b"# Alpha\r\n\r\nFirst body line.\r\n\r\n## Beta\r\nSecond body line: the retention period is 30 days.\r\n"


def chunks(name: str, raw: bytes, sizes: Sizes) -> pb.ChunkSet:
    document = normalize(raw, source_id=name, media_type="", charset="")
    parts = {"normalized": content.normalized_bytes(document, document.title), "manifest": b""}
    return pb.ChunkSet.FromString(cut(parts, sizes)[1])


def assert_exact(found: pb.ChunkSet, raw: bytes) -> None:
    charset = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(found.charset, found.charset)
    for chunk in found.chunks:
        for run in chunk.runs:
            if run.verbatim:
                source = raw[run.byte_start : run.byte_end].decode(charset)
                assert source == chunk.text[run.text_start : run.text_end]


@pytest.mark.parametrize("path", sorted(path for path in DEMO.rglob("*") if path.is_file()), ids=lambda path: path.name)
@pytest.mark.parametrize("sizes", [Sizes(1_000, 200), Sizes(80, 40)], ids=["default", "small"])
def test_every_format_of_the_demo_keeps_its_spans(path: Path, sizes: Sizes) -> None:
    raw = path.read_bytes()
    found = chunks(path.name, raw, sizes)
    assert found.chunks
    assert max(len(chunk.text) for chunk in found.chunks) <= sizes.size_chars
    assert_exact(found, raw)


@pytest.mark.parametrize("size", [100, 150, 1_000])
def test_g01_a_fence_bounds_no_section_and_stays_whole(size: int) -> None:
    found = chunks("install.md", G01, Sizes(size, size // 5))
    assert list(found.headings) == ["Installing the relay", "Removing the relay"]
    assert {name for chunk in found.chunks for name in chunk.heading_path} == set(found.headings)
    assert [chunk.text.count("```") for chunk in found.chunks if "```" in chunk.text] == [2]
    assert {chunk.heading_path[-1] for chunk in found.chunks if "7443" in chunk.text} == {"Installing the relay"}


def test_g02_windows_line_ends_keep_headings_and_spans() -> None:
    windows = chunks("g02.md", G02, Sizes(1_000, 200))
    unix = chunks("g02-lf.md", G02.replace(b"\r\n", b"\n"), Sizes(1_000, 200))
    assert list(windows.headings) == list(unix.headings) == ["Alpha", "Beta"]
    assert [chunk.text.replace("\r\n", "\n") for chunk in windows.chunks] == [chunk.text for chunk in unix.chunks]
    assert_exact(windows, G02)
    chunk = windows.chunks[-1]
    at = chunk.text.index("the retention period is 30 days.")
    run = next(run for run in chunk.runs if run.text_start <= at < run.text_end)
    start = run.byte_start + at - run.text_start
    assert (run.verbatim, start, G02[start:90]) == (True, 58, b"the retention period is 30 days.")
