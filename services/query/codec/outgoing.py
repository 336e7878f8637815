"""What goes out: requests to other services, the signal, and the replies."""

from __future__ import annotations

from collections.abc import Sequence

from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.query.v1 import query_events_pb2
from affidavit.query.v1 import query_service_pb2 as pb
from affidavit.receipt.v1 import receipt_service_pb2 as receipt_pb

from services.query.codec.enums import ANSWER_MODE_VALUES, CITATION_ROLES, EVIDENCE_ROLES, FORM_VALUES, KIND_VALUES
from services.query.codec.living import moment_message, state_message, timestamp
from services.query.domain.claims import AnswerFact, Claim
from services.query.domain.evidence import Vector
from services.query.domain.extractive import CitedPlace
from services.query.domain.modes import ModeDecision
from services.query.domain.outcomes import AnswerOutcome, Considered, Found, SearchOutcome, Source
from services.query.domain.sufficiency import Sufficiency
from services.query.domain.values import LaneFilter, LaneUse, RecordKey, RecordKind

_STATUS = {True: pb.ANSWER_STATUS_ANSWERED, False: pb.ANSWER_STATUS_NO_ANSWER}


def lane_filter_message(lane_filter: LaneFilter) -> index_pb.LaneFilter:
    """Write a filter."""
    return index_pb.LaneFilter(
        kind=KIND_VALUES[lane_filter.kind],
        forms=[FORM_VALUES[form] for form in lane_filter.forms],
        document_ids=lane_filter.document_ids,
        source_domains=lane_filter.source_domains,
    )


def key_message(key: RecordKey) -> index_pb.ChunkKey:
    """Write a chunk's key."""
    return index_pb.ChunkKey(
        document_id=key.document_id, revision=key.revision, ordinal=key.ordinal, statement=key.statement
    )


def vector_bytes(vector: Vector) -> bytes:
    """Write a vector as little-endian float32[d]."""
    return vector.astype("<f4").tobytes()


def receipt_request(claim: Claim) -> receipt_pb.IssueReceiptRequest:
    """Write what a receipt has to state."""
    return receipt_pb.IssueReceiptRequest(
        crate_id=claim.crate_id,
        answer_id=claim.answer_id,
        question=claim.question,
        answer_text=claim.answer_text,
        raw_answer_text=claim.raw_text,
        evidence=[
            receipt_pb.Evidence(
                document_id=item.key.document_id,
                revision=item.key.revision,
                ordinal=item.key.ordinal,
                byte_start=item.byte_start,
                byte_end=item.byte_end,
                content=item.content,
                role=EVIDENCE_ROLES[item.role],
            )
            for item in claim.evidence
        ],
        candidates=[
            receipt_pb.Candidate(document_id=key.document_id, revision=key.revision, ordinal=key.ordinal)
            for key in claim.candidates
        ],
        position=claim.position,
        incarnation=claim.incarnation,
        policy_digest=claim.policy_digest,
        engine_digest=claim.engine_digest,
        mode_requested=claim.mode.requested.value,
        mode_applied=claim.mode.applied.value,
        mode_reason=claim.mode.reason,
        repairs=claim.repairs,
    )


def answer_issued(fact: AnswerFact) -> query_events_pb2.AnswerIssued:
    """Write the signal."""
    return query_events_pb2.AnswerIssued(
        answer_id=fact.answer_id,
        receipt_id=fact.receipt_id,
        status=fact.status,
        cited_document_ids=fact.document_ids,
        position=fact.position,
        mode_requested=fact.mode.requested.value,
        mode_applied=fact.mode.applied.value,
        issued_at=timestamp(fact.issued_at),
    )


def search_response(outcome: SearchOutcome) -> pb.SearchResponse:
    """Write what a search found."""
    return pb.SearchResponse(
        results=[_result(found, outcome.kind) for found in outcome.results],
        lanes=_lanes(outcome.lanes),
        position=outcome.position,
        notes=outcome.notes,
    )


def ask_response(outcome: AnswerOutcome) -> pb.AskResponse:
    """Write an answer."""
    return pb.AskResponse(
        answer_id=outcome.answer_id,
        status=_STATUS[outcome.answered],
        text=outcome.text,
        citations=[_citation(place, outcome) for place in outcome.places],
        sources=[_source(source) for source in outcome.sources],
        mode=_mode(outcome.mode),
        lanes=_lanes(outcome.lanes),
        position=outcome.position,
        receipt=outcome.receipt,
        receipt_id=outcome.receipt_id,
        receipt_status=outcome.receipt_status,
        unsupported=outcome.unsupported,
        notes=outcome.notes,
        answered_by=outcome.answered_by,
        sufficiency=_sufficiency(outcome.sufficiency) if outcome.sufficiency else None,
        explanation=[_considered(item) for item in outcome.explanation],
        moment=moment_message(outcome.moment) if outcome.moment else None,
    )


