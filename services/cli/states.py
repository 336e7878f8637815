"""`state`, `states` and `history`: how documents stand, stood, and came to stand so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from affidavit.index.v1 import index_service_pb2, living_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import JsonFlag, as_dict, explained, print_json, print_table, say, write_file
from services.kernel.errors import NotFound, Rejected

_PAGE = 1_000
_ID_CHARS = 32
_STATES: Mapping[str, living_pb2.LivingState.ValueType] = {
    "active": living_pb2.LIVING_STATE_ACTIVE,
    "superseded": living_pb2.LIVING_STATE_SUPERSEDED,
    "deprecated": living_pb2.LIVING_STATE_DEPRECATED,
    "contested": living_pb2.LIVING_STATE_CONTESTED,
    "stale": living_pb2.LIVING_STATE_STALE,
    "dormant": living_pb2.LIVING_STATE_DORMANT,
}
AsOf = Annotated[
    str, typer.Option("--as-of", help="Instant that it holds for, as 2021-05-03 or 2021-05-03T12:00:00Z; default now.")
]
At = Annotated[int, typer.Option("--at", help="Log position: only what was known up to it counts; 0: everything.")]
Document = Annotated[str, typer.Argument(help="Source id or document id.")]


def state(
    document: Document,
    crate: Crate = DEFAULT_CRATE,
    as_of: AsOf = "",
    at: At = 0,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Show the living state of a document, and what decided it."""
    with explained():
        document_id, source_id = _named(document)
        request = index_service_pb2.GetStateRequest(
            crate_id=crate,
            document_id=document_id,
            source_id=source_id,
            as_of=read_instant(as_of),
            at=read_position(at),
        )
        reply = Client(data_dir=data_dir, address=address).index.GetState(request)
        if json_output:
            print_json(as_dict(reply))
            return
        for line in state_lines(reply.report):
            say(line)
        say(f"cursor   {reply.position}")


