from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.kernel.digests import Row, Rows, compare, digest, shown

ROWS = st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), st.binary(max_size=2), max_size=12)


async def rows(given: Sequence[Row]) -> Rows:
    for row in given:
        yield row


@given(live=ROWS, replayed=ROWS)
async def test_rows_are_equal_exactly_when_their_digests_are(
    live: dict[tuple[str, int], bytes], replayed: dict[tuple[str, int], bytes]
) -> None:
    left, right = sorted(live.items()), sorted(replayed.items())
    found = await compare("x", rows(left), rows(right))
    assert found.live == await digest(rows(left))
    assert found.replayed == await digest(rows(right))
    assert found.equal == (live == replayed)
    differing = [key for key in sorted({*live, *replayed}) if live.get(key) != replayed.get(key)]
    kinds = [
        "only replayed" if key not in live else "only live" if key not in replayed else "differs" for key in differing
    ]
    wanted = [f"{shown(key)}: {kind}" for key, kind in zip(differing, kinds, strict=True)]
    assert list(found.differences) == wanted[:10]


async def test_a_row_that_stands_twice_is_another_set() -> None:
    row: Row = (("a", 1), b"x")
    found = await compare("x", rows([row, row]), rows([row]))
    assert (found.live.rows, found.replayed.rows, found.equal) == (2, 1, False)
    assert found.differences == ("a/1: only live",)


@pytest.mark.parametrize(("key", "text"), [(("a", 1), "a/1"), ((b"\x01\xff", "b"), "01ff/b"), ((), "")])
def test_keys_are_shown_to_people(key: tuple[str | int | bytes, ...], text: str) -> None:
    assert shown(key) == text
