"""`erase`: an erasure is a fact at once, and its content leaves the disk with the next scrub."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

import typer
from affidavit.index.v1 import index_service_pb2
from affidavit.ingest.v1 import ingest_service_pb2
from affidavit.receipt.v1 import receipt_service_pb2

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.documents import SourceId, which
from services.cli.output import JsonFlag, as_dict, errors, explained, print_json, printable, say
from services.kernel.errors import Rejected

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class _Left:
    """A service that still has content of an erased document on disk."""

    service: str
    waiting: int
    problem: str


def erase(
    source_id: SourceId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the content is off the disk.")] = False,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Delete all content of a document for good; a tombstone stays. Say it again to see whether it is off the disk."""
    with explained():
        if not yes and not typer.confirm(f"Erase every revision of {printable(source_id)} for good?", err=True):
            raise Rejected("nothing was erased")
        client = Client(data_dir=data_dir, address=address)
        reply = client.ingest.EraseDocument(ingest_service_pb2.EraseDocumentRequest(crate_id=crate, **which(source_id)))
        left = _left(client, crate, reply)
        told = ""
        while wait and left:
            problem = "; ".join(f"{one.service}: {one.problem}" for one in left if one.problem)
            if problem not in ("", told):
                errors.print(f"waiting: {problem}", markup=False)
                told = problem
            time.sleep(_POLL_S)
            left = _left(client, crate, reply)
        if json_output:
            remaining = [{"service": one.service, "waiting": one.waiting, "problem": one.problem} for one in left]
            print_json(as_dict(reply) | {"gone": not left, "remaining": remaining})
            return
        say("was erased already" if reply.unchanged else f"erased at position {reply.position}")
        _say_left(source_id, left)


def _left(client: Client, crate: str, erased: ingest_service_pb2.EraseDocumentResponse) -> list[_Left]:
    document_id, position = erased.document_id, erased.position
    ingest = client.ingest.GetErasure(
        ingest_service_pb2.GetErasureRequest(crate_id=crate, document_id=document_id, position=position)
    )
    index = client.index.GetErasure(
        index_service_pb2.GetErasureRequest(crate_id=crate, document_id=document_id, position=position)
    )
    receipt = client.receipt.GetErasure(
        receipt_service_pb2.GetErasureRequest(crate_id=crate, document_id=document_id, position=position)
    )
    return [
        _Left(name, answer.waiting, answer.problem)
        for name, answer in (("ingest", ingest), ("index", index), ("receipt", receipt))
        if not answer.gone
    ]


def _say_left(source_id: str, left: list[_Left]) -> None:
    if not left:
        say("its content is off the disk")
        return
    names = ", ".join(one.service for one in left)
    say(f"it can't be found or read any more; what is left of it on disk goes with the next scrub of: {names}")
    for one in left:
        if one.problem:
            say(f"{one.service}: {one.problem}")
    say(f"`affidavit erase {printable(source_id)} --yes --wait` waits for it")
