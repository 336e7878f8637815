"""Records of CSV, JSON and YAML: what they hold and where they stand."""

import pytest

from services.query.domain.records import Record, find_records

HEADER = "product,cycle,eol"


def found(text: str, media_type: str, context: str = "") -> tuple[Record, ...]:
    return find_records(text, media_type=media_type, context=context)


def places(text: str, records: tuple[Record, ...]) -> list[str]:
    return [text[record.start : record.end] for record in records]


def test_rows_are_rendered_by_their_columns_and_cited_as_they_stand() -> None:
    text = 'PostgreSQL,14,2026-11-12\nPostgreSQL,13,\n"A, B",1,2\n'
    records = found(text, "text/csv; charset=utf-8", HEADER)
    assert places(text, records) == ["PostgreSQL,14,2026-11-12", "PostgreSQL,13,", '"A, B",1,2']
    assert [record.render() for record in records] == [
        "product: PostgreSQL; cycle: 14; eol: 2026-11-12",
        "product: PostgreSQL; cycle: 13",
        "product: A, B; cycle: 1; eol: 2",
    ]


def test_a_cell_may_hold_line_breaks() -> None:
    text = 'a,"one\ntwo",3\r\nb,x,4'
    records = found(text, "text/csv", HEADER)
    assert places(text, records) == ['a,"one\ntwo",3', "b,x,4"]


def test_a_quote_that_never_closes_ends_with_its_line() -> None:
    text = 'a,"one,3\nb,x,4'
    assert places(text, found(text, "text/csv", HEADER))[-1] == "b,x,4"
    assert places('a,"one', found('a,"one', "text/csv", HEADER)) == ['a,"one']


def test_the_header_row_and_blank_rows_are_no_records() -> None:
    assert found(f"{HEADER}\n,,\n\na,1,2", "text/csv", HEADER)[0].render() == "product: a; cycle: 1; eol: 2"
    assert len(found(f"{HEADER}\n,,\n\na,1,2", "text/csv", HEADER)) == 1


def test_a_row_that_a_chunk_cut_has_no_column_names() -> None:
    assert found("14,2026", "text/csv", HEADER)[0].render() == "14; 2026"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    header, row = delimiter.join(("a", "b")), delimiter.join(("1", "2"))
    assert found(row, "text/csv", header)[0].render() == "a: 1; b: 2"


def test_rows_without_a_header_are_split_all_the_same() -> None:
    assert found("x;1\ny;2", "text/csv")[1].pairs == (("", "y"), ("", "2"))


def test_a_row_that_the_parser_refuses_is_split_plainly() -> None:
    long_cell = "x" * 140_000
    assert found(f"{long_cell},1", "text/csv")[0].pairs == (("", long_cell), ("", "1"))


def test_json_objects_without_objects_inside_are_records() -> None:
    text = '{"product": "Ruby", "releases": [{"cycle": "3.3", "eol": "2027-03-31", "tags": ["a",\n "b"]}, {"cycle": "3.2"}]}'
    records = found(text, "application/json")
    assert [record.render() for record in records] == [
        'cycle: 3.3; eol: 2027-03-31; tags: ["a", "b"]',
        "cycle: 3.2",
        "product: Ruby",
    ]
    assert records[0].parents == ("releases",)
    assert places(text, records)[1] == '{"cycle": "3.2"}'


def test_json_that_a_chunk_cuts() -> None:
    text = '"eol": "2029", "lts": true}, {"cycle": "3.4", "eol": null}, {"cycle": "3.5", "la'
    assert [record.render() for record in found(text, "application/ld+json")] == [
        "eol: 2029; lts: true",
        "cycle: 3.4; eol: null",
        "cycle: 3.5",
    ]


def test_json_strings_may_hold_braces_and_escapes() -> None:
    text = r'{"note": "a \"{\" and }", "bad": "\x", "n": -1.5e3}'
    assert found(text, "application/json")[0].pairs == (("note", 'a "{" and }'), ("bad", r"\x"), ("n", "-1.5e3"))


def test_json_lines() -> None:
    assert len(found('{"a": 1}\n{"a": 2}\n', "application/x-ndjson")) == 2


def test_json_without_any_pair_gives_nothing() -> None:
    assert found("[1, 2, [3]]", "application/json") == found("{}", "application/json") == ()
    assert found("] } ]", "application/json") == ()


def test_yaml_leaves_and_items() -> None:
    text = """service: booking-api
port: 8080 # plain http
# a comment
database:
  pool_size: 40
hosts:
  - name: a
    ip: 1.2.3.4
  - plain
'quoted key': "v"
"""
    records = found(text, "application/yaml")
    assert [(record.parents, record.render()) for record in records] == [
        ((), "service: booking-api"),
        ((), "port: 8080"),
        (("database",), "pool_size: 40"),
        (("hosts",), "name: a; ip: 1.2.3.4"),
        (("hosts",), "plain"),
        ((), "quoted key: v"),
    ]
    assert places(text, records)[3] == "name: a\n    ip: 1.2.3.4"


def test_a_long_yaml_item_is_taken_leaf_by_leaf() -> None:
    text = "items:\n  - name: a\n    text: " + "x" * 700 + "\n    more: 1\n"
    assert [record.pairs[0][0] for record in found(text, "text/yaml")] == ["name", "text", "more"]


def test_a_yaml_item_without_content_is_no_record_of_its_own() -> None:
    text = "items:\n  - ''\n    text: " + "x" * 700 + "\n"
    assert [record.pairs[0][0] for record in found(text, "text/yaml")] == ["text"]


def test_other_media_types_hold_no_records() -> None:
    assert found("a: 1", "text/plain") == ()
