from __future__ import annotations

import json

import pytest

from services.ingest.domain.normalize import InvalidDocument
from services.ingest.domain.normalize import json_records as json_module
from services.ingest.domain.normalize import records as records_module
from tests.unit.ingest.normalized_spans import bytes_of, read, texts


def contexts(text: str, name: str = "a.json") -> list[tuple[str, str]]:
    document = read(text, name)
    return [(block.context, document.text[block.text_start : block.text_end]) for block in document.blocks]


def test_a_list_gives_one_record_per_element() -> None:
    assert contexts('[{"a": 1}, {"b": [1, 2]},\n "x", "y", [3]]') == [
        ("0", '{"a": 1}'),
        ("1", '{"b": [1, 2]}'),
        ("", '"x", "y"'),
        ("4", "[3]"),
    ]


def test_a_list_of_maps_below_the_root_is_cut_although_it_is_small() -> None:
    assert contexts('{"name": "relay", "releases": [{"v": 1}, {"v": 2}], "eol": true}') == [
        ("", '"name": "relay"'),
        ("releases > 0", '{"v": 1}'),
        ("releases > 1", '{"v": 2}'),
        ("", '"eol": true'),
    ]


@pytest.mark.parametrize("text", ['{"a": {"b": [1, {"c": 2}]}}', '{"a": [1, 2], "b": []}', '"word"', "42", "null"])
def test_small_values_are_one_record(text: str) -> None:
    assert contexts(f" {text}\n") == [("", text)]


@pytest.mark.parametrize("text", ["[]", "{}", " [ ] "])
def test_empty_containers_have_no_records(text: str) -> None:
    assert contexts(text) == []


def test_large_maps_are_opened_and_scalars_go_in_groups() -> None:
    value = {"head": "h", "big": {f"key{number}": "x" * 150 for number in range(12)}, "small": {"a": 1}, "tail": "t"}
    found = contexts(json.dumps(value))
    assert [context for context, _ in found] == ["", "big", "big", "small", ""]
    assert all(len(text) <= records_module.RECORD_CHARS for _, text in found)
    assert found[3] == ("small", '"small": {"a": 1}')


def test_a_large_list_of_numbers_goes_in_groups() -> None:
    found = contexts(json.dumps({"n": list(range(1_000)), "deep": [[["x" * 1_500]]]}))
    assert {context for context, _ in found[:-1]} == {"n"}
    assert found[-1][0] == "deep > 0 > 0"


def test_keys_of_a_path_are_short_and_on_one_line() -> None:
    ((context, _), *_) = contexts(json.dumps({"k\n " + "x" * 200: {"a": "y" * 1_200}}))
    assert context == "k " + "x" * 77 + "\u2026"


def test_scalars_of_the_root_are_metadata() -> None:
    text = '{"title": "T", "version": 1.10, "draft": false, "gone": null, "list": [1], "map": {"x": 1}, "empty": ""}'
    document = read(text, "a.json")
    assert document.metadata == (("title", "T"), ("version", "1.10"), ("draft", "false"), ("gone", "null"))
    assert (document.title, document.form) == ("T", "structured")
    assert read('{"name": "N"}', "a.json").title == "N"
    assert read("[1]", "folder/eol-list.json").title == "eol-list"


def test_escapes_are_read_as_the_characters_they_stand_for() -> None:
    text = r'{"k\u0416y": "\u0421\u0440\u043e\u043a \ud83d\ude00 \u003cb\u003e \\u0041 \u0022 \u0041", "n": "\n"}'
    document = read(text, "a.json")
    assert document.text == r'{"kЖy": "Срок 😀 <b> \\u0041 \u0022 \u0041", "n": "\n"}'
    assert json.loads(document.text) == json.loads(text)
    bytes_of(text.encode(), document, r"\\u0041 \u0022")


def test_lone_surrogate_escapes_are_replaced_and_told() -> None:
    document = read(r'{"a": "x\ud800y", "b": "\u0041\udc00"}', "a.json")
    assert document.text == '{"a": "x\ufffdy", "b": "\\u0041\ufffd"}'
    assert document.metadata == (("a", "x\ufffdy"), ("b", "A\ufffd"))
    assert document.notices == ("2 lone surrogate escapes replaced by U+FFFD, the first at byte 8",)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('{"a": 1,}', "line 1, column 9: a key in double quotes"),
        ("[1 2]", "line 1, column 4: a comma"),
        ("[1,\n\n", "line 3, column 1: Expecting value"),
        ('{"a" 1}', "line 1, column 6: a colon"),
        ('{"a": "b', "line 1, column 7: Unterminated string"),
        ("{a: 1}", "line 1, column 2: a key"),
        ('{"a": {"b": 1}}\r\n{"a": 2}', "line 2, column 1: text follows"),
        ('[{"a": nope}]', "line 1, column 8: Expecting value"),
    ],
)
def test_invalid_json_is_refused_with_the_place(text: str, where: str) -> None:
    with pytest.raises(InvalidDocument, match="invalid JSON") as caught:
        read(text, "a.json")
    assert where in str(caught.value)
    assert "text/plain" in str(caught.value)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 101 + "]" * 101])
