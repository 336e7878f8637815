"""What a person or a program sees: tables or JSON, and an exit code that says what happened."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Annotated, Any, NoReturn

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console
from rich.table import Table

from services.kernel.errors import Conflict, Failure, NotAvailableYet, NotFound, Rejected, Unavailable

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAULT = 1
    USAGE = 2
    REJECTED = 3
    NOT_FOUND = 4
    UNAVAILABLE = 5
    CONFLICT = 6
    NOT_AVAILABLE_YET = 7
    PARTIAL = 8
    NO_ANSWER = 9
    NOT_VERIFIED = 10


_BY_FAILURE: tuple[tuple[type[Failure], Exit], ...] = (
    (NotAvailableYet, Exit.NOT_AVAILABLE_YET),
    (Rejected, Exit.REJECTED),
    (NotFound, Exit.NOT_FOUND),
    (Unavailable, Exit.UNAVAILABLE),
    (Conflict, Exit.CONFLICT),
)
_BY_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: Exit.REJECTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Exit.REJECTED,
    grpc.StatusCode.NOT_FOUND: Exit.NOT_FOUND,
    grpc.StatusCode.UNAVAILABLE: Exit.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Exit.UNAVAILABLE,
    grpc.StatusCode.ABORTED: Exit.CONFLICT,
    grpc.StatusCode.ALREADY_EXISTS: Exit.CONFLICT,
    grpc.StatusCode.FAILED_PRECONDITION: Exit.CONFLICT,
    grpc.StatusCode.UNIMPLEMENTED: Exit.NOT_AVAILABLE_YET,
}


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn failures into one line on stderr and an exit code."""
    try:
        yield
    except Failure as error:
        code = next((code for kind, code in _BY_FAILURE if isinstance(error, kind)), Exit.FAULT)
        fail(error.message, code)
    except grpc.RpcError as error:
        status, details = error.code(), error.details()
        if status is grpc.StatusCode.UNAVAILABLE and "connect" in (details or ""):
            details = "affidavit doesn't answer: start it with `affidavit up`, or check --data-dir and --address"
        fail(details or status.name, _BY_STATUS.get(status, Exit.FAULT))
    except KeyboardInterrupt:
        fail("interrupted; what was accepted stays accepted", Exit.FAULT)


def fail(message: str, code: Exit) -> NoReturn:
    """Print an error and leave."""
    errors.print(f"[red]error:[/red] {_plain(message)}")
    raise typer.Exit(code)


def as_dict(message: Message) -> dict[str, Any]:
    """A protobuf message as plain data; field names as in the contracts, bytes as base64."""
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table without frames, fit for a pipe as well."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(_plain(str(cell)) for cell in row))
    console.print(table)


def say(text: str = "") -> None:
    """A line of plain text; nothing in it is taken for markup."""
    console.print(_plain(text))


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
