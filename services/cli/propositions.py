"""`propositions`: what a document's chunks were turned into, accepted and rejected, with every score."""

from __future__ import annotations

from typing import Annotated

import typer
from affidavit.ingest.v1 import ingest_service_pb2
from affidavit.proposition.v1 import proposition_events_pb2 as events_pb
from affidavit.proposition.v1 import proposition_service_pb2 as pb

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.documents import SourceId, which
from services.cli.output import JsonFlag, as_dict, explained, print_json, print_table, say

_PAGE = 200
_MAX_NUMBER = 2**32 - 1


def propositions(
    source_id: SourceId,
    chunk: Annotated[
        int | None, typer.Option("--chunk", min=0, max=_MAX_NUMBER, help="Only this chunk, counted from 0.")
    ] = None,
    revision: Annotated[
        int, typer.Option("--revision", min=0, max=_MAX_NUMBER, help="0: the newest one that was evaluated.")
    ] = 0,
    accepted: Annotated[bool | None, typer.Option("--accepted/--rejected", help="Only these; both by default.")] = None,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """List the propositions of a document, where its crate retrieves by propositions, and chunks that failed."""
    with explained():
        client = Client(data_dir=data_dir, address=address)
        request = pb.ListPropositionsRequest(
            crate_id=crate,
            document_id=_document_id(client, crate, source_id),
            page_size=_PAGE,
            revision=revision,
            chunk_ordinal=chunk,
        )
        found = everything(client, request)
        wanted = [each for each in found.propositions if accepted in (None, each.accepted)]
        if json_output:
            print_json(as_dict(found) | {"propositions": [as_dict(each) for each in wanted]})
            return
        print_table(("chunk", "number", "state", "scores", "proposition"), rows(found, wanted))
        say(
            f"revision {found.revision}: chunks {found.chunk_count}, propositions accepted {found.accepted_count}, "
            f"rejected {found.rejected_count}"
        )


def everything(client: Client, request: pb.ListPropositionsRequest) -> pb.ListPropositionsResponse:
    """All pages of a listing as one.

    Args:
        client: Of a running node.
        request: For the first page.

    Returns:
        The first reply, with what the others add.
    """
    found = page = client.proposition.ListPropositions(request)
    while page.next_page_token:
        request.page_token = page.next_page_token
        page = client.proposition.ListPropositions(request)
        found.propositions.extend(page.propositions)
        found.evaluations.extend(page.evaluations)
    found.next_page_token = ""
    return found


def rows(found: pb.ListPropositionsResponse, wanted: list[pb.Proposition]) -> list[tuple[str, ...]]:
    """Lines of the table: propositions by chunk, and before them why a chunk failed."""
    by_chunk: dict[int, list[tuple[str, ...]]] = {each.chunk_ordinal: [] for each in found.evaluations}
    for each in found.evaluations:
        if each.problem:
            status = events_pb.EvaluationStatus.Name(each.status).removeprefix("EVALUATION_STATUS_").lower()
            problem = events_pb.EvaluationProblem.Name(each.problem).removeprefix("EVALUATION_PROBLEM_").lower()
            told = f"{problem.replace('_', ' ')}: {each.diagnostics}"
            by_chunk[each.chunk_ordinal].append((str(each.chunk_ordinal), "-", status, "-", told))
    for one in wanted:
        scores = (one.fidelity, one.clarity, one.completeness, one.focus)
        graded = " ".join(map(str, scores)) if any(scores) else "-"
        state = "accepted" if one.accepted else "rejected"
        by_chunk.setdefault(one.chunk_ordinal, []).append(
            (str(one.chunk_ordinal), str(one.ordinal), state, graded, one.text)
        )
    return [row for _, chunk_rows in sorted(by_chunk.items()) for row in chunk_rows]


def _document_id(client: Client, crate: str, name: str) -> str:
    named = which(name)
    if "document_id" in named:
        return name
    reply = client.ingest.GetDocument(ingest_service_pb2.GetDocumentRequest(crate_id=crate, **named))
    return reply.document.document_id
