"""Results as messages."""

from __future__ import annotations

from affidavit.citation.v1 import citation_events_pb2 as events_pb
from affidavit.citation.v1 import citation_service_pb2 as pb

from services.citation import codec
from services.citation.domain.markers import Repair, RepairKind
from services.citation.domain.repair import RULES, Repaired

RESULT = Repaired(
    "A [1]. B.",
    (1,),
    (
        Repair(RepairKind.NORMALIZED, "【1】", "[1]", 2),
        Repair(RepairKind.REMOVED, " [7]", "", 8),
        Repair(RepairKind.COLLAPSED, "[1, 1]", "[1]", 9),
    ),
    ("B.",),
)


def test_the_reply_says_everything() -> None:
    assert codec.response(RESULT) == pb.RepairResponse(
        text="A [1]. B.",
        cited=[1],
        actions=[
            pb.RepairAction(kind=pb.REPAIR_KIND_NORMALIZED, before="【1】", after="[1]", char_start=2),
            pb.RepairAction(kind=pb.REPAIR_KIND_REMOVED, before=" [7]", char_start=8),
            pb.RepairAction(kind=pb.REPAIR_KIND_COLLAPSED, before="[1, 1]", after="[1]", char_start=9),
        ],
        unsupported=["B."],
        rules=RULES,
    )


def test_a_stream_ends_with_the_reply() -> None:
    assert codec.piece("A").text == "A"
    assert codec.final(RESULT).final == codec.response(RESULT)


def test_the_signal_counts_and_quotes_nothing() -> None:
    assert codec.signal("a1", RESULT) == events_pb.CitationRepaired(
        answer_id="a1", repairs=3, unsupported=1, rules=RULES
    )


def test_spans_of_evidence_are_read() -> None:
    request = pb.RepairRequest(
        literals=[pb.LiteralSpan(char_start=1, char_end=4), pb.LiteralSpan(char_start=5, char_end=6)]
    )
    assert codec.literals(request) == ((1, 4), (5, 6))
