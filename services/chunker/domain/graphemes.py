r"""Grapheme cluster boundaries near one position; never over a whole text.

Source: Unicode Standard Annex 29, extended grapheme clusters, as `\X` of the regex package implements them.
"""

from __future__ import annotations

import re
from itertools import accumulate

import regex

_CLUSTER = regex.compile(r"\X")
# Two neighbours of these ranges never share a cluster (CR LF aside): letters, digits and punctuation of scripts whose
# blocks hold no marks, joiners, flags or jamo there.
_CERTAIN = re.compile(
    "(?!\r\n)[\x00-\x7f\xc0-\u024f\u0370-\u0481\u05d0-\u05ea\u0620-\u064a\u0e01-\u0e30"
    "\u3001-\u3029\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60]{2}"
)
# How far to look for a certain boundary; a longer cluster, or a longer row of flags, may be split.
_REACH = 64


def boundary_at_or_before(text: str, at: int) -> int:
    """Nearest boundary that isn't after a position.

    Args:
        text: Any text.
        at: Code point offset, 0 to len(text).

    Returns:
        Code point offset.
    """
    return _boundaries_around(text, at)[0]


def boundary_at_or_after(text: str, at: int) -> int:
    """Nearest boundary that isn't before a position.

    Args:
        text: Any text.
        at: Code point offset, 0 to len(text).

    Returns:
        Code point offset.
    """
    return _boundaries_around(text, at)[1]


def _boundaries_around(text: str, at: int) -> tuple[int, int]:
    if _is_certain(text, at):
        return at, at
    start = at - 1
    while start > at - _REACH and not _is_certain(text, start):
        start -= 1
    # A slice, since the pattern would look back through a whole row of flags from any start position.
    clusters = _CLUSTER.findall(text[start : at + _REACH])
    boundaries = tuple(accumulate(map(len, clusters), initial=start))
    return max(b for b in boundaries if b <= at), min(b for b in boundaries if b >= at)


def _is_certain(text: str, at: int) -> bool:
    return at <= 0 or at >= len(text) or _CERTAIN.match(text, at - 1) is not None
