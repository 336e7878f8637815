"""`relate`: state an edge between two documents, or take it back."""

from __future__ import annotations

import contextlib
import re
import time
from datetime import UTC, datetime
from typing import Annotated

import grpc
import typer
from affidavit.index.v1.index_service_pb2 import GetWatermarkRequest
from affidavit.ingest.v1 import ingest_service_pb2

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.documents import which
from services.cli.output import JsonFlag, as_dict, explained, print_json, say
from services.kernel.errors import Rejected

_APPLIED_S = 5.0
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
Source = Annotated[str, typer.Argument(help="Source id or document id; for supersedes the newer document.")]
Type = Annotated[
    str,
    typer.Argument(help="supersedes, derived_from, cites, elaborates, implements, contradicts or is_version_of."),
]
Target = Annotated[str, typer.Argument(help="Source id or document id of the other document; it may still be to come.")]


def relate(
    source: Source,
    relation: Type,
    target: Target,
    confidence: Annotated[float | None, typer.Option(help="0 to 1; by default 1.")] = None,
    effective: Annotated[
        str,
        typer.Option(
            metavar="DATE",
            help="When it takes effect: YYYY-MM-DD (UTC midnight), or a time with its zone, such as "
            "2026-01-31T09:00+01:00. By default when the source comes into force.",
        ),
    ] = "",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take an earlier statement back.")] = False,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """State how a document relates to another one: "SOURCE TYPE TARGET". The last statement about the two counts."""
    with explained():
        request = ingest_service_pb2.DeclareRelationRequest(
            crate_id=crate,
            type=relation,
            confidence=confidence,
            withdrawn=withdraw,
        )
        for end, name in (("source", source), ("target", target)):
            for field, value in which(name).items():
                setattr(request, f"{end}_{field}", value)
        if effective:
            request.effective_at.FromDatetime(moment("--effective", effective))
        client = Client(data_dir=data_dir, address=address)
        reply = client.ingest.DeclareRelation(request)
        _until_applied(client, crate, reply.position)
        if json_output:
            print_json(as_dict(reply))
            return
        edge = f"{source} {relation} {target}"
        if reply.unchanged:
            done = "was withdrawn" if withdraw else "was stated"
            say(f"{edge}: {done} already, at position {reply.position}")
        else:
            say(f"{edge}: {'withdrawn' if withdraw else 'stated'} at position {reply.position}")


def _until_applied(client: Client, crate: str, position: int) -> None:
    """Wait a little, so that the next command sees states that follow from the statement."""
    limit = time.monotonic() + _APPLIED_S
    with contextlib.suppress(grpc.RpcError):
        while client.index.GetWatermark(GetWatermarkRequest(crate_id=crate)).position < position:
            if time.monotonic() > limit:
                break
            time.sleep(0.02)


def moment(name: str, text: str) -> datetime:
    """Read a date or a time that a person typed.

    Args:
        name: Option, for the message.
        text: A plain date, which means UTC midnight, or a time with its zone.

    Returns:
        Aware.

    Raises:
        Rejected: When it is neither, or the time names no zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise Rejected(
            f"{name} {text[:40]!r} is no date or time: write 2026-01-31 or 2026-01-31T09:00+01:00"
        ) from error
    if _DAY.fullmatch(text):
        return found.replace(tzinfo=UTC)
    if found.tzinfo is None:
        raise Rejected(f"{name} {text[:40]!r} names no time zone: end it with Z or an offset such as +01:00")
    return found
