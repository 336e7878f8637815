"""Looks for what is left of an erased text in every file below a folder."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from pathlib import Path

_BASE64_EDGE = 4


def forms(word: str) -> tuple[bytes, ...]:
    """How a word of lower-case ASCII letters may stand in a file that isn't compressed.

    JSON, percent-encoding, CBOR and protobuf leave such a word as it is; base64 has three forms, by where it begins.
    """
    written = {word, word.upper(), word.capitalize()}
    found = [one.encode(name) for one in sorted(written) for name in ("utf-8", "utf-16-le", "utf-16-be")]
    found.append(word.encode().hex().encode())
    # The letters at both ends depend on the neighbours, the ones between don't.
    coded = [base64.b64encode(b"\0" * shift + word.encode())[_BASE64_EDGE:-_BASE64_EDGE] for shift in range(3)]
    return (*found, *coded)


def remains(folder: Path, wanted: Mapping[str, Iterable[bytes]]) -> dict[str, list[str]]:
    """Search all files, open and sparse ones included.

    Args:
        folder: Where to look, at any depth.
        wanted: Byte strings by name; one that is found counts for its name.

    Returns:
        Names found, by path relative to the folder.
    """
    hits = {}
    for path in sorted(folder.rglob("*")):
        try:
            # A FIFO or socket would block.
            held = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        except FileNotFoundError:
            # Another process took it away in between.
            continue
        held = held.rstrip(b"\0")
        names = [name for name, patterns in wanted.items() if any(pattern in held for pattern in patterns)]
        if names:
            hits[str(path.relative_to(folder))] = names
    return hits
