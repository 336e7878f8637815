"""Reading of bodies: here, or as a process of its own that takes them from its standard input.

Each message of either direction is two frames: pickled values, then raw bytes, so that a large body is never pickled.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from blake3 import blake3

from services.ingest.codec import content
from services.ingest.domain.documents import Form, Prepared
from services.ingest.domain.headers import MAX_TITLE_CHARS, Header, clean
from services.ingest.domain.normalize import InvalidDocument, normalize, source_domain

LENGTHS: Final = struct.Struct(">QQ")
# Large documents take turns with everything else on the machine, and lose.
_NICENESS: Final = 5


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be read, beside the body."""

    crate_id: str
    header: Header


@dataclass(frozen=True, slots=True)
class Refusal:
    """The body can't be read."""

    message: str


def read(task: Task, body: bytes) -> Prepared:
    """Read a body.

    Args:
        task: Crate and checked header.
        body: Original bytes.

    Returns:
        What is in it.

    Raises:
        InvalidDocument: When it can't be read.
    """
    header = task.header
    document = normalize(body, source_id=header.source_id, media_type=header.media_type, charset=header.charset)
    title, notices = clean("the document's title", header.title or document.title[:MAX_TITLE_CHARS])
    return Prepared(
        media_type=document.media_type,
        charset=document.charset,
        form=Form(document.form),
        title=title,
        metadata=document.metadata,
        source_domain=header.source_domain or source_domain(header.uri, header.source_id, task.crate_id),
        notices=(*document.notices, *notices),
        links=document.links,
        content_hash=blake3(body).digest(),
        size_bytes=len(body),
        # Serialised where it was made: a large document's structure is too much to hand over object by object.
        normalized=content.normalized_bytes(document, title),
    )


def pack(value: object, raw: bytes) -> tuple[bytes, bytes]:
    """Write the head of a message; the raw bytes follow it.

    Args:
        value: Small value.
        raw: Large bytes.

    Returns:
        Lengths and value, then the raw bytes as they are.
    """
    pickled = pickle.dumps(value)
    return LENGTHS.pack(len(pickled), len(raw)) + pickled, raw


def unpack(pickled: bytes) -> object:
    """Read the value of a message that came from our own process."""
    return pickle.loads(pickled)  # noqa: S301  (both ends of the pipe are this program)


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Read bodies until the other end closes.

    Args:
        source: Tasks.
        target: What came of them.
    """
    while len(lengths := source.read(LENGTHS.size)) == LENGTHS.size:
        value_bytes, raw_bytes = LENGTHS.unpack(lengths)
        task = unpack(source.read(value_bytes))
        if not isinstance(task, Task):
            raise TypeError("the other end isn't ours")
        answer, raw = _answer(task, source.read(raw_bytes))
        target.writelines(pack(answer, raw))
        target.flush()


def _answer(task: Task, body: bytes) -> tuple[Prepared | Refusal, bytes]:
    try:
        prepared = read(task, body)
    except InvalidDocument as error:
        return Refusal(str(error)), b""
    return replace(prepared, normalized=b""), prepared.normalized


def main() -> None:
    """Be that process."""
    os.nice(_NICENESS)
    serve(sys.stdin.buffer, sys.stdout.buffer)
