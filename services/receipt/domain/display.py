"""JSON for people, in the canonical form of RFC 8785. It is never what is verified."""

from __future__ import annotations

import json

JsonValue = None | bool | int | str | list["JsonValue"] | dict[str, "JsonValue"]
_EXACT = 2**53 - 1


def canonical_json(value: JsonValue) -> str:
    """Write a value the way RFC 8785 does.

    Args:
        value: Anything but fractions, which no receipt holds.

    Returns:
        JSON without white space, keys in the order of their UTF-16 code units.

    Raises:
        TypeError: When a fraction or something that JSON doesn't know is in it.
        ValueError: When an integer is too large for a double, or half of a surrogate pair is in a text.
    """
    text = json.dumps(_ordered(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text.encode()
    return text


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if abs(value) > _EXACT:
            raise ValueError(f"{value} is not exact as a double")
        return value
    raise TypeError(f"{type(value).__name__} is not shown")
