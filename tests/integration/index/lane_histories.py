"""Revisions in and out of force, for the suites of both lanes."""

from __future__ import annotations

from services.index.domain.force import Force
from services.index.domain.records import LaneFilter, Reach
from tests.integration.index.lane_records import document

LATEST = 253_402_300_799_999_999
"""The last instant that a request can name."""

# Document 1 has three revisions, one after the other; document 2 was retired; document 3 comes into force later, with a
# time before 1970 in front.
HISTORY: dict[tuple[int, int], Force] = {
    (1, 1): Force(effective_from=-50, in_force_until=100, position=3, current=False),
    (1, 2): Force(effective_from=100, in_force_until=200, position=7, current=False),
    (1, 3): Force(effective_from=200, position=12),
    (2, 1): Force(effective_from=0, in_force_until=150, until_known_from=10, position=4, current=False),
    (3, 1): Force(effective_from=300, position=9),
}
# What a filter finds of it, as "document.revision".
FOUND: list[tuple[LaneFilter, set[str]]] = [
    (LaneFilter(), {"1.3", "3.1"}),
    (LaneFilter(as_of=100), {"1.3", "3.1"}),
    (LaneFilter(at=9), {"3.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=-51), set()),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=-50), {"1.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=99), {"1.1", "2.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=100), {"1.2", "2.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=150), {"1.2"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=200), {"1.3"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=LATEST), {"1.3", "3.1"}),
    (LaneFilter(reach=Reach.EVERY, as_of=-51), set()),
    (LaneFilter(reach=Reach.EVERY, as_of=199), {"1.1", "1.2", "2.1"}),
    (LaneFilter(reach=Reach.EVERY, as_of=300), {"1.1", "1.2", "1.3", "2.1", "3.1"}),
    (LaneFilter(reach=Reach.EVERY, as_of=300, at=7), {"1.1", "1.2", "2.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=300, at=2), set()),
    # Before its end was known it had none.
    (LaneFilter(reach=Reach.IN_FORCE, as_of=160, at=10), {"1.2"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=160, at=9), {"1.2", "2.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=160, at=9, without=((document(2), 1),)), {"1.2"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=-1, at=9), {"1.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=250, at=9, also=((document(1), 2),)), {"1.2", "2.1"}),
    (LaneFilter(reach=Reach.IN_FORCE, as_of=99, without=((document(2), 1), (document(9), 1))), {"1.1"}),
    (
        LaneFilter(
            reach=Reach.IN_FORCE, as_of=99, also=((document(1), 3), (document(7), 1)), without=((document(1), 1),)
        ),
        {"1.3", "2.1"},
    ),
    (LaneFilter(also=((document(2), 1),), without=((document(1), 3),)), {"2.1", "3.1"}),
    (LaneFilter(without=((document(1), 3),)), {"3.1"}),
    (LaneFilter(at=9, also=((document(1), 2), (document(1), 3))), {"1.2", "1.3", "3.1"}),
    # The lists don't get past the other conditions.
    (LaneFilter(also=((document(2), 1),), document_ids=(document(1),)), {"1.3"}),
    (LaneFilter(reach=Reach.EVERY, as_of=300, document_ids=(document(2),)), {"2.1"}),
    (LaneFilter(reach=Reach.EVERY, as_of=300, source_domains=("b.example",)), set()),
    (
        LaneFilter(
            reach=Reach.EVERY,
            as_of=300,
            also=tuple((document(n), 1) for n in range(2, 3000)),
            without=tuple((document(1), n) for n in range(1, 3000)),
        ),
        {"2.1", "3.1"},
    ),
]
