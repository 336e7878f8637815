"""Profiles: frozen manifests of everything that shapes a search or an answer.

A manifest holds text and whole numbers from 0 only, so that its encoding, and with it the digest in a receipt, is the
same everywhere. Shares and weights are in millionths (ppm), a penalty is what is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TypeAlias

from services.query.domain.evidence import EvidenceRule, SoftMatch
from services.query.domain.fusion import LaneWeights
from services.query.domain.values import Form

PPM = 1_000_000
Plain: TypeAlias = "int | str | dict[str, Plain]"


@dataclass(frozen=True, slots=True)
class Features:
    """Named feature flags."""

    receipts: bool = True
    marker_repair: bool = True
    abstention: bool = True
    soft_word_match: bool = True
    level_per_lane: bool = True
    relations: bool = False
    living_state: bool = False
    smallest_evidence_set: bool = False
    citation_controller: bool = False
    surface_routing: bool = False
    coverage_and_answer_sets: bool = False
    reranking: bool = False
    multi_lane: bool = False


@dataclass(frozen=True, slots=True)
class FormWeights:
    """Shares of the lanes in percent, vector and keyword, by the candidate's form."""

    text_vector: int
    text_keyword: int
    structured_vector: int
    structured_keyword: int
    informal_vector: int
    informal_keyword: int

    def by_form(self) -> dict[Form, LaneWeights]:
        """The weights as fractions."""
        return {
            Form.TEXT: LaneWeights(self.text_vector / 100, self.text_keyword / 100),
            Form.STRUCTURED: LaneWeights(self.structured_vector / 100, self.structured_keyword / 100),
            Form.INFORMAL: LaneWeights(self.informal_vector / 100, self.informal_keyword / 100),
        }


@dataclass(frozen=True, slots=True)
class RuleWeights:
    """An evidence rule in ppm; see `EvidenceRule`."""

    coverage: int
    own: int
    name_missing_penalty: int
    number_missing_penalty: int
    focus_missing_penalty: int
    meaning: int
    holds: int
    threshold: int

    def rule(self) -> EvidenceRule:
        """The rule as fractions."""
        return EvidenceRule(
            coverage=self.coverage / PPM,
            own=self.own / PPM,
            name_missing=-self.name_missing_penalty / PPM,
            number_missing=-self.number_missing_penalty / PPM,
            focus_missing=-self.focus_missing_penalty / PPM,
            meaning=self.meaning / PPM,
            holds=self.holds / PPM,
            bias=-self.threshold / PPM,
        )


@dataclass(frozen=True, slots=True)
class AdmissionNumbers:
    """When a candidate counts; see `admission`."""

    coverage_ppm: int
    cosine_ppm: int


@dataclass(frozen=True, slots=True)
class EvidenceNumbers:
    """How units are weighed; see `question`, `evidence` and `extractive`."""

    term_floor_ppm: int
    generic_ppm: int
    soft_low_ppm: int
    soft_high_ppm: int
    soft_most_ppm: int
    near_ppm: int
    body_ppm: int
    shortlist: int
    embedded_texts: int
    with_meaning: RuleWeights
    by_words: RuleWeights
    max_sentences: int
    companion_margin_ppm: int
    duplicate_ppm: int

    def soft(self) -> SoftMatch:
        """Credits as fractions."""
        return SoftMatch(
            low=self.soft_low_ppm / PPM,
            high=self.soft_high_ppm / PPM,
            most=self.soft_most_ppm / PPM,
            near=self.near_ppm / PPM,
            body=self.body_ppm / PPM,
        )


@dataclass(frozen=True, slots=True)
class LivingFeatures:
    """Named feature flags of living knowledge."""

    time_travel: bool = True
    question_moment: bool = True
    version_intent: bool = True
    status_intent: bool = True
    relation_expansion: bool = True
    pair_partners: bool = True
    contested_sides: bool = True
    second_domain: bool = True
    document_answers: bool = True


@dataclass(frozen=True, slots=True)
class LivingNumbers:
    """What living knowledge adds to a search or an answer.

    Attributes:
        features: What is on.
        seeds: Best candidates whose neighbours are looked at.
        fan_out: Edges followed from one document.
        neighbours: Documents that expansion may add.
        expansion_ppm: Share of its seed's score that a neighbour gets.
        cited_documents: Documents that an answer cites at most, of all roles.
        partners: Other ends of relations that a pair question cites at most.
        dormant_penalty_ppm: Taken off the score of a dormant or stale candidate.
        draft_penalty_ppm: Taken off the score of one that is not in force yet.
        document_coverage_ppm: Covered share from which a document as such may answer.
        document_cosine_ppm: Cosine from which it may.
        companion_score_ppm: Share of the best document's score from which another one is named beside it.
        several_coverage_ppm: Share of the best document's coverage from which another one is named where several are asked
            for.
        title_least_ppm: Share of its title from which a question names a document.
        title_common_ppm: Share of the IDF of an unknown term up to which a word is common and names no document.
        title_bonus_ppm: Added to the score of one that it names.
        family_margin_ppm: How far a newer member's coverage may lie below that of the best of its series.
        series_closeness_ppm: Share of the best sum of coverage and cosine from which a document tells which series is meant.
        out_of_force_ppm: Share of the score of a document that isn't in force, where ends of relations are compared.
        chunk_ppm: Weight of a chunk's own score beside that of its document: it orders the chunks of one document.
        contra_ppm: Share of the score of the document that it contradicts, for one that no lane found.
        companions: Documents that a question about documents names, where they score alike.
        units_per_document: Units weighed of a document that relations or the intent brought, best by their words.
        verified_domains: Source domains that verified and audit need.
    """

    features: LivingFeatures
    seeds: int
    fan_out: int
    neighbours: int
    expansion_ppm: int
    cited_documents: int
    partners: int
    dormant_penalty_ppm: int
    draft_penalty_ppm: int
    document_coverage_ppm: int
    document_cosine_ppm: int
    companion_score_ppm: int
    several_coverage_ppm: int
    title_least_ppm: int
    title_common_ppm: int
    title_bonus_ppm: int
    family_margin_ppm: int
    series_closeness_ppm: int
    out_of_force_ppm: int
    chunk_ppm: int
    contra_ppm: int
    companions: int
    units_per_document: int
    verified_domains: int


