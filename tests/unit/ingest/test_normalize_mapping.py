from __future__ import annotations

from services.ingest.domain.normalize.lines import Lines, line_number
from services.ingest.domain.normalize.mapping import Extractor, RunBuilder
from services.ingest.domain.normalize.model import MappedText, Run


def source() -> MappedText:
    builder = RunBuilder()
    builder.add("", chars=(0, 0), span=(0, 0), verbatim=True)
    builder.add("aé", chars=(0, 2), span=(0, 3), verbatim=True)
    builder.add("b", chars=(2, 3), span=(3, 4), verbatim=True)
    builder.add("\ufffd", chars=(3, 5), span=(4, 6), verbatim=False)
    builder.add("cdé", chars=(5, 8), span=(6, 10), verbatim=True)
    return builder.build()


def test_verbatim_neighbours_are_one_run() -> None:
    assert source() == MappedText(
        "aéb\ufffdcdé",
        (
            Run(0, 3, 0, 3, 0, 4, verbatim=True),
            Run(3, 4, 3, 5, 4, 6, verbatim=False),
            Run(4, 7, 5, 8, 6, 10, verbatim=True),
        ),
    )


def test_pieces_keep_their_places() -> None:
    extractor = Extractor(source(), "utf-8")
    extractor.copy(1, 5)
    extractor.put(" ", 5, 6)
    extractor.copy(6, 7)
    assert extractor.length == 6
    assert extractor.build() == MappedText(
        "éb\ufffdc é",
        (
            Run(0, 2, 1, 3, 1, 4, verbatim=True),
            Run(2, 3, 3, 5, 4, 6, verbatim=False),
            Run(3, 4, 5, 6, 6, 7, verbatim=True),
            Run(4, 5, 6, 7, 7, 8, verbatim=False),
            Run(5, 6, 7, 8, 8, 10, verbatim=True),
        ),
    )


def test_points_and_edges_inside_what_maps_as_a_whole() -> None:
    extractor = Extractor(source(), "utf-8")
    extractor.put("x", 2, 2)
    extractor.put("y", 3, 4)
    extractor.put("z", 7, 7)
    runs = extractor.build().runs
    assert [(run.char_start, run.char_end, run.byte_start, run.byte_end) for run in runs] == [
        (2, 2, 3, 3),
        (3, 5, 4, 6),
        (8, 8, 10, 10),
    ]


def test_going_back_is_allowed() -> None:
    extractor = Extractor(source(), "utf-8")
    extractor.copy(6, 7)
    extractor.copy(4, 6)
    extractor.copy(0, 2)
    assert [(run.byte_start, run.byte_end) for run in extractor.build().runs] == [(8, 10), (6, 8), (0, 3)]


def test_lines_end_at_each_kind_of_line_end() -> None:
    lines = Lines("a\r\nb\rc\n\n d \u2028\x85e\n")
    assert [lines[index] for index in range(len(lines))] == ["a", "b", "c", "", " d \u2028\x85e", ""]
    assert lines.span(0, 4) == (0, 6)
    assert lines.span(3, 4) == (7, 7)
    assert [lines.number(offset) for offset in (0, 1, 2, 3, 7, 8)] == [1, 1, 1, 2, 4, 5]
    assert [line_number(lines.text, offset) for offset in (0, 3, 7, 8)] == [1, 2, 4, 5]
