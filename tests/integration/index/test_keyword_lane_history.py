"""What every keyword lane keeps of revisions that aren't current. One suite for all adapters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.domain.force import Force
from services.index.domain.records import (
    EVERY_REVISION,
    Form,
    KeywordChange,
    Kind,
    LaneFilter,
    Reach,
    TermStatistics,
)
from services.index.ports import KeywordLane, KeywordLanes
from tests.integration.index.lane_histories import FOUND, HISTORY
from tests.integration.index.lane_records import document, texts

EVERY = LaneFilter(reach=Reach.EVERY, as_of=1000)
PAST = Force(effective_from=0, in_force_until=9, position=1, current=False)


@pytest.fixture(params=["tantivy"])
async def lanes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KeywordLanes]:
    assert request.param == "tantivy"
    made = TantivyKeywordLanes(root=tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def lane(lanes: KeywordLanes) -> KeywordLane:
    return await lanes.open("main", 1)


def change(number: int, revision: int, text: str, force: Force) -> KeywordChange:
    return texts(number, text, revision=revision, force=force, of=revision)


async def found(lane: KeywordLane, term: str, lane_filter: LaneFilter, limit: int = 10) -> set[str]:
    return {f"{int(h.document_id, 16)}.{h.revision}" for h in await lane.search([term], lane_filter, limit)}


async def filled(lane: KeywordLane) -> None:
    await lane.replace([change(n, r, "gate", force) for (n, r), force in HISTORY.items()], 12)


@pytest.mark.parametrize(("lane_filter", "expected"), FOUND)
async def test_reach_and_moment_choose_the_revisions(
    lane: KeywordLane, lane_filter: LaneFilter, expected: set[str]
) -> None:
    await filled(lane)
    assert await found(lane, "gate", lane_filter) == expected
    assert len(await found(lane, "gate", lane_filter, limit=1)) == min(1, len(expected))


async def test_a_revision_is_replaced_alone(lane: KeywordLane) -> None:
    await lane.replace([change(1, 1, "gate", PAST), change(1, 2, "gate", HISTORY[1, 3])], 1)
    await lane.replace([change(1, 1, "door", PAST)], 2)
    assert await found(lane, "gate", EVERY) == {"1.2"}
    assert await found(lane, "door", EVERY) == {"1.1"}
    await lane.replace([KeywordChange(document(1), 2)], 3)
    assert await lane.count() == 1


async def test_an_erased_document_leaves_no_revision(lane: KeywordLane) -> None:
    await filled(lane)
    await lane.replace([KeywordChange(document(1), EVERY_REVISION)], 20)
    assert await found(lane, "gate", EVERY) == {"2.1", "3.1"}


async def test_a_revision_counts_at_other_times_once_it_comes_again(lane: KeywordLane) -> None:
    await lane.replace([change(1, 1, "gate", HISTORY[1, 3])], 1)
    await lane.replace([change(1, 1, "gate", PAST), change(1, 2, "gate", HISTORY[1, 3])], 2)
    assert await found(lane, "gate", LaneFilter()) == {"1.2"}
    assert await found(lane, "gate", LaneFilter(reach=Reach.IN_FORCE, as_of=5)) == {"1.1"}
    assert await lane.count(Kind.CHUNK) == 2


async def test_statistics_count_what_the_reach_can_find(lane: KeywordLane) -> None:
    await filled(lane)
    assert await lane.term_statistics(["gate", "none"], Kind.CHUNK) == TermStatistics(2, {"gate": 2, "none": 0})
    assert await lane.term_statistics(["gate"], Kind.CHUNK, Reach.EVERY) == TermStatistics(5, {"gate": 5})


async def test_history_leaves_order_and_forms_alone(lane: KeywordLane) -> None:
    informal = texts(4, "gate gate", revision=1, form=Form.INFORMAL, force=PAST, of=1)
    await lane.replace([informal, change(5, 1, "gate lamp", PAST)], 1)
    hits = await lane.search(["gate"], EVERY, 5)
    assert [(int(hit.document_id, 16), hit.form) for hit in hits] == [(4, Form.INFORMAL), (5, Form.TEXT)]
    assert hits[0].score > hits[1].score > 0


async def test_history_is_there_after_a_restart(tmp_path: Path) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    await filled(await lanes.open("main", 1))
    await lanes.close()
    again = TantivyKeywordLanes(root=tmp_path)
    lane = await again.open("main", 1)
    for lane_filter, expected in FOUND:
        assert await found(lane, "gate", lane_filter) == expected
    await again.close()


async def test_a_lane_of_an_older_layout_starts_anew(tmp_path: Path) -> None:
    folder = tmp_path / "main" / "1" / "keyword"
    (folder / "chunk").mkdir(parents=True)
    (folder / "chunk" / "meta.json").write_text("{}")
    (folder / "position.json").write_text(json.dumps({"layout": "keyword-1", "position": 40}))
    lanes = TantivyKeywordLanes(root=tmp_path)
    lane = await lanes.open("main", 1)
    assert (await lane.position(), await lane.count()) == (0, 0)
    await lanes.close()
