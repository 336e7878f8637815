"""The other services, played in memory."""

# ruff: noqa: ARG002  (doubles take what their port takes)

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from services.index.domain.analysis import analyse_query
from services.kernel.errors import Failure
from services.query.domain.claims import AnswerFact, Claim, IssuedReceipt, RawAnswer, Repaired
from services.query.domain.crate import CrateRules
from services.query.domain.evidence import Vector
from services.query.domain.living import Family, Moment, Reach, Relation, StateReport, View
from services.query.domain.modes import AnswerMode
from services.query.domain.values import (
    Form,
    LaneAnswer,
    LaneFilter,
    LaneHit,
    Passage,
    RecordKey,
    TermWeight,
)
from services.query.ports import Fetched, QueryVector, Walk

MODEL = "model"


@dataclass
class Crates:
    """One crate's settings."""

    held: CrateRules = field(default_factory=lambda: CrateRules(mode=AnswerMode.LIGHT))

    async def rules(self, crate_id: str) -> CrateRules:
        return self.held


@dataclass
class IndexDouble:
    """Lanes over a few passages: shared words rank them, the vector lane returns all in order."""

    passages: tuple[Passage, ...] = ()
    positions: tuple[int, int, int] = (10, 10, 10)
    keyword_failure: Failure | None = None
    vector_failure: Failure | None = None
    delay_s: float = 0.0
    cosine: float = 0.9
    asked: list[tuple[str, str, LaneFilter, int]] = field(default_factory=list)
    views: list[View] = field(default_factory=list)
    reports: dict[str, StateReport] = field(default_factory=dict)
    edges: tuple[Relation, ...] = ()
    series: tuple[Family, ...] = ()

    def _seen(self, view: View, lane_filter: LaneFilter) -> tuple[Passage, ...]:
        def shown(passage: Passage) -> bool:
            name = passage.key.document_id
            report = self.reports.get(name)
            if lane_filter.document_ids and name not in lane_filter.document_ids:
                return False
            return view.reach is not Reach.IN_FORCE or report is None or report.in_force

        return tuple(passage for passage in self.passages if shown(passage))

    async def search_keyword(
        self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        self.asked.append(("keyword", query, lane_filter, limit))
        self.views.append(view)
        passages = self._seen(view, lane_filter)
        await asyncio.sleep(self.delay_s)
        if self.keyword_failure:
            raise self.keyword_failure
        terms = tuple(dict.fromkeys(analyse_query(query)))
        frequency = {term: sum(term in passage.terms for passage in self.passages) for term in terms}
        scores = [(sum(term in passage.terms for term in terms), passage) for passage in passages]
        hits = [
            LaneHit(passage.key, float(score), passage.form)
            for score, passage in sorted(scores, key=lambda pair: (-pair[0], pair[1].key))
            if score
        ]
        weights = tuple(TermWeight(term, 1.0 if frequency[term] else 0.0, frequency[term]) for term in terms)
        return LaneAnswer(tuple(hits), self.positions[0], weights, 1)

    async def search_vector(
        self, crate_id: str, vector: QueryVector, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        self.asked.append(("vector", vector.model_id, lane_filter, limit))
        if self.vector_failure:
            raise self.vector_failure
        hits = tuple(LaneHit(passage.key, self.cosine, Form.TEXT) for passage in self._seen(view, lane_filter))
        return LaneAnswer(hits, self.positions[1], (), 1)

    async def fetch(self, crate_id: str, keys: Sequence[RecordKey], view: View) -> Fetched:
        held = {passage.key: passage for passage in self.passages}
        states = tuple(self.reports[key.document_id] for key in keys if key.document_id in self.reports)
        return Fetched(tuple(held[key] for key in keys if key in held), self.positions[2], states)

    async def show(self, crate_id: str, keys: Sequence[RecordKey], terms: Sequence[str], view: View) -> Fetched:
        fetched = await self.fetch(crate_id, keys, view)
        shown = (replace(item, runs=(), terms=item.terms & frozenset(terms)) for item in fetched.passages)
        return replace(fetched, passages=tuple(shown))

    async def position(self, crate_id: str) -> int:
        return self.positions[2]

    async def neighbours(
        self, crate_id: str, document_ids: Sequence[str], walk: Walk, moment: Moment
    ) -> tuple[Relation, ...]:
        reached, found = set(document_ids), set[Relation]()
        for _ in range(walk.depth):
            step = [edge for edge in self.edges if not walk.kinds or edge.kind in walk.kinds]
            step = [edge for edge in step if edge.source in reached or edge.target in reached]
            found |= set(step)
            reached |= {end for edge in step for end in (edge.source, edge.target)}
        return tuple(edge for edge in self.edges if edge in found)

    async def states(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[StateReport, ...]:
        return tuple(self.reports[name] for name in document_ids if name in self.reports)

    async def families(self, crate_id: str, document_ids: Sequence[str], moment: Moment) -> tuple[Family, ...]:
        wanted = set(document_ids)
        return tuple(one for one in self.series if wanted & {member.document_id for member in one.members})


@dataclass
class EmbedderDouble:
    """Every text has the same vector, unless the words are to fail."""

    failure: Failure | None = None
    words_failure: Failure | None = None
    embedded: list[str] = field(default_factory=list)

    async def embed_query(self, crate_id: str, text: str) -> QueryVector:
        if self.failure:
            raise self.failure
        return QueryVector(MODEL, np.asarray([1.0, 0.0], dtype=np.float32))

    async def embed_texts(self, crate_id: str, model_id: str, texts: Sequence[str]) -> tuple[Vector, ...]:
        if self.words_failure:
            raise self.words_failure
        self.embedded += texts
        sentence, word = np.asarray([1.0, 0.0], dtype=np.float32), np.asarray([0.0, 1.0], dtype=np.float32)
        return tuple(sentence if " " in text else word * 0 for text in texts)

    async def fingerprints(self, crate_id: str) -> tuple[str, ...]:
        return ("embedding:model:f",)


@dataclass
class CitationsDouble:
    """Leaves the text as it is; markers listed as dropped are not cited."""

    dropped: tuple[int, ...] = ()
    drafts: list[RawAnswer] = field(default_factory=list)

    async def repair(self, draft: RawAnswer) -> Repaired:
        self.drafts.append(draft)
        cited = tuple(number for number in range(1, draft.source_count + 1) if number not in self.dropped)
        return Repaired(draft.text, cited, ("lost",) if self.dropped else (), ("removed",) if self.dropped else ())


@dataclass
class OriginalsDouble:
    """Reads spans of one body."""

    body: bytes = b""
    read_spans: list[tuple[RecordKey, tuple[tuple[int, int], ...]]] = field(default_factory=list)

    async def read(self, crate_id: str, key: RecordKey, spans: Sequence[tuple[int, int]]) -> tuple[bytes, ...]:
        self.read_spans.append((key, tuple(spans)))
        return tuple(self.body[start:end] for start, end in spans)


@dataclass
class ReceiptsDouble:
    """Signs everything, or fails, or takes too long."""

    failure: Failure | None = None
    delay_s: float = 0.0
    claims: list[Claim] = field(default_factory=list)

    async def issue(self, claim: Claim) -> IssuedReceipt:
        await asyncio.sleep(self.delay_s)
        if self.failure:
            raise self.failure
        self.claims.append(claim)
        return IssuedReceipt("r" * 8, b"bundle")


@dataclass
class AnswersDouble:
    """Keeps the signals, or fails."""

    failure: Failure | None = None
    facts: list[AnswerFact] = field(default_factory=list)

    async def record(self, crate_id: str, fact: AnswerFact) -> None:
        if self.failure:
            raise self.failure
        self.facts.append(fact)
