"""Forces by succession alone, and past forces that differ in nothing: what holds without a living state."""

from __future__ import annotations

from collections.abc import Mapping

from services.index.domain.content import Differences
from services.index.domain.documents import Plan
from services.index.domain.force import Force
from services.index.domain.records import Reach, RevisionKey
from services.index.domain.succession import forces_after
from services.index.ports import Tables


class SuccessionForces:
    """See ports.Forces: a revision is in force until the next one is effective or its document is retired."""

    def __init__(self, *, tables: Tables) -> None:
        self._tables = tables

    async def after(self, crate_id: str, plan: Plan) -> Mapping[RevisionKey, Force]:
        """See Forces."""
        if not plan.states:
            return {}
        known = await self._tables.known_revisions(crate_id, [state.document_id for state in plan.states])
        return forces_after(known, plan)


class NoDifferences:
    """See ports.PastForces: nobody keeps past forces yet, so a past position only leaves out what came later."""

    async def differences(self, _crate_id: str, *, reach: Reach, as_of: int, at: int) -> Differences:
        """See PastForces."""
        del reach, as_of, at
        return Differences()