def test_deep_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match="deeper than 100"):
        read(text, "a.json")


def test_depth_within_the_limit_is_read() -> None:
    assert len(read("[" * 99 + "1" + "]" * 99, "a.json").blocks) == 1


def test_huge_numbers_are_only_text() -> None:
    assert len(read("[" + "9" * 10_000 + "]", "a.json").blocks) == 1


def test_too_many_records_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "MAX_RECORDS", 3)
    monkeypatch.setattr(json_module, "MAX_RECORDS", 3)
    for text, name in (("[[1], [2], [3], [4]]", "a.json"), ("1\n2\n3\n4", "a.jsonl")):
        with pytest.raises(InvalidDocument, match="more than"):
            read(text, name)


def test_json_lines_skip_blank_and_broken_lines() -> None:
    document = read('{"a": 1}\n\n  {"b": \n\t[2]  \r\n \x0b\n{"c": "\\u00e9"}\r"end"', "a.jsonl")
    assert texts(document) == ['{"a": 1}', "[2]", '{"c": "é"}', '"end"']
    assert document.notices == ("1 line that is no JSON was skipped, the first is line 3",)
    assert (document.form, document.media_type) == ("structured", "application/x-ndjson")


def test_json_lines_count_what_they_skip() -> None:
    document = read("{}\n{\n}\n" + "[" * 100_000, "a.jsonl")
    assert document.notices == ("3 lines that are no JSON were skipped, the first is line 2",)


def test_only_broken_json_lines_are_refused() -> None:
    with pytest.raises(InvalidDocument, match="none of 2 lines is JSON, the first is line 1"):
        read("{\n}\n", "a.jsonl")


YAML = """# Owner: ops
title: Gateway
tags: [a, b]
releases:
  - v: 1  # first
    eol: 2020-01-01
  - v: 2
note: >
  folded
  text
ref: &x {k: v}
copy: *x
"""


def test_yaml_records_cover_the_text() -> None:
    document = read(YAML, "a.yaml")
    found = [(block.context, document.text[block.text_start : block.text_end]) for block in document.blocks]
    assert found == [
        ("", "# Owner: ops\ntitle: Gateway"),
        ("tags", "tags: [a, b]"),
        ("releases > 0", "releases:\n  - v: 1  # first\n    eol: 2020-01-01"),
        ("releases > 1", "- v: 2"),
        ("", "note: >\n  folded\n  text"),
        ("ref", "ref: &x {k: v}"),
        ("", "copy: *x"),
    ]
    assert document.metadata == (("title", "Gateway"), ("note", "folded text"))
    assert (document.title, document.form, document.media_type) == ("Gateway", "structured", "application/yaml")


@pytest.mark.parametrize(
    ("text", "context"),
    [("---\na: 1\n---\nb: 2\n", ""), ("? [k, {l: m}]\n: v\n", ""), ("- a\n- b\n", ""), ("word", ""), ("{}", "")],
)
def test_other_yaml_roots(text: str, context: str) -> None:
    assert {block.context for block in read(text, "a.yml").blocks} <= {context}


def test_keys_that_are_no_scalars_name_the_path() -> None:
    long = "x" * 600
    text = f"a: &k key\n? [p, q]\n: {{m: {long}, n: {long}}}\n*k : {{m: {long}, n: {long}}}\n'': {{m: {long}, n: {long}}}\n"
    assert list(dict.fromkeys(block.context for block in read(text, "a.yaml").blocks)) == ["", "[p, q]", "*k", "''"]


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3\n", "x:\n  - {k: 1, k: 2}\n", '"a": 1\n"a": 2\n'])
def test_duplicate_keys_are_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match="comes twice in one mapping"):
        read(text, "a.yaml")


def test_merge_keys_may_come_twice_and_quotes_tell_keys_apart() -> None:
    assert read("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n1: x\n'1': y\n", "a.yaml").blocks


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: b: c", "line 1, column 5"),
        ("a: 'x", "line 1, column"),
        ("\tk: v", "line 1, column 1"),
        ("a: 1\nb: \x01", "line 2: the character U+0001"),
        ("[a, b", "line"),
    ],
)
def test_invalid_yaml_is_refused_with_the_place(text: str, where: str) -> None:
    with pytest.raises(InvalidDocument, match="invalid YAML") as caught:
        read(text, "a.yaml")
    assert where in str(caught.value)


@pytest.mark.parametrize("text", ["- " * 500 + "a", "[" * 500, "? " * 500, "? " + "[" * 200, "{a: " * 500])
def test_deep_yaml_is_refused(text: str) -> None:
    with pytest.raises(InvalidDocument, match=r"deeper than 100|invalid YAML"):
        read(text, "a.yaml")


def test_aliases_do_not_grow() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    document = read(bomb, "a.yaml")
    assert len(document.text) == len(bomb)


def test_yaml_with_windows_line_ends_and_emoji() -> None:
    body = "a: 😀 é\r\nb: Größe\r\n"
    document = read(body, "a.yaml")
    assert texts(document) == ["a: 😀 é\r\nb: Größe"]
    assert document.metadata == (("a", "😀 é"), ("b", "Größe"))
