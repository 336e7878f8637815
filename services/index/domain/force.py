"""From when to when a revision counts, as both lanes hold it beside its records."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
NEVER = (1 << 62) - 1
"""An instant after all others, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """When a revision is in force. Intervals are closed-open, instants are microseconds since 1970 in UTC.

    Attributes:
        effective_from: From when on it counts at all.
        in_force_until: From when on it is superseded or deprecated; `NEVER` where that isn't known.
        position: KNOWLEDGE position that brought the revision.
        current: It is the newest searchable revision of a document that isn't retired.
        gone_from: From when on its document is retired, so that it is found no more; `NEVER` where it isn't. Rows alone
            hold it: retired documents are few, and a search that meets one looks further.
        until_known_from: KNOWLEDGE position from which `in_force_until` is known. As known before it counts as in force
            without an end, which is what most revisions were; for others a search is told.
    """

    effective_from: int
    in_force_until: int = NEVER
    position: int
    current: bool = True
    gone_from: int = NEVER
    until_known_from: int = 0


def instant(moment: datetime) -> int:
    """Bring a time to the lanes' unit.

    Args:
        moment: With a time zone.

    Returns:
        Microseconds since 1970, below `NEVER`.
    """
    return (moment - _EPOCH) // _MICROSECOND