@dataclass(frozen=True, slots=True)
class Profile:
    """A frozen manifest.

    Attributes:
        name: As a crate's settings name it.
        manifest: Version of the manifest's own layout.
        features: What is on.
        rank_constant: K of reciprocal rank fusion.
        lane_depth: Candidates asked of each lane.
        candidates: Best fused candidates that are looked at for an answer.
        weights: Shares of the lanes.
        admission: When a candidate counts.
        evidence: How units of evidence are weighed.
        living: Living knowledge; None where the profile knows no time and no states, and then it isn't encoded.
    """

    name: str
    manifest: int
    features: Features
    rank_constant: int
    lane_depth: int
    candidates: int
    weights: FormWeights
    admission: AdmissionNumbers
    evidence: EvidenceNumbers
    living: LivingNumbers | None = None

    def as_map(self) -> dict[str, Plain]:
        """The manifest as nested maps of plain values, ready to be encoded."""
        return _plain_map(self)


def _plain_map(value: object) -> dict[str, Plain]:
    held = ((field.name, getattr(value, field.name)) for field in fields(value))  # type: ignore[arg-type]  # a dataclass
    return {name: _plain(item) for name, item in held if item is not None}


def _plain(item: object) -> Plain:
    if is_dataclass(item):
        return _plain_map(item)
    return item if isinstance(item, str) else int(item)  # type: ignore[call-overload]  # int or bool


V1 = Profile(
    name="v1",
    manifest=1,
    features=Features(),
    rank_constant=60,
    lane_depth=100,
    candidates=24,
    weights=FormWeights(
        text_vector=60,
        text_keyword=40,
        structured_vector=80,
        structured_keyword=20,
        informal_vector=60,
        informal_keyword=40,
    ),
    admission=AdmissionNumbers(coverage_ppm=300_000, cosine_ppm=450_000),
    evidence=EvidenceNumbers(
        term_floor_ppm=400_000,
        generic_ppm=500_000,
        soft_low_ppm=400_000,
        soft_high_ppm=800_000,
        soft_most_ppm=900_000,
        near_ppm=600_000,
        body_ppm=400_000,
        shortlist=10,
        embedded_texts=160,
        with_meaning=RuleWeights(
            coverage=4_400_000,
            own=3_000_000,
            name_missing_penalty=1_500_000,
            number_missing_penalty=800_000,
            focus_missing_penalty=2_600_000,
            meaning=2_500_000,
            holds=1_500_000,
            threshold=7_100_000,
        ),
        by_words=RuleWeights(
            coverage=5_200_000,
            own=3_600_000,
            name_missing_penalty=1_600_000,
            number_missing_penalty=800_000,
            focus_missing_penalty=2_100_000,
            meaning=0,
            holds=1_500_000,
            threshold=6_100_000,
        ),
        max_sentences=3,
        companion_margin_ppm=1_000_000,
        duplicate_ppm=800_000,
    ),
)

V3_1 = replace(
    V1,
    name="v3.1",
    features=replace(V1.features, relations=True, living_state=True, smallest_evidence_set=True),
    candidates=32,
    evidence=replace(V1.evidence, shortlist=16, embedded_texts=256),
    living=LivingNumbers(
        features=LivingFeatures(),
        seeds=12,
        fan_out=16,
        neighbours=12,
        expansion_ppm=500_000,
        cited_documents=4,
        partners=3,
        dormant_penalty_ppm=30_000,
        draft_penalty_ppm=100_000,
        document_coverage_ppm=400_000,
        document_cosine_ppm=550_000,
        companion_score_ppm=970_000,
        several_coverage_ppm=750_000,
        title_least_ppm=600_000,
        title_common_ppm=70_000,
        title_bonus_ppm=12_000,
        family_margin_ppm=100_000,
        series_closeness_ppm=850_000,
        out_of_force_ppm=800_000,
        chunk_ppm=100,
        contra_ppm=500_000,
        companions=2,
        units_per_document=3,
        verified_domains=2,
    ),
)

PROFILES = {V1.name: V1, V3_1.name: V3_1}
