"""Frames between the index service and its vector engine, and in the engine's journal.

A frame is two lengths (header uint32, body uint64, big-endian), a JSON header, and a body of raw little-endian float32.
No pickles: whoever can write to the socket can make the engine search and replace, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

_LENGTHS = struct.Struct(">IQ")
_MOST_HEADER_BYTES = 64 << 20
_MOST_BODY_BYTES = 1 << 30

Header = dict[str, Any]


class FrameError(Exception):
    """Bytes that aren't a frame."""


StoredForce = tuple[int, int, int, int, int]
"""Effective from and in force until, microseconds since 1970; log positions from which the latter is known, and of the
revision; 1 when it is current, else 0."""
StoredRecord = tuple[int, int, str, str, str, StoredForce]
"""Revision, place in the revision, kind, form, source domain, force."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A piece of one revision's change. Each step becomes visible as a whole.

    Attributes:
        document_id: Document that is changed.
        revision: Revision whose records are replaced; 0 for those of all revisions.
        edition: Number that is the document's own for this change; records of other editions go with the last step.
        kinds: Kinds that are replaced.
        records: What comes.
        vectors: float32[n, d], row i belongs to records[i].
        last: True for the step that makes the new edition visible and deletes the others.
        moved: Form and new force, where records stay as they are and only count at other times; then nothing is replaced.
    """

    document_id: str
    revision: int
    edition: int
    kinds: tuple[str, ...]
    records: tuple[StoredRecord, ...]
    vectors: NDArray[np.float32]
    last: bool
    moved: tuple[str, StoredForce] | None = None


def encode(header: Header, body: bytes = b"") -> tuple[bytes, bytes]:
    """Encode a frame.

    Args:
        header: JSON object.
        body: Raw bytes.

    Returns:
        Its two pieces in order, the body uncopied.
    """
    text = json.dumps(header, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), len(body)) + text, body


async def read(reader: asyncio.StreamReader) -> tuple[Header, bytes]:
    """Read a frame.

    Args:
        reader: Stream at the start of a frame.

    Returns:
        Header and body.

    Raises:
        FrameError: The lengths or the header are no frame's.
        asyncio.IncompleteReadError: The stream ended.
    """
    header_bytes, body_bytes = _lengths(await reader.readexactly(_LENGTHS.size))
    return _header(await reader.readexactly(header_bytes)), await reader.readexactly(body_bytes)


def read_file(file: BinaryIO) -> Iterator[tuple[Header, bytes]]:
    """Read the frames of a file up to its present end.

    Args:
        file: Open at the start of a frame.

    Yields:
        Header and body of each.
    """
    while lengths := file.read(_LENGTHS.size):
        header_bytes, body_bytes = _lengths(lengths)
        yield _header(file.read(header_bytes)), file.read(body_bytes)


def encode_steps(steps: list[Step], header: Header) -> tuple[bytes, bytes]:
    """Encode steps in one frame.

    Args:
        steps: At least one.
        header: What else the header says.

    Returns:
        The two pieces of the frame.
    """
    rows = np.concatenate([step.vectors for step in steps]).astype("<f4", copy=False)
    listed = [[s.document_id, s.revision, s.edition, s.kinds, s.records, s.last, s.moved] for s in steps]
    return encode({**header, "dimension": rows.shape[1], "steps": listed}, rows.tobytes())


def decode_steps(header: Header, body: bytes) -> list[Step]:
    """Decode what `encode_steps` made."""
    rows = np.frombuffer(body, dtype="<f4").reshape(-1, header["dimension"])
    steps: list[Step] = []
    at = 0
    for document_id, revision, edition, kinds, listed, last, moved in header["steps"]:
        records = tuple((*record[:5], tuple(record[5])) for record in listed)
        vectors = rows[at : at + len(records)]
        at += len(records)
        force = (moved[0], tuple(moved[1])) if moved else None
        steps.append(Step(document_id, revision, edition, tuple(kinds), records, vectors, last, force))
    return steps


def _lengths(encoded: bytes) -> tuple[int, int]:
    if len(encoded) != _LENGTHS.size:
        raise FrameError("a frame's lengths are cut off")
    header_bytes, body_bytes = _LENGTHS.unpack(encoded)
    if header_bytes > _MOST_HEADER_BYTES or body_bytes > _MOST_BODY_BYTES:
        raise FrameError(f"a frame of {header_bytes} + {body_bytes} bytes is larger than any this engine sends")
    return header_bytes, body_bytes


def _header(encoded: bytes) -> Header:
    try:
        header = json.loads(encoded)
    except ValueError as error:
        raise FrameError("a frame's header is no JSON") from error
    if not isinstance(header, dict):
        raise FrameError("a frame's header is no JSON object")
    return header
