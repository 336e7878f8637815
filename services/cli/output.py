"""What a person or a program sees: tables or JSON, and an exit code that says what happened."""

from __future__ import annotations

import contextlib
import errno
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.kernel.errors import Conflict, Failure, NotAvailableYet, NotFound, Rejected, Unavailable

console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
_as_json: ContextVar[bool] = ContextVar("as_json", default=False)


def _note_json(value: bool) -> bool:
    _as_json.set(value)
    return value


JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.", callback=_note_json)]
# What a terminal obeys or what makes a line read otherwise than it is written: C0, DEL, C1, line and paragraph
# separators, bidirectional controls (UAX 9), deprecated format characters, and the surrogates of undecodable bytes.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]")


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
    DIFFERENT = 11


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
        fail(*explanation(error))
    except UnicodeEncodeError as error:
        # Bytes of an argument that are no UTF-8 arrive as lone surrogates, which no message can carry.
        fail(f"'{error.object}' is not UTF-8 text: nothing was sent", Exit.REJECTED)
    except OSError as error:
        # A closed pipe is how `| head` ends us, which is nobody's fault.
        if error.errno == errno.EPIPE:
            raise
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), Exit.FAULT)
    except KeyboardInterrupt:
        fail("interrupted; what was accepted stays accepted", Exit.FAULT)


def explanation(error: grpc.RpcError) -> tuple[str, Exit]:
    """What a failed call is told as.

    Args:
        error: Of the call.

    Returns:
        A message for people, and the exit code.
    """
    status, details = error.code(), error.details()
    if status is grpc.StatusCode.UNAVAILABLE and "connect" in (details or ""):
        details = "affidavit doesn't answer: start it with `affidavit up`, or check --data-dir and --address"
    return details or status.name, _BY_STATUS.get(status, Exit.FAULT)


def fail(message: str, code: Exit) -> NoReturn:
    """Print an error on stderr and leave: a line, or with --json an object of its code and message."""
    if _as_json.get():
        sys.stderr.write(_json({"error": {"code": code.name.lower(), "message": message}}))
    else:
        errors.print(Text.assemble(("error:", "red"), " ", printable(message)))
    raise typer.Exit(code)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that the caller named.

    Args:
        path: Where to.
        content: All of it.

    Raises:
        Failure: When it can't be written; the message says why.
    """
    try:
        path.write_bytes(content)
    except OSError as error:
        raise Failure(f"{path} can't be written: {error.strerror}; name another file") from error


def as_dict(message: Message) -> dict[str, Any]:
    """A protobuf message as plain data; field names as in the contracts, bytes as base64."""
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(_json(value))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table without frames, fit for a pipe as well."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    console.print(table)


def say(text: str = "") -> None:
    """A line of plain text; nothing in it is taken for markup, and a line break in it is shown, not obeyed."""
    console.print(printable(text))


def say_lines(text: str) -> None:
    """A text of several lines, such as an answer."""
    for line in text.removesuffix("\n").split("\n"):
        say(line.expandtabs())


def warn(text: str) -> None:
    """A line on stderr."""
    errors.print(printable(text))


def printable(text: str) -> str:
    r"""Escape what a terminal would obey or show in another order.

    Args:
        text: Anything, also from documents that nobody here wrote.

    Returns:
        The same, with control, bidirectional and undecodable characters as `\x1b`, `\n` or `\u202e`.
    """
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if "\udc80" <= character <= "\udcff":
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _json(value: object) -> str:
    # Line breaks of the layout stay; all other control characters are in strings, where an escape means the same.
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return (
        _UNSAFE.sub(lambda found: found.group() if found.group() == "\n" else f"\\u{ord(found.group()):04x}", text)
        + "\n"
    )
