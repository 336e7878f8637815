"""Only one sequence of bytes is read as a value, and nothing outside the agreed subset of CBOR."""

from __future__ import annotations

import cbor2
import pytest
from affidavit.verify.encoding import (
    MAX_UINT,
    Shape,
    array,
    blob,
    decode,
    either,
    encode,
    one_of,
    record,
    row,
    text,
    uint,
)
from affidavit.verify.errors import Refused


def anything(_: object) -> None:
    """A shape that takes every value, so that only the decoder's own checks are left."""


def refusal(data: bytes, shape: Shape = anything, limit: int = 1000) -> str:
    with pytest.raises(Refused) as caught:
        decode(data, shape, step="here", limit=limit)
    assert caught.value.step == "here"
    return caught.value.reason


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("integer in two bytes that fits in one", "1801"),
        ("integer in nine bytes that fits in one", "1b0000000000000001"),
        ("length in two bytes that fits in one", "5801aa"),
        ("indefinite array", "9f01ff"),
        ("indefinite bytes", "5f4101ff"),
        ("indefinite text", "7f6161ff"),
        ("indefinite map", "bf616101ff"),
        ("duplicate key", "a2616101616102"),
        ("bytes after the end", "0000"),
        ("cut off", "5820aa"),
        ("empty", ""),
        ("invalid UTF-8", "62c328"),
        ("half of a surrogate pair", "63eda080"),
        ("reserved length", "1c"),
        ("lone break", "ff"),
        ("array of 2^64 items", "9bffffffffffffffff"),
        ("bytes of 4 GiB", "5b00000000ffffffff"),
    ],
)
def test_malformed_bytes_are_refused(name: str, data: str) -> None:
    assert refusal(bytes.fromhex(data)), name


@pytest.mark.parametrize(
    ("tag", "data"),
    [
        (0, "c0743230323630312d30315430303a30303a30305a"),
        (1, "c11a514b67b0"),
        (2, "c249010000000000000000"),
        (3, "c349010000000000000000"),
        (4, "c4820001"),
        (5, "c5821a7fffffff01"),
        (25, "d90100826261616161d81900"),
        (28, "d81c80"),
        (29, "d81c81d81d00"),
        (30, "d81e820102"),
        (35, "d8236161"),
        (36, "d8246161"),
        (37, "d8255000000000000000000000000000000000"),
        (100, "d8641801"),
        (256, "d9010080"),
        (258, "d90102810102"),
        (260, "d9010444c0a80001"),
        (1004, "d903ec6a323032362d30312d3031"),
        (43000, "d9a7f880"),
        (55799, "d9d9f700"),
        (12345, "d9303900"),
    ],
)
def test_every_tag_is_refused_before_it_is_decoded(tag: int, data: str) -> None:
    assert "not the agreed subset" in refusal(bytes.fromhex(data)), tag


def test_shared_values_do_not_grow() -> None:
    # One list, named nine times in the next one, and so on: nine levels would be 400 million items.
    level = b"\xd8\x1c\x80"
    for number in range(9):
        level = b"\xd8\x1c\x8a" + level + (b"\xd8\x1d" + cbor2.dumps(number)) * 9
    assert "not the agreed subset" in refusal(level)


def test_depth_is_limited() -> None:
    assert decode(b"\x81" * 7 + b"\x00", anything, step="here", limit=100)
    assert "depth" in refusal(b"\x81" * 9 + b"\x00")
    assert refusal(b"\x81" * 900, limit=1000)


def test_size_is_limited_before_anything_is_read() -> None:
    assert refusal(b"\xff" * 11, limit=10) == "11 bytes, at most 10 are read"


@pytest.mark.parametrize("data", ["f4", "f5", "f6", "f7", "f97e00", "fb3ff8000000000000", "e0", "f8ff", "20", "3903e7"])
@pytest.mark.parametrize(
    "shape", [uint(), blob(0, 9), text(0, 9), one_of(0, "a"), array(uint(), 9), row(), record({"a": uint()})]
)
def test_no_shape_takes_other_kinds_of_values(data: str, shape: Shape) -> None:
    assert "must" in refusal(bytes.fromhex(data), shape)


def test_keys_stand_in_one_order() -> None:
    shape = record({"v": uint(), "aaa": uint(), "bbb": uint()})
    assert decode(bytes.fromhex("a361760063616161006362626200"), shape, step="s", limit=99)
    wrong = cbor2.dumps({"aaa": 0, "v": 0, "bbb": 0})
    assert "in this order" in refusal(wrong, shape)
    assert "no others" in refusal(cbor2.dumps({"v": 0, "aaa": 0}), shape)
    assert "no others" in refusal(cbor2.dumps({"v": 0, "aaa": 0, "bbb": 0, "ccc": 0}), shape)
    assert "no others" in refusal(cbor2.dumps({0: 0, "aaa": 0, "bbb": 0}), shape)


def test_optional_keys_may_be_absent_but_not_null() -> None:
    shape = record({"a": uint(), "b": uint()}, optional=("b",))
    assert decode(encode({"a": 1}), shape, step="s", limit=99) == {"a": 1}
    assert decode(encode({"a": 1, "b": 2}), shape, step="s", limit=99) == {"a": 1, "b": 2}
    assert "b: must be an integer" in refusal(cbor2.dumps({"a": 1, "b": None}), shape)


def test_a_refusal_names_the_place() -> None:
    shape = record({"list": array(record({"x": row(uint(), text(1, 2))}), 3)})
    data = encode({"list": [{"x": [1, "a"]}, {"x": [1, "abc"]}]})
    assert refusal(data, shape).startswith("list.1.x.1: must be a text of 1 to 2 characters")
    assert refusal(encode({"list": [{"x": [1, "a"]}] * 4}), shape).startswith("list: must be a list of at most 3")
    assert refusal(encode({"list": [{"x": [1]}]}), shape).startswith("list.0.x: must be a list of 2 items")


def test_bounds() -> None:
    assert decode(cbor2.dumps(MAX_UINT), uint(), step="s", limit=99) == MAX_UINT
    assert refusal(cbor2.dumps(MAX_UINT + 1), uint())
    assert refusal(b"\x41\x00", blob(2, 2)) == "the whole: must be a byte string of 2 bytes"
    assert refusal(b"\x41\x00", blob(2, 3)) == "the whole: must be a byte string of 2 to 3 bytes"
    assert refusal(b"\x01", one_of(0, "x")) == "the whole: must be one of 0, 'x'"
    assert refusal(b"\xf4", one_of(0))


def test_either_takes_the_shape_that_was_decided() -> None:
    shape = either(uint(), text(0, 9), decide=lambda value: isinstance(value, int))
    assert decode(b"\x01", shape, step="s", limit=9) == 1
    assert decode(b"\x61a", shape, step="s", limit=9) == "a"
    assert "must be a text" in refusal(b"\x41a", shape)


@pytest.mark.parametrize("value", [1.5, None, True, -1, MAX_UINT + 1, {"a": None}, [0.0], {1: 1}, {b"a": 1}])
def test_the_encoder_takes_nothing_else(value: object) -> None:
    with pytest.raises(TypeError):
        encode(value)  # type: ignore[arg-type]  # that is the point


def test_the_encoder_orders_keys_by_length_and_bytes() -> None:
    assert encode({"bb": 1, "a": 2, "ab": 3, "é": 4}).hex() == "a4616102626162036262620162c3a904"
