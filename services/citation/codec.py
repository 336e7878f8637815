"""Protobuf <-> domain."""

from __future__ import annotations

from affidavit.citation.v1 import citation_events_pb2 as events_pb
from affidavit.citation.v1 import citation_service_pb2 as pb

from services.citation.domain.markers import Repair, RepairKind
from services.citation.domain.repair import RULES, Repaired

_KINDS = {
    RepairKind.NORMALIZED: pb.REPAIR_KIND_NORMALIZED,
    RepairKind.REMOVED: pb.REPAIR_KIND_REMOVED,
    RepairKind.COLLAPSED: pb.REPAIR_KIND_COLLAPSED,
}


def literals(request: pb.RepairRequest) -> tuple[tuple[int, int], ...]:
    """Spans of the raw text that stay as they are: code points, ends exclusive."""
    return tuple((span.char_start, span.char_end) for span in request.literals)


def response(result: Repaired) -> pb.RepairResponse:
    """Build the reply.

    Args:
        result: What was done.

    Returns:
        The reply, with the version of the rules.
    """
    return pb.RepairResponse(
        text=result.text,
        cited=result.cited,
        actions=(_action(repair) for repair in result.actions),
        unsupported=result.unsupported,
        rules=RULES,
    )


def piece(text: str) -> pb.RepairStreamResponse:
    """Build a piece of the stream."""
    return pb.RepairStreamResponse(text=text)


def final(result: Repaired) -> pb.RepairStreamResponse:
    """Build the last message of the stream."""
    return pb.RepairStreamResponse(final=response(result))


def signal(answer_id: str, result: Repaired) -> events_pb.CitationRepaired:
    """Build the signal; it holds counts only, no content.

    Args:
        answer_id: 32 hex digits.
        result: What was done.

    Returns:
        The event's body.
    """
    return events_pb.CitationRepaired(
        answer_id=answer_id,
        repairs=len(result.actions),
        unsupported=len(result.unsupported),
        rules=RULES,
    )


def _action(repair: Repair) -> pb.RepairAction:
    return pb.RepairAction(kind=_KINDS[repair.kind], before=repair.before, after=repair.after, char_start=repair.start)
