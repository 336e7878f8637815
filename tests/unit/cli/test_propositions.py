"""`propositions`: what the command asks for, and how it shows what it is told."""

# ruff: noqa: N802  (names of the contracts)

from __future__ import annotations

import json
from typing import Any

import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as ingest_pb
from affidavit.proposition.v1 import proposition_events_pb2 as events_pb
from affidavit.proposition.v1 import proposition_service_pb2 as pb
from typer.testing import CliRunner

from services.cli import app, propositions

DOCUMENT = "d" * 32
TOKEN = "3.1.1"  # noqa: S105  (of a page)


def proposition(chunk: int, ordinal: int, score: int) -> pb.Proposition:
    return pb.Proposition(
        chunk_ordinal=chunk,
        ordinal=ordinal,
        text=f"Fact {chunk}.{ordinal}\x1b[31m",
        fidelity=score,
        clarity=score,
        completeness=score,
        focus=score,
        accepted=score >= 8,
    )


class Node:
    """Answers with two pages.

    Attributes:
        asked: Requests so far.
    """

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.ingest = self.proposition = self

    def GetDocument(self, request: ingest_pb.GetDocumentRequest) -> ingest_pb.GetDocumentResponse:
        self.asked.append(request)
        return ingest_pb.GetDocumentResponse(document=ingest_pb.Document(document_id=DOCUMENT))

    def ListPropositions(self, request: pb.ListPropositionsRequest) -> pb.ListPropositionsResponse:
        asked = pb.ListPropositionsRequest()
        asked.CopyFrom(request)
        self.asked.append(asked)
        good = pb.ChunkEvaluation(status=events_pb.EVALUATION_STATUS_EVALUATED)
        reply = pb.ListPropositionsResponse(revision=3, chunk_count=2, accepted_count=1, rejected_count=2)
        if request.page_token:
            reply.evaluations.add(
                chunk_ordinal=1,
                status=events_pb.EVALUATION_STATUS_SOURCE,
                problem=events_pb.EVALUATION_PROBLEM_MISSING_RATING,
                diagnostics="2 isn't rated",
            )
            reply.propositions.append(proposition(1, 1, 0))
        else:
            reply.evaluations.append(good)
            reply.propositions.extend([proposition(0, 1, 9), proposition(0, 2, 7)])
            reply.next_page_token = TOKEN
        return reply


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    made = Node()
    monkeypatch.setattr(propositions, "Client", lambda **_: made)
    return made


def shown(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["propositions", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_all_pages_are_shown_by_chunk_with_scores_and_problems(node: Node) -> None:
    lines = [" ".join(line.split()) for line in shown("handbook.md", "--crate", "c", "--revision", "3").splitlines()]
    assert lines == [
        "chunk number state scores proposition",
        "0 1 accepted 9 9 9 9 Fact 0.1\\x1b[31m",
        "0 2 rejected 7 7 7 7 Fact 0.2\\x1b[31m",
        "1 - source - missing rating: 2 isn't rated",
        "1 1 rejected - Fact 1.1\\x1b[31m",
        "revision 3: chunks 2, propositions accepted 1, rejected 2",
    ]
    document, first, second = node.asked
    assert (document.crate_id, document.source_id) == ("c", "handbook.md")
    assert (first.crate_id, first.document_id, first.page_token, first.revision) == ("c", DOCUMENT, "", 3)
    assert not first.HasField("chunk_ordinal")
    assert second.page_token == TOKEN


@pytest.mark.parametrize(("flag", "ordinals"), [("--accepted", [1]), ("--rejected", [2, 1])])
def test_only_accepted_or_rejected_ones(node: Node, flag: str, ordinals: list[int]) -> None:
    found = json.loads(shown(DOCUMENT, flag, "--chunk", "0", "--json"))
    assert [each["ordinal"] for each in found["propositions"]] == ordinals
    assert (found["revision"], len(found["evaluations"]), found["next_page_token"]) == (3, 2, "")
    # A document id needs no question.
    assert [request.chunk_ordinal for request in node.asked] == [0, 0]


@pytest.mark.parametrize("wrong", [["--chunk", "-1"], ["--revision", "4294967296"]])
def test_numbers_that_can_t_be_are_wrong_usage(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, ["propositions", DOCUMENT, *wrong]).exit_code == 2
