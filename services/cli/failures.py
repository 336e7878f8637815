"""`failures list | retry | drop`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated

import grpc
import typer
from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import (
    Exit,
    JsonFlag,
    as_dict,
    explained,
    explanation,
    fail,
    print_json,
    print_table,
    say,
    warn,
)
from services.kernel.errors import Rejected

app = typer.Typer(
    help="Tasks that were given up: list them, hand them to their role again, or drop them.", no_args_is_help=True
)
_PAGE = 500
# What is told of one failure and says nothing about the others.
_OF_ONE = (
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.DATA_LOSS,
)
# Numbers are positions of the log, which start at 1 and end where JetStream's do.
_LAST_POSITION = 2**63 - 1
Ids = Annotated[
    list[int] | None,
    typer.Argument(min=1, max=_LAST_POSITION, help="Failures by number, as the list shows them."),
]
All = Annotated[bool, typer.Option("--all", help="Every open failure of the crate.")]
Reply = pb.RetryFailureResponse | pb.DropFailureResponse


@app.command("list")
def list_failures(
    open_only: Annotated[bool, typer.Option("--open", help="Leave out what was retried or dropped.")] = False,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """List tasks that were given up, newest first, with the reason and what became of them."""
    with explained():
        found = list(failures(Client(data_dir=data_dir, address=address), crate, open_only=open_only))
        if json_output:
            print_json([as_dict(failure) for failure in found])
            return
        rows = [(failure.failure_id, _state(failure), *_what(failure), failure.task.reason) for failure in found]
        print_table(("failure", "state", "service", "document", "reason"), rows)


@app.command("retry")
def retry(
    failure_ids: Ids = None,
    every: All = False,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Hand failed tasks to their role again, once the cause is gone; what fails again is a new failure."""
    with explained():
        client = Client(data_dir=data_dir, address=address)

        def one(failure_id: int) -> Reply:
            return client.ingest.RetryFailure(pb.RetryFailureRequest(crate_id=crate, failure_id=failure_id))

        _settle(_chosen(client, crate, failure_ids, every=every), one, "retried", json_output)


@app.command("drop")
def drop(
    failure_ids: Ids = None,
    every: All = False,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Say that failed tasks aren't wanted any more; their documents keep their status."""
    with explained():
        client = Client(data_dir=data_dir, address=address)

        def one(failure_id: int) -> Reply:
            return client.ingest.DropFailure(pb.DropFailureRequest(crate_id=crate, failure_id=failure_id))

        _settle(_chosen(client, crate, failure_ids, every=every), one, "dropped", json_output)


def failures(client: Client, crate: str, *, open_only: bool) -> Iterator[pb.Failure]:
    """Failures of a crate, newest first.

    Args:
        client: Of a running node.
        crate: Crate id.
        open_only: Leaves out what was retried or dropped.

    Yields:
        Failures, read page by page.
    """
    token = ""
    while True:
        page = client.ingest.ListFailures(
            pb.ListFailuresRequest(crate_id=crate, page_size=_PAGE, page_token=token, open_only=open_only)
        )
        yield from page.failures
        token = page.next_page_token
        if not token:
            return


def _chosen(client: Client, crate: str, failure_ids: list[int] | None, *, every: bool) -> list[int]:
    if bool(failure_ids) == every:
        raise Rejected("name failures by their number, or give --all, one of the two: nothing was done")
    return failure_ids or [failure.failure_id for failure in failures(client, crate, open_only=True)]


def _settle(failure_ids: list[int], one: Callable[[int], Reply], done: str, json_output: bool) -> None:
    replies: dict[int, Reply] = {}
    refused: dict[int, tuple[str, Exit]] = {}
    for failure_id in dict.fromkeys(failure_ids):
        try:
            replies[failure_id] = one(failure_id)
        except grpc.RpcError as error:
            if error.code() not in _OF_ONE:
                # The node is away, or the caller has no grant: the others would fare no better.
                if replies:
                    _tell(replies, {}, done, json_output)
                raise
            refused[failure_id] = explanation(error)
    if len(failure_ids) == 1 and refused:
        ((message, code),) = refused.values()
        fail(message, code)
    _tell(replies, refused, done, json_output)
    if refused:
        fail(f"{len(refused)} of {len(refused) + len(replies)} failures were not {done}", Exit.PARTIAL)


def _tell(replies: dict[int, Reply], refused: dict[int, tuple[str, Exit]], done: str, json_output: bool) -> None:
    if json_output:
        settled = [{"failure_id": failure_id} | as_dict(reply) for failure_id, reply in replies.items()]
        print_json(settled + [{"failure_id": one, "error": message} for one, (message, _) in refused.items()])
        return
    for failure_id, reply in replies.items():
        already = " already" if reply.unchanged else ""
        say(f"failure {failure_id} was{already} {done} at position {reply.position}")
    for failure_id, (message, _) in refused.items():
        warn(f"failure {failure_id} was not {done}: {message}")


def _state(failure: pb.Failure) -> str:
    state = pb.FailureState.Name(failure.state).removeprefix("FAILURE_STATE_").lower()
    return f"{state} at {failure.settled_position}" if failure.settled_position else state


def _what(failure: pb.Failure) -> tuple[str, str]:
    return failure.task.service, failure.source_id or failure.task.document_id