def states(
    crate: Crate = DEFAULT_CRATE,
    wanted: Annotated[list[str] | None, typer.Option("--state", help="Only these; may be given several times.")] = None,
    as_of: AsOf = "",
    at: At = 0,
    export: Annotated[
        Path | None, typer.Option("--export", help="Write the whole list to this file, one JSON object a line.")
    ] = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """List the living states of the whole crate at a moment."""
    with explained():
        request = index_service_pb2.ListStatesRequest(
            crate_id=crate,
            moment=living_pb2.Moment(as_of=read_instant(as_of), at=read_position(at)),
            states=[read_state(name) for name in wanted or ()],
            page_size=_PAGE,
        )
        reports = tuple(_pages(Client(data_dir=data_dir, address=address), request))
        if export is not None:
            write_file(export, export_lines(reports))
            if not json_output:
                say(f"{len(reports)} states written to {export}")
        if json_output:
            print_json({"states": [as_dict(report) for report in reports]})
        elif export is None:
            rows = [(report.source_id, report.revision, state_name(report), _why(report)) for report in reports]
            print_table(("document", "revision", "state", "why"), rows)
            if not reports:
                say("no document")


def history(
    document: Document,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Show how a document's states came about, as they were known one after the other."""
    with explained():
        document_id, source_id = _named(document)
        request = index_service_pb2.ListHistoryRequest(crate_id=crate, document_id=document_id, source_id=source_id)
        reply = Client(data_dir=data_dir, address=address).index.ListHistory(request)
        if not reply.entries:
            raise NotFound(f"{document} has no history in crate {crate}: see `affidavit documents --crate {crate}`")
        if json_output:
            print_json(as_dict(reply))
            return
        for entry in reply.entries:
            recorded = _time(entry.recorded_at) if entry.HasField("recorded_at") else "-"
            gone = ", erased" if entry.erased else ""
            say(f"position {entry.position}, {recorded}: revision {entry.revision}{gone}")
            for report in entry.timeline:
                since = _time(report.since) if report.HasField("since") else "its beginning"
                say(f"    since {since}: {state_name(report)}, {_why(report)}")


def read_instant(text: str) -> Timestamp | None:
    """Read an instant as a person writes it.

    Args:
        text: A date, which means its first instant in UTC, or a date and time with its zone; empty: none.

    Returns:
        The instant; None for none.

    Raises:
        Rejected: When it is neither, or its zone is missing.
    """
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise Rejected(f"--as-of {text!r} is no date: write 2021-05-03 or 2021-05-03T12:00:00Z") from error
    if moment.tzinfo is None:
        if len(text.strip()) > len("2021-05-03"):
            raise Rejected(f"--as-of {text!r} names no zone: add Z or +02:00")
        moment = moment.replace(tzinfo=UTC)
    stamp = Timestamp()
    stamp.FromDatetime(moment.astimezone(UTC))
    return stamp


def read_position(at: int) -> int:
    """Check a log position.

    Raises:
        Rejected: When it is negative, or beyond what a log can hold.
    """
    if not 0 <= at < 2**63:
        raise Rejected(f"--at {at} is no log position: give a cursor of an earlier reply, or 0 for everything known")
    return at


def read_state(name: str) -> living_pb2.LivingState.ValueType:
    """Read the name of a state.

    Raises:
        Rejected: When there is no such state.
    """
    if name.lower() not in _STATES:
        raise Rejected(f"--state can't be {name!r}: choose from {', '.join(_STATES)}")
    return _STATES[name.lower()]


def state_name(report: living_pb2.StateReport) -> str:
    """Name a state as people read it; a draft says that it isn't in force yet."""
    name = living_pb2.LivingState.Name(report.state).removeprefix("LIVING_STATE_").lower()
    return f"{name}, not in force yet" if report.not_in_force_yet else name


def state_lines(report: living_pb2.StateReport) -> tuple[str, ...]:
    """Describe a state in lines of text.

    Args:
        report: The state.

    Returns:
        The document, its state, what decided it and since when.
    """
    series = f" of {report.family}" if report.family else ""
    lines = [
        f"{report.source_id or report.document_id}  revision {report.revision}  {report.title}",
        f"state    {state_name(report)}",
        f"why      {_why(report)}",
    ]
    lines += [f"version  {report.version}{series}"] if report.version or series else []
    lines += [f"in force {_time(report.effective_at)}"] if report.HasField("effective_at") else []
    lines += [f"since    {_time(report.since)}"] if report.HasField("since") else []
    lines += [f"until    {_time(report.until)}"] if report.HasField("until") else []
    return tuple(lines)


def export_lines(reports: tuple[living_pb2.StateReport, ...]) -> bytes:
    """Write states as JSON Lines, by document id and revision, so that equal states give equal files.

    Args:
        reports: The states.

    Returns:
        UTF-8, one object a line.
    """
    ordered = sorted(reports, key=lambda report: (report.document_id, report.revision))
    lines = (json.dumps(as_dict(report), ensure_ascii=False, sort_keys=True) for report in ordered)
    return "".join(f"{line}\n" for line in lines).encode()


def _named(document: str) -> tuple[str, str]:
    """Document id and source id, one of them empty: 32 hex digits are a document id, anything else is a source id."""
    is_id = len(document) == _ID_CHARS and all(sign in "0123456789abcdef" for sign in document)
    return (document, "") if is_id else ("", document)


def _pages(client: Client, request: index_service_pb2.ListStatesRequest) -> Iterator[living_pb2.StateReport]:
    while True:
        reply = client.index.ListStates(request)
        yield from reply.states
        if not reply.next_page_token:
            return
        request.page_token = reply.next_page_token


def _why(report: living_pb2.StateReport) -> str:
    parts = (report.rule, report.detail, f"by {report.other_document_id}" if report.other_document_id else "")
    return " ".join(part for part in parts if part) or "-"


def _time(stamp: Timestamp) -> str:
    return stamp.ToDatetime(UTC).isoformat().replace("+00:00", "Z")
