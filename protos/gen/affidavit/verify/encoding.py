"""One value, one sequence of bytes: a small subset of deterministic CBOR (RFC 8949, 4.2).

Unsigned integers, byte strings, text, arrays, and maps with text keys. No floats, tags, nulls, negative numbers or
indefinite lengths. In this subset length-first order (RFC 7049) and bytewise order (RFC 8949) of keys are the same.

A decoder is always given the exact shape that it expects, so nothing unknown is ever carried along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import cbor2

from affidavit.verify.errors import Refused

Value: TypeAlias = "int | bytes | str | list[Value] | dict[str, Value]"
Shape: TypeAlias = Callable[[object], None]

MAX_DEPTH = 8
# Exact in every language: the largest integer that a double holds without a gap (RFC 7493).
MAX_UINT = 2**53 - 1


class _Mismatch(Exception):  # noqa: N818  (never leaves this module)
    """A value isn't of its shape; collects the path to it on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


class _EveryTag(dict[int, Any]):
    """Answers for every tag number with a decoder that refuses.

    cbor2 decodes many tags by itself. Some of them (shared values, string references, big floats) let a few bytes grow
    into gigabytes, so they have to be stopped before they are decoded.
    """

    def __missing__(self, tag: int) -> Callable[..., object]:
        return _refuse_tag


def _refuse_tag(*_: object) -> object:
    raise ValueError("tags are not allowed")


_NO_TAGS = _EveryTag()


def encode(value: Value) -> bytes:
    """Encode a value.

    Args:
        value: Integers from 0 to `MAX_UINT`, bytes, text, lists, and dicts with text keys, in any order.

    Returns:
        The one encoding of it.

    Raises:
        TypeError: When something else is in it.
    """
    return cbor2.dumps(_ordered(value))


def _ordered(value: object) -> object:
    if type(value) is dict:
        keys = sorted(value, key=_key_order)
        return {key: _ordered(value[key]) for key in keys}
    if type(value) in (list, tuple):
        return [_ordered(item) for item in value]  # type: ignore[attr-defined]  # narrowed by the line above
    if type(value) is int and 0 <= value <= MAX_UINT:
        return value
    if type(value) in (bytes, str):
        return value
    raise TypeError(f"{type(value).__name__} has no place in a receipt")


def _key_order(key: object) -> tuple[int, bytes]:
    if type(key) is not str:
        raise TypeError(f"map keys are text, not {type(key).__name__}")
    encoded = key.encode()
    return len(encoded), encoded


def decode(data: bytes, shape: Shape, *, step: str, limit: int) -> Any:
    """Decode bytes that must be the one encoding of a value of the given shape.

    Args:
        data: The encoding.
        shape: What it must hold, made of the functions below.
        step: Name of the verification step, for the refusal.
        limit: Largest size, bytes.

    Returns:
        The value: it was read from exactly these bytes and from no others.

    Raises:
        Refused: When the bytes are too many, not CBOR, of another shape, or another encoding of the same value.
    """
    if len(data) > limit:
        raise Refused(step, f"{len(data)} bytes, at most {limit} are read")
    try:
        value = cbor2.loads(
            data,
            max_depth=MAX_DEPTH,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            semantic_decoders=_NO_TAGS,
            tag_hook=_refuse_tag,
        )
    except (cbor2.CBORError, TypeError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(step, f"not the agreed subset of CBOR: {error.__cause__ or error}") from error
    try:
        shape(value)
    except _Mismatch as mismatch:
        where = ".".join(reversed(mismatch.path)) or "the whole"
        raise Refused(step, f"{where}: {mismatch.reason}") from mismatch
    if cbor2.dumps(value) != data:
        raise Refused(step, "another encoding of the same value, or bytes after its end: only one encoding is allowed")
    return value


def uint(maximum: int = MAX_UINT) -> Shape:
    """An integer from 0 to `maximum`."""

    def check(value: object) -> None:
        if type(value) is not int or not 0 <= value <= maximum:
            raise _Mismatch(f"must be an integer from 0 to {maximum}")

    return check


def blob(minimum: int, maximum: int) -> Shape:
    """A byte string of `minimum` to `maximum` bytes."""
    size = f"{minimum}" if minimum == maximum else f"{minimum} to {maximum}"

    def check(value: object) -> None:
        if type(value) is not bytes or not minimum <= len(value) <= maximum:
            raise _Mismatch(f"must be a byte string of {size} bytes")

    return check


def text(minimum: int, maximum: int) -> Shape:
    """A text of `minimum` to `maximum` code points."""

    def check(value: object) -> None:
        if type(value) is not str or not minimum <= len(value) <= maximum:
            raise _Mismatch(f"must be a text of {minimum} to {maximum} characters")

    return check


def one_of(*allowed: int | str | bytes) -> Shape:
    """One of a few values, type included: True is not 1."""
    kinds: tuple[type[object], ...] = (int, str, bytes)
    by_type = {kind: frozenset(one for one in allowed if type(one) is kind) for kind in kinds}

    def check(value: object) -> None:
        if value not in by_type.get(type(value), ()):
            raise _Mismatch(f"must be one of {', '.join(repr(one) for one in allowed)}")

    return check


def array(item: Shape, maximum: int) -> Shape:
    """A list of at most `maximum` items of one shape."""

    def check(value: object) -> None:
        if type(value) is not list or len(value) > maximum:
            raise _Mismatch(f"must be a list of at most {maximum} items")
        position = 0
        try:
            for position, one in enumerate(value):  # noqa: B007  (read in the handler below)
                item(one)
        except _Mismatch as mismatch:
            mismatch.path.append(str(position))
            raise

    return check


def row(*items: Shape) -> Shape:
    """A list of exactly these items."""

    def check(value: object) -> None:
        if type(value) is not list or len(value) != len(items):
            raise _Mismatch(f"must be a list of {len(items)} items")
        for position, item in enumerate(items):
            try:
                item(value[position])
            except _Mismatch as mismatch:
                mismatch.path.append(str(position))
                raise

    return check


def record(fields: Mapping[str, Shape], *, optional: tuple[str, ...] = ()) -> Shape:
    """A map with exactly these keys, in their one order.

    Args:
        fields: Shape by key.
        optional: Keys that may be absent together, as one group.
    """
    full = tuple(sorted(fields, key=_key_order))
    short = tuple(key for key in full if key not in optional)
    shapes = {keys: tuple(fields[key] for key in keys) for keys in (full, short)}

    def check(value: object) -> None:
        if type(value) is not dict:
            raise _Mismatch("must be a map")
        keys = tuple(value)
        expected = shapes.get(keys)
        if expected is None:
            raise _Mismatch(f"must have the keys {', '.join(short)}, in this order and no others, not {keys!r:.120}")
        key = ""
        try:
            for key, shape, one in zip(keys, expected, value.values(), strict=True):  # noqa: B007  (read in the handler below)
                shape(one)
        except _Mismatch as mismatch:
            mismatch.path.append(key)
            raise

    return check


def either(first: Shape, second: Shape, *, decide: Callable[[object], bool]) -> Shape:
    """One of two shapes; `decide` says True for the first."""

    def check(value: object) -> None:
        (first if decide(value) else second)(value)

    return check
