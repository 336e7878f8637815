"""`ask` and `search`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from affidavit.index.v1 import index_service_pb2
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import Exit, JsonFlag, as_dict, explained, print_json, say, say_lines, write_file
from services.kernel.errors import Rejected

_RETRIEVAL = {"hybrid": 1, "lexical": 2, "semantic": 3}
_MODES = {"light": 1, "verified": 2, "audit": 3}
Retrieval = Annotated[str, typer.Option("--retrieval", help="hybrid, lexical or semantic; default as the crate says.")]


def ask(
    question: Annotated[str, typer.Argument(help="Question in plain words.")],
    crate: Crate = DEFAULT_CRATE,
    mode: Annotated[str, typer.Option("--mode", help="light, verified or audit; default as the crate says.")] = "",
    retrieval: Retrieval = "",
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
        )
        answer = Client(data_dir=data_dir, address=address).query.Ask(request)
        if json_output:
            print_json(as_dict(answer))
        else:
            _show_answer(answer)
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
    limit: Annotated[int, typer.Option("--limit", "-n", help="Results, 1 to 100.")] = 10,
    retrieval: Retrieval = "",
    documents: Annotated[bool, typer.Option("--documents", help="One result per document.")] = False,
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
        )
        found = Client(data_dir=data_dir, address=address).query.Search(request)
        if json_output:
            print_json(as_dict(found))
            return
        for place, result in enumerate(found.results, start=1):
            path = " > ".join((result.title, *result.heading_path))
            say(f"{place:>3}  {result.score:.4f}  {result.source_id} revision {result.revision}  {path}")
            say(f"     {' '.join(result.snippet.split())[:200]}")
        if not found.results:
            say("nothing found")
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
        say(f"[{citation.marker}] {citation.title}  ({citation.source_id}, revision {citation.revision})")
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
    say(f"cursor   {answer.position}")
    _show_lanes(answer.lanes)
    say(f"receipt  {answer.receipt_id or '-'} {answer.receipt_status}")


def _show_lanes(lanes: object) -> None:
    for lane in lanes:  # type: ignore[attr-defined]  # a repeated protobuf field
        if not lane.used:
            say(f"lane {lane.lane} was not used: {lane.note}")