def text_piece(text: str) -> pb.AskStreamResponse:
    """Write a piece of a streamed answer."""
    return pb.AskStreamResponse(text=text)


def final_piece(outcome: AnswerOutcome) -> pb.AskStreamResponse:
    """Write the last message of a streamed answer."""
    return pb.AskStreamResponse(final=ask_response(outcome))


def _result(found: Found, kind: RecordKind) -> pb.SearchResult:
    candidate, chunk = found.candidate, found.passage
    return pb.SearchResult(
        document_id=candidate.key.document_id,
        revision=candidate.key.revision,
        ordinal=candidate.key.ordinal,
        source_id=chunk.source_id,
        title=chunk.title,
        heading_path=chunk.heading_path,
        snippet=found.snippet,
        score=candidate.score,
        keyword_rank=candidate.keyword_rank,
        vector_rank=candidate.vector_rank,
        keyword_score=candidate.keyword_score,
        cosine=candidate.cosine,
        form=FORM_VALUES[candidate.form],
        kind=KIND_VALUES[kind],
        state=state_message(found.state) if found.state else None,
    )


def _citation(place: CitedPlace, outcome: AnswerOutcome) -> pb.Citation:
    chunk, span = place.unit.passage, place.span
    state = outcome.states.get((chunk.key.document_id, chunk.key.revision))
    found = outcome.sufficiency
    return pb.Citation(
        marker=place.marker,
        document_id=chunk.key.document_id,
        revision=chunk.key.revision,
        ordinal=chunk.key.ordinal,
        source_id=chunk.source_id,
        title=chunk.title,
        heading_path=chunk.heading_path,
        byte_start=span.byte_start,
        byte_end=span.byte_end,
        char_start=span.char_start,
        char_end=span.char_end,
        quote=place.quote,
        verbatim=span.verbatim,
        source_domain=chunk.source_domain,
        effective_at=timestamp(chunk.effective_at) if chunk.effective_at else None,
        charset=chunk.charset,
        # Profile v1 knows no roles: its citations stay as they were.
        role=CITATION_ROLES[place.role] if found else pb.CITATION_ROLE_UNSPECIFIED,
        state=state_message(state) if state else None,
        load_bearing=found is not None and chunk.key.document_id in found.load_bearing,
    )


def _sufficiency(found: Sufficiency) -> pb.Sufficiency:
    return pb.Sufficiency(
        domains_needed=found.domains_needed,
        domains=found.domains,
        sufficient=found.sufficient,
        minimal_document_ids=found.minimal,
        fragility=found.fragility,
        load_bearing_document_ids=found.load_bearing,
    )


def _considered(item: Considered) -> pb.ConsideredCandidate:
    candidate = item.candidate
    return pb.ConsideredCandidate(
        document_id=candidate.key.document_id,
        revision=candidate.key.revision,
        ordinal=candidate.key.ordinal,
        source_id=item.source_id,
        score=candidate.score,
        keyword_rank=candidate.keyword_rank,
        vector_rank=candidate.vector_rank,
        keyword_score=candidate.keyword_score,
        cosine=candidate.cosine,
        state=state_message(item.state) if item.state else None,
        expanded_from_document_id=item.expanded_from,
        cited=item.cited,
        reason=item.reason,
    )


def _source(source: Source) -> pb.Source:
    chunk = source.passage
    return pb.Source(
        marker=source.marker,
        document_id=chunk.key.document_id,
        revision=chunk.key.revision,
        source_id=chunk.source_id,
        title=chunk.title,
        uri=chunk.uri,
        source_domain=chunk.source_domain,
    )


def _mode(mode: ModeDecision) -> pb.ModeReport:
    return pb.ModeReport(
        requested=ANSWER_MODE_VALUES[mode.requested], applied=ANSWER_MODE_VALUES[mode.applied], reason=mode.reason
    )


def _lanes(lanes: Sequence[LaneUse]) -> list[pb.LaneReport]:
    return [pb.LaneReport(lane=use.lane, used=use.used, note=use.note, hits=use.hits) for use in lanes]
