"""What was known about the force of revisions at past positions, read from Postgres."""

from __future__ import annotations

from services.index.codec.living import decode_spans
from services.index.domain.content import Differences
from services.index.domain.living.changes import counts, from_instant
from services.index.domain.records import RevisionKey
from services.kernel.db import Database, answering

# $3 and $4 are one instant, in both units. A row with a gap comes with its spans: two bounds can't say when it counts.
_DIFFERING = """
with then_known as (
    select * from living_timelines where crate = $1 and known_from <= $2 and known_until > $2 and not erased
    union all
    select * from living_timelines
    where crate = $1 and known_until is null and has_gap and known_from <= $2 and not erased
), keys as (
    select document_id, revision from living_timelines where crate = $1 and known_from <= $2 and known_until > $2
    union
    select document_id, revision from then_known
    union
    select document_id, revision from living_timelines
    where crate = $1 and known_until is null and known_from > $2 and position <= $2
), sides as (
    select k.document_id, k.revision,
        coalesce(t.effective_at <= $3 and $4 < t.in_force_until, false) as exact,
        coalesce(n.effective_at <= $3 and ($4 < n.in_force_until or $2 < n.until_known_from), false) as lanes,
        case when t.has_gap then t.spans end as spans
    from keys k
    left join then_known t on t.document_id = k.document_id and t.revision = k.revision
    left join living_timelines n on n.crate = $1 and n.document_id = k.document_id and n.revision = k.revision
        and n.known_until is null and not n.erased
)
select * from sides where spans is not null or exact <> lanes order by document_id, revision
"""


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
            exact = row["exact"] if row["spans"] is None else counts(decode_spans(row["spans"]), moment)
            if exact != row["lanes"]:
                (also if exact else without).append((row["document_id"], row["revision"]))
        return Differences(also=tuple(also), without=tuple(without))
