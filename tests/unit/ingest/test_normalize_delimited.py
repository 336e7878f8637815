from __future__ import annotations

import pytest

from services.ingest.domain.normalize import InvalidDocument, delimited
from tests.unit.ingest.normalized_spans import read, texts


def test_rows_are_records_with_the_header_as_context() -> None:
    document = read('name,since\nrelay,2019\r\n"a, b","line one\nline two"\n\n"say ""hi""",1\n', "t.csv")
    assert texts(document) == ["name,since", "relay,2019", '"a, b","line one\nline two"', '"say ""hi""",1']
    assert [block.context for block in document.blocks] == ["", *["name,since"] * 3]
    assert (document.form, document.media_type, document.notices) == ("structured", "text/csv", ())


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter: str) -> None:
    rows = [["name", "note"], ["a", "x. y: z"], ["b", "1,5" if delimiter != "," else "1.5"]]
    document = read("\n".join(delimiter.join(row) for row in rows), "t.csv")
    assert document.blocks[1].context == f"name{delimiter}note"
    assert document.notices == ()


def test_a_delimiter_hint_of_a_spreadsheet() -> None:
    document = read("sep=;\r\na;b\r\nx,y;z\r\n", "t.csv")
    assert texts(document) == ["a;b", "x,y;z"]


def test_tab_separated_values() -> None:
    document = read("a\tb\nx,y\tz\n", "t.tsv")
    assert (document.media_type, document.notices) == ("text/tab-separated-values", ())


@pytest.mark.parametrize("first", ["1,2", "2020-01-01,x", "a,a", ","])
def test_a_first_row_of_values_is_no_header(first: str) -> None:
    assert {block.context for block in read(f"{first}\nx,y\n", "t.csv").blocks} == {""}


def test_ragged_rows_are_kept_and_counted() -> None:
    document = read("a,b\n1\n1,2\n1,2,3\n", "t.csv")
    assert len(document.blocks) == 4
    assert document.notices == ("2 rows have another number of cells than the first row, the first at line 2",)
    assert read("a,b\n1\n", "t.csv").notices == (
        "1 row has another number of cells than the first row, the first at line 2",
    )


def test_a_quote_that_never_closes_swallows_nothing() -> None:
    document = read('a,b\n1,"x\n"2",y\n3,"z\n', "t.csv")
    assert texts(document)[-1] == '3,"z'
    assert "quote at line 4 never closes" in document.notices[-1]
    assert len(read('a,b\n"' + "x\n" * 50, "t.csv").blocks) == 51


def test_text_after_a_closing_quote_belongs_to_the_cell() -> None:
    assert texts(read('a,b\n"x"y,z\n', "t.csv")) == ["a,b", '"x"y,z']


def test_a_very_long_header_is_no_context() -> None:
    header = ",".join(f"column{number}" for number in range(400))
    assert {block.context for block in read(f"{header}\n{header[:50]}\n", "t.csv").blocks} == {""}


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "MAX_RECORDS", 3)
    with pytest.raises(InvalidDocument, match="more than"):
        read("a,b\n" * 5, "t.csv")


def test_one_column() -> None:
    document = read("name\nx\ny\n", "t.csv")
    assert texts(document) == ["name", "x", "y"]
