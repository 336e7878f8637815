"""`ask` and `search`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from affidavit.index.v1 import index_service_pb2, living_pb2
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import Exit, JsonFlag, as_dict, explained, print_json, print_table, say, say_lines, write_file
from services.cli.states import AsOf, At, read_instant, read_position, state_name
from services.kernel.errors import Rejected

_RETRIEVAL = {"hybrid": 1, "lexical": 2, "semantic": 3}
_REACHES = {"current": 1, "in_force": 2, "every": 3}
_MODES = {"light": 1, "verified": 2, "audit": 3}
Retrieval = Annotated[str, typer.Option("--retrieval", help="hybrid, lexical or semantic; default as the crate says.")]


def ask(
    question: Annotated[str, typer.Argument(help="Question in plain words.")],
    crate: Crate = DEFAULT_CRATE,
    mode: Annotated[str, typer.Option("--mode", help="light, verified or audit; default as the crate says.")] = "",
    retrieval: Retrieval = "",
    as_of: AsOf = "",
    at: At = 0,
    explain: Annotated[bool, typer.Option("--explain", help="Show why each candidate is in or out.")] = False,
    receipt: Annotated[Path | None, typer.Option("--receipt", help="Write the receipt to this file.")] = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Ask a question; the answer cites its sources and comes with a signed receipt."""
    with explained():
        request = query_service_pb2.AskRequest(
            crate_id=crate,
            question=question,
            mode=settings_pb2.AnswerMode.ValueType(_choice("mode", mode, _MODES)),
            retrieval_mode=settings_pb2.RetrievalMode.ValueType(_choice("retrieval", retrieval, _RETRIEVAL)),
            as_of=read_instant(as_of),
            at=read_position(at),
            explain=explain,
        )
        answer = Client(data_dir=data_dir, address=address).query.Ask(request)
        if json_output:
            print_json(as_dict(answer))
        else:
            _show_answer(answer)
            if explain:
                show_explanation(answer.explanation)
        # After the answer, which must not be lost because a file can't be written.
        if receipt is not None and answer.receipt:
            write_file(receipt, answer.receipt)
            if not json_output:
                say(f"         written to {receipt}")
        if answer.status == query_service_pb2.ANSWER_STATUS_NO_ANSWER:
            raise typer.Exit(Exit.NO_ANSWER)


def search(
    query: Annotated[str, typer.Argument(help="Plain words; no operator is understood.")],
    crate: Crate = DEFAULT_CRATE,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, max=2**32 - 1, help="Results, 1 to 100.")] = 10,
    retrieval: Retrieval = "",
    documents: Annotated[bool, typer.Option("--documents", help="One result per document.")] = False,
    as_of: AsOf = "",
    at: At = 0,
    reach: Annotated[
        str, typer.Option("--reach", help="current, in_force or every; default as profile and words say.")
    ] = "",
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Search both lanes and show what was found, with ranks."""
    with explained():
        if limit < 1:
            raise Rejected(f"--limit {limit} is too small: choose 1 to 100")
        request = query_service_pb2.SearchRequest(
            crate_id=crate,
            query=query,
            limit=limit,
            mode=settings_pb2.RetrievalMode.ValueType(_choice("retrieval", retrieval, _RETRIEVAL)),
            group_by_document=documents,
            filter=index_service_pb2.LaneFilter(kind=index_service_pb2.RECORD_KIND_CHUNK),
            as_of=read_instant(as_of),
            at=read_position(at),
            reach=living_pb2.Reach.ValueType(_choice("reach", reach, _REACHES)),
        )
        found = Client(data_dir=data_dir, address=address).query.Search(request)
        if json_output:
            print_json(as_dict(found))
            return
        for place, result in enumerate(found.results, start=1):
            path = " > ".join((result.title, *result.heading_path))
            state = f"  [{state_name(result.state)}]" if result.HasField("state") else ""
            say(f"{place:>3}  {result.score:.4f}  {result.source_id} revision {result.revision}  {path}{state}")
            say(f"     {' '.join(result.snippet.split())[:200]}")
        if not found.results:
            say("nothing found")
        for note in found.notes:
            say(f"note: {note}")
        _show_lanes(found.lanes)


def _choice(name: str, text: str, known: dict[str, int]) -> int:
    if not text:
        return 0
    if text.lower() not in known:
        raise Rejected(f"--{name} can't be {text!r}: choose from {', '.join(known)}")
    return known[text.lower()]


def _show_answer(answer: query_service_pb2.AskResponse) -> None:
    say_lines(answer.text)
    for citation in answer.citations:
        say()
        told = "".join(f"; {part}" for part in _standing(citation))
        say(f"[{citation.marker}] {citation.title}  ({citation.source_id}, revision {citation.revision}{told})")
        if citation.heading_path:
            say(f"    under {' > '.join(citation.heading_path)}")
        say(f"    bytes {citation.byte_start}-{citation.byte_end}: {' '.join(citation.quote.split())}")
    say()
    for sentence in answer.unsupported:
        say(f"unsupported: {sentence}")
    for note in answer.notes:
        say(f"note: {note}")
    requested, applied = (
        settings_pb2.AnswerMode.Name(value).removeprefix("ANSWER_MODE_").lower()
        for value in (answer.mode.requested, answer.mode.applied)
    )
    reason = f" ({answer.mode.reason})" if answer.mode.reason else ""
    say(f"mode     {requested} asked, {applied} applied{reason}; answered by {answer.answered_by}")
    if answer.HasField("sufficiency"):
        _show_sufficiency(answer.sufficiency)
    say(f"cursor   {answer.position}")
    _show_lanes(answer.lanes)
    say(f"receipt  {answer.receipt_id or '-'} {answer.receipt_status}")


def show_explanation(candidates: Iterable[query_service_pb2.ConsideredCandidate]) -> None:
    """Show a table of candidates: lanes, ranks, scores, state, and why each is in or out."""
    rows = [
        (
            f"{item.source_id or item.document_id[:12]}#{item.ordinal}",
            f"{item.score:.4f}",
            f"{item.keyword_rank or '-'} ({item.keyword_score:.2f})",
            f"{item.vector_rank or '-'} ({item.cosine:.2f})",
            state_name(item.state) if item.HasField("state") else "-",
            item.expanded_from_document_id[:12] or "-",
            "yes" if item.cited else "no",
            item.reason,
        )
        for item in candidates
    ]
    say()
    if rows:
        print_table(("candidate", "score", "words", "meaning", "state", "from", "cited", "why"), rows)
    else:
        say("no explanation: profile v1 gives none, or there was no candidate")


def _standing(citation: query_service_pb2.Citation) -> Iterator[str]:
    if citation.role > query_service_pb2.CITATION_ROLE_SUPPORT:
        yield query_service_pb2.CitationRole.Name(citation.role).removeprefix("CITATION_ROLE_").lower()
    if citation.HasField("state"):
        yield state_name(citation.state)
    if citation.load_bearing:
        yield "load-bearing"


def _show_sufficiency(found: query_service_pb2.Sufficiency) -> None:
    verdict = "enough" if found.sufficient else "not enough"
    domains = ", ".join(found.domains) or "none"
    say(
        f"evidence {verdict}: source domains {domains} of {found.domains_needed} needed; fragility {found.fragility:.2f}"
    )


def _show_lanes(lanes: object) -> None:
    for lane in lanes:  # type: ignore[attr-defined]  # a repeated protobuf field
        if not lane.used:
            say(f"lane {lane.lane} was not used: {lane.note}")
