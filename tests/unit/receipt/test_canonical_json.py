"""The display form: RFC 8785 without fractions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from services.receipt.domain.display import canonical_json


@pytest.fixture(scope="session")
def jcs() -> Path:
    folder = os.environ.get("AFFIDAVIT_VECTORS")
    if not folder:
        if os.environ.get("CI") == "true":
            pytest.fail("AFFIDAVIT_VECTORS is not set: CI must run the public vectors")
        pytest.skip("AFFIDAVIT_VECTORS is not set")
    return Path(folder) / "jcs"


@pytest.mark.parametrize("name", ["arrays", "french", "unicode", "weird"])
def test_public_vectors(jcs: Path, name: str) -> None:
    value = json.loads((jcs / "input" / f"{name}.json").read_text("utf-8"))
    expected = (jcs / "output" / f"{name}.json").read_bytes()
    assert canonical_json(value).encode() == expected


@pytest.mark.parametrize("name", ["structures", "values"])
def test_fractions_are_not_shown(jcs: Path, name: str) -> None:
    with pytest.raises(TypeError, match="float is not shown"):
        canonical_json(json.loads((jcs / "input" / f"{name}.json").read_text("utf-8")))


def test_keys_are_ordered_by_utf16_units() -> None:
    # In UTF-16 the emoji begins with D83D and stands before U+FF5E; by code point it would come after.
    assert canonical_json({"\uff5e": 1, "😀": 2}) == '{"😀":2,"\uff5e":1}'


def test_escapes_and_literals() -> None:
    assert canonical_json(['\u0000\b\t\n\f\r\u001f"\\/\u007fé', True, False, None, -1]) == (
        '["\\u0000\\b\\t\\n\\f\\r\\u001f\\"\\\\/\u007fé",true,false,null,-1]'
    )


@pytest.mark.parametrize("value", [2**53, -(2**53), "\ud83d", {"\ud83d": 1}])
def test_what_has_no_exact_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"not exact|surrogates not allowed"):
        canonical_json(value)  # type: ignore[arg-type]  # that is the point
