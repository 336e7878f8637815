"""What every keyword lane does. One suite for all adapters."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.domain.analysis import analyse_query, analyse_text
from services.index.domain.records import EVERY_REVISION, Form, KeywordChange, Kind, LaneFilter, TermStatistics
from services.index.ports import KeywordLane, KeywordLanes
from services.kernel.errors import Rejected, Unavailable
from tests.integration.index.lane_records import document, keyword_record, record, texts

Reopen = Callable[[], Awaitable[KeywordLanes]]


@pytest.fixture(params=["tantivy"])
async def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reopen]:
    """Opens the same storage again, as after a restart."""
    assert request.param == "tantivy"
    opened: list[TantivyKeywordLanes] = []

    async def again() -> KeywordLanes:
        for lanes in opened:
            await lanes.close()
        opened.append(TantivyKeywordLanes(root=tmp_path))
        return opened[-1]

    yield again
    for lanes in opened:
        await lanes.close()


@pytest.fixture
async def lanes(reopen: Reopen) -> KeywordLanes:
    return await reopen()


@pytest.fixture
async def lane(lanes: KeywordLanes) -> KeywordLane:
    return await lanes.open("main", 1)


async def found(lane: KeywordLane, query: str, lane_filter: LaneFilter | None = None, limit: int = 10) -> list[str]:
    hits = await lane.search(analyse_query(query), lane_filter or LaneFilter(), limit)
    return [f"{int(hit.document_id, 16)}.{hit.revision}.{hit.ordinal}" for hit in hits]


async def test_a_new_lane_is_empty(lane: KeywordLane) -> None:
    assert await lane.position() == 0
    assert await lane.count() == 0
    assert await found(lane, "anything") == []
    assert await lane.term_statistics(["x"], Kind.CHUNK) == TermStatistics(0, {"x": 0})


async def test_records_are_found_by_their_words(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "the west gate opens", "a second chunk"), texts(2, "the east door")], 7)
    assert await lane.position() == 7
    assert await lane.count() == await lane.count(Kind.CHUNK) == 3
    assert await found(lane, "When does the west gate open?") == ["1.1.0"]
    assert await found(lane, "second door") == ["1.1.1", "2.1.0"]


async def test_no_terms_find_nothing(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "to be or not to be")], 1)
    assert await found(lane, "... / \\ !") == []
    assert await found(lane, "to be") == ["1.1.0"]


@pytest.mark.parametrize(
    "query",
    ["AFSC/RACE:USBL", "part:(QX-9 AND", "rev. C++ ~2 ^5", '"unclosed quote cost', "cost && discount || x !", "qx9"],
)
async def test_raw_query_syntax_is_only_words(lane: KeywordLane, query: str) -> None:
    await lane.replace(
        [texts(1, 'Part AFSC/RACE:USBL (rev. C++) costs 40% less than part "QX-9" [2019].'), texts(2, "unrelated")], 1
    )
    assert await found(lane, query) == ["1.1.0"]
    assert await found(lane, "title:secret OR *:*") == []
    assert await found(lane, '{"query":{"match_all":{}}}') == []


async def test_scripts_and_long_tokens_are_found(lane: KeywordLane) -> None:
    token = "k9Xq7" * 9
    await lane.replace([texts(1, "東京タワーは高い"), texts(2, "我们需要缴纳税款"), texts(3, f"id {token} end")], 1)
    assert await found(lane, "タワー") == ["1.1.0"]
    assert await found(lane, "税") == ["2.1.0"]
    assert await found(lane, token) == ["3.1.0"]


async def test_a_replacement_leaves_nothing_of_the_old_revision(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "annual leave is 25 days", "see also page nine"), texts(2, "other leave")], 1)
    await lane.replace([texts(1, "annual leave is 28 days", revision=2)], 2)
    assert await found(lane, "25 nine") == []
    assert await found(lane, "28") == ["1.2.0"]
    assert await lane.count() == 2


async def test_a_deletion_frees_the_only_place(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "west gate gate gate"), texts(2, "the west gate opens at six")], 1)
    assert await found(lane, "west gate", limit=1) == ["1.1.0"]
    await lane.replace([KeywordChange(document(1), EVERY_REVISION)], 2)
    assert await found(lane, "west gate", limit=1) == ["2.1.0"]
    await lane.replace([KeywordChange(document(1), EVERY_REVISION), KeywordChange(document(99), EVERY_REVISION)], 3)
    assert await lane.count() == 1


async def test_changes_of_one_batch_apply_in_order(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "alpha"), texts(1, "beta", revision=2), texts(1, "alpha", revision=3)], 5)
    assert await found(lane, "alpha beta") == ["1.3.0"]


async def test_the_same_or_an_older_batch_changes_nothing(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "old words")], 3)
    await lane.replace([texts(1, "new words", revision=2)], 6)
    await lane.replace([texts(1, "old words")], 3)
    await lane.replace([texts(1, "other")], 6)
    assert await found(lane, "words other") == ["1.2.0"]
    assert await lane.position() == 6


async def test_only_the_named_kinds_are_replaced(lane: KeywordLane) -> None:
    whole = keyword_record(record(1, kind=Kind.DOCUMENT), "gate whole", title="Gate")
    chunk = keyword_record(record(1), "gate part")
    await lane.replace([KeywordChange(document(1), EVERY_REVISION, (whole, chunk))], 1)
    fresh = keyword_record(record(1, revision=2), "gate fresh")
    await lane.replace([KeywordChange(document(1), EVERY_REVISION, (fresh,), kinds=(Kind.CHUNK,))], 2)
    assert await found(lane, "gate") == ["1.2.0"]
    assert await found(lane, "gate", LaneFilter(kind=Kind.DOCUMENT)) == ["1.1.0"]
    assert (await lane.count(Kind.CHUNK), await lane.count(Kind.DOCUMENT), await lane.count()) == (1, 1, 2)


async def test_documents_do_not_count_in_the_statistics_of_chunks(lane: KeywordLane) -> None:
    chunks = [texts(n, "gate" if n < 3 else "door") for n in range(10)]
    await lane.replace(chunks, 1)
    before = await lane.search(["gate"], LaneFilter(), 5)
    documents = [
        KeywordChange(
            document(n),
            EVERY_REVISION,
            (keyword_record(record(n, kind=Kind.DOCUMENT), "gate " * 50),),
            kinds=(Kind.DOCUMENT,),
        )
        for n in range(10)
    ]
    await lane.replace(documents, 2)
    assert await lane.search(["gate"], LaneFilter(), 5) == before
    assert await lane.term_statistics(["gate", "none"], Kind.CHUNK) == TermStatistics(10, {"gate": 3, "none": 0})
    assert await lane.term_statistics(["gate"], Kind.DOCUMENT) == TermStatistics(10, {"gate": 10})


async def test_statistics_leave_deleted_records_out_and_count_a_record_once(lane: KeywordLane) -> None:
    both = keyword_record(record(1), "gate gate", title="gate", entities=analyse_text("gate"))
    only_entity = keyword_record(record(2, form=Form.INFORMAL), "met", entities=["2026-03-01"])
    changes = [
        KeywordChange(document(1), EVERY_REVISION, (both,)),
        KeywordChange(document(2), EVERY_REVISION, (only_entity,)),
        texts(3, "gate"),
    ]
    await lane.replace(changes, 1)
    assert (await lane.term_statistics(["gate", "2026-03-01"], Kind.CHUNK)).document_frequency == {
        "gate": 2,
        "2026-03-01": 1,
    }
    await lane.replace([KeywordChange(document(3), EVERY_REVISION)], 2)
    assert await lane.term_statistics(["gate", "gate"], Kind.CHUNK) == TermStatistics(2, {"gate": 1})


async def test_crates_and_generations_are_apart(lanes: KeywordLanes) -> None:
    one, other, next_generation = [await lanes.open(*key) for key in (("a", 1), ("b", 1), ("a", 2))]
    await one.replace([texts(1, "gate"), texts(2, "gate")], 1)
    await other.replace([texts(3, "gate")], 1)
    assert await found(other, "gate") == ["3.1.0"]
    assert await found(next_generation, "gate") == []
    assert (await other.term_statistics(["gate"], Kind.CHUNK)).document_frequency == {"gate": 1}
    assert await lanes.open("a", 1) is one


async def test_scores_are_bm25(lane: KeywordLane) -> None:
    # Lengths up to 40 terms are exact in the engine's one-byte length.
    bodies = ["gate " * 3 + "x " * 5, "gate y y", "z " * 12, "w"]
    await lane.replace([texts(n, body) for n, body in enumerate(bodies)], 1)
    hits = {int(h.document_id, 16): h.score for h in await lane.search(["gate"], LaneFilter(), 10)}
    lengths = [len(body.split()) for body in bodies]
    average = sum(lengths) / len(lengths)
    idf = math.log(1 + (4 - 2 + 0.5) / (2 + 0.5))
    for number, frequency in ((0, 3), (1, 1)):
        norm = 1.2 * (1 - 0.75 + 0.75 * lengths[number] / average)
        assert hits[number] == pytest.approx(idf * frequency * 2.2 / (frequency + norm), rel=1e-4)


async def test_a_term_asked_twice_counts_twice(lane: KeywordLane) -> None:
    await lane.replace([texts(1, "gate"), texts(2, "door")], 1)
    once = await lane.search(["gate"], LaneFilter(), 1)
    twice = await lane.search(["gate", "gate"], LaneFilter(), 1)
    assert twice[0].score == pytest.approx(2 * once[0].score)


async def test_title_and_entities_raise_a_record(lane: KeywordLane) -> None:
    await lane.replace(
        [
            KeywordChange(document(1), EVERY_REVISION, (keyword_record(record(1), "gate words here"),)),
            KeywordChange(document(2), EVERY_REVISION, (keyword_record(record(2), "words here", title="gate"),)),
            KeywordChange(
                document(3), EVERY_REVISION, (keyword_record(record(3), "gate words here", entities=["gate"]),)
            ),
        ],
        1,
    )
    assert await found(lane, "gate") == ["3.1.0", "2.1.0", "1.1.0"]


FILTERED = [
    (LaneFilter(), ["1.1.0", "2.1.0", "3.1.0", "4.1.0"]),
    (LaneFilter(forms=(Form.INFORMAL,)), ["2.1.0"]),
    (LaneFilter(forms=(Form.INFORMAL, Form.STRUCTURED)), ["2.1.0", "3.1.0"]),
    (LaneFilter(source_domains=("b.example",)), ["3.1.0", "4.1.0"]),
    (LaneFilter(document_ids=(document(1), document(4))), ["1.1.0", "4.1.0"]),
    (LaneFilter(document_ids=(document(1),), source_domains=("b.example",)), []),
    (LaneFilter(document_ids=(document(77),)), []),
    (LaneFilter(source_domains=('quote " AND *',)), []),
]


@pytest.mark.parametrize(("lane_filter", "expected"), FILTERED)
async def test_filters_work_before_the_limit_and_leave_scores_alone(
    lane: KeywordLane, lane_filter: LaneFilter, expected: list[str]
) -> None:
    await lane.replace(
        [
            texts(1, "gate gate"),
            texts(2, "gate two words", form=Form.INFORMAL),
            texts(3, "gate then three words", form=Form.STRUCTURED, domain="b.example"),
            texts(4, "gate then some more four words", domain="b.example"),
        ],
        1,
    )
    assert await found(lane, "gate", lane_filter) == expected
    if expected:
        assert await found(lane, "gate", lane_filter, limit=1) == expected[:1]
    every = {h.document_id: h.score for h in await lane.search(["gate"], LaneFilter(), 10)}
    for hit in await lane.search(["gate"], lane_filter, 10):
        assert hit.score == pytest.approx(every[hit.document_id])


async def test_many_documents_fit_in_a_filter(lane: KeywordLane) -> None:
    await lane.replace([texts(n, "gate") for n in range(20)], 1)
    allowed = LaneFilter(document_ids=tuple(document(n) for n in range(5, 5000)))
    assert await found(lane, "gate", allowed, limit=3) == ["5.1.0", "6.1.0", "7.1.0"]


async def test_equal_scores_come_by_document_revision_and_ordinal(lane: KeywordLane) -> None:
    # Arrival is against the order, in several commits, and there are more equals than the limit.
    for position in range(1, 6):
        numbers = range(48 - 8 * position, 56 - 8 * position)
        await lane.replace([texts(n, "gate here", "gate here") for n in reversed(numbers)], position)
    assert await found(lane, "gate", limit=5) == ["8.1.0", "8.1.1", "9.1.0", "9.1.1", "10.1.0"]
    assert await found(lane, "gate", limit=1) == ["8.1.0"]


async def test_a_hit_says_what_was_found(lane: KeywordLane) -> None:
    high = 0xFFEE_DDCC_BBAA_9988_7766_5544_3322_1100
    big = record(high, revision=70_000, ordinal=60_000, form=Form.STRUCTURED)
    await lane.replace([KeywordChange(document(high), EVERY_REVISION, (keyword_record(big, "gate"),))], 1)
    (hit,) = await lane.search(["gate"], LaneFilter(), 1)
    assert (hit.document_id, hit.revision, hit.ordinal, hit.form) == (document(high), 70_000, 60_000, Form.STRUCTURED)


async def test_everything_is_there_after_a_restart(reopen: Reopen) -> None:
    lane = await (await reopen()).open("main", 1)
    await lane.replace([texts(1, "gate")], 4)
    await lane.replace([], 9)
    again = await (await reopen()).open("main", 1)
    assert await again.position() == 9
    assert await found(again, "gate") == ["1.1.0"]
    await again.replace([texts(2, "gate gate")], 10)
    assert await found(again, "gate") == ["2.1.0", "1.1.0"]


async def test_an_empty_batch_moves_the_position(lane: KeywordLane) -> None:
    await lane.replace([], 5)
    assert await lane.position() == 5
    await lane.flush()
    await lane.replace([], 4)
    assert await lane.position() == 5


async def test_a_dropped_lane_is_gone_and_starts_anew(lanes: KeywordLanes) -> None:
    lane = await lanes.open("main", 1)
    await lane.replace([texts(1, "gate")], 4)
    await lane.drop()
    with pytest.raises(Unavailable, match="main"):
        await found(lane, "gate")
    again = await lanes.open("main", 1)
    assert (await again.position(), await again.count()) == (0, 0)


async def test_a_closed_lane_says_so_and_opens_again(lanes: KeywordLanes) -> None:
    lane = await lanes.open("main", 1)
    await lane.close()
    await lane.close()
    with pytest.raises(Unavailable):
        await lane.count()
    assert await (await lanes.open("main", 1)).count() == 0


async def test_searches_and_batches_do_not_disturb_each_other(lane: KeywordLane) -> None:
    async def write() -> None:
        for position in range(1, 8):
            await lane.replace([texts(1, *["gate"] * 5, revision=position), texts(2, "gate")], position)

    async def read() -> None:
        for _ in range(40):
            hits = await lane.search(["gate"], LaneFilter(document_ids=(document(1),)), 20)
            revisions = {hit.revision for hit in hits}
            assert len(revisions) <= 1
            assert len(hits) in {0, 5}

    await asyncio.gather(write(), read(), read())


@pytest.mark.parametrize(("crate", "generation"), [("../up", 1), ("Upper", 1), ("", 1), ("main", 0)])
async def test_a_lane_needs_a_crate_and_a_generation(lanes: KeywordLanes, crate: str, generation: int) -> None:
    with pytest.raises(Rejected):
        await lanes.open(crate, generation)


async def test_a_limit_below_one_is_rejected(lane: KeywordLane) -> None:
    with pytest.raises(Rejected, match="at least 1"):
        await lane.search(["gate"], LaneFilter(), 0)


async def test_propositions_are_records_of_their_chunk(lane: KeywordLane) -> None:
    told = [
        replace(record(1, ordinal=ordinal), statement=number)
        for ordinal, number in ((0, 1), (0, 1_023), (4_194_303, 2))
    ]
    words = ("alpha", "beta gamma", "delta")
    records = tuple(keyword_record(of, text) for of, text in zip(told, words, strict=True))
    await lane.replace([KeywordChange(document(1), EVERY_REVISION, records)], 1)
    for of, text in zip(told, words, strict=True):
        (hit,) = await lane.search(analyse_query(text), LaneFilter(), 10)
        assert (hit.ordinal, hit.statement, hit.revision) == (of.ordinal, of.statement, 1)
    await lane.replace([KeywordChange(document(1), 1)], 2)
    assert await lane.count() == 0
