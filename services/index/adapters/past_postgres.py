"""What was known about the force of revisions at past positions, read from Postgres."""

from __future__ import annotations

from services.index.codec.living import decode_spans
from services.index.domain.content import Differences
from services.index.domain.living.changes import counts, from_instant
from services.index.domain.records import RevisionKey
from services.kernel.db import Database, answering

# What had come by a position, but could be searched only later.
_FROM_UNKNOWN = """
from living_timelines
where crate = $1 and known_until is null and known_from > $2 and first_known > $2 and position <= $2 and not erased
"""
_UNKNOWN = f"select document_id, revision {_FROM_UNKNOWN} order by document_id, revision"
# $3 and $4 are one instant, in both units. What was in force then, as known then, the lanes let in: whatever became known
# later they leave out. So what differs is what they let in and wasn't: because its end was known already, or because it
# wasn't known at all. A row with a gap comes with its spans, since two bounds can't say when it counts.
_DIFFERING = f"""
with suspects as (
    select document_id, revision, case when has_gap then spans end as spans from living_timelines
    where crate = $1 and known_from <= $2 and known_until > $2 and not erased
        and (has_gap or (effective_at <= $3 and in_force_until <= $4))
    union all
    select document_id, revision, spans from living_timelines
    where crate = $1 and known_until is null and known_from <= $2 and not erased and has_gap
    union all
    select document_id, revision, null {_FROM_UNKNOWN}
), sides as (
    select s.*, coalesce(n.effective_at <= $3 and ($4 < n.in_force_until or $2 < n.until_known_from), false) as lanes
    from suspects s
    left join living_timelines n on n.crate = $1 and n.document_id = s.document_id and n.revision = s.revision
        and n.known_until is null and not n.erased
)
select * from sides where spans is not null or lanes order by document_id, revision
"""  # noqa: S608  (a constant)


class PostgresPastForces:
    """See ports.PastForces."""

    def __init__(self, *, database: Database) -> None:
        self._pool = database.pool

    async def differences(self, crate_id: str, *, as_of: int, at: int) -> Differences:
        """See PastForces."""
        moment = from_instant(as_of)
        with answering():
            rows = await self._pool.fetch(_DIFFERING, crate_id, at, moment, as_of)
        also: list[RevisionKey] = []
        without: list[RevisionKey] = []
        for row in rows:
            exact = row["spans"] is not None and counts(decode_spans(row["spans"]), moment)
            if exact != row["lanes"]:
                (also if exact else without).append((row["document_id"], row["revision"]))
        return Differences(also=tuple(also), without=tuple(without))

    async def unknown(self, crate_id: str, *, at: int) -> tuple[RevisionKey, ...]:
        """See PastForces."""
        with answering():
            rows = await self._pool.fetch(_UNKNOWN, crate_id, at)
        return tuple((row["document_id"], row["revision"]) for row in rows)
