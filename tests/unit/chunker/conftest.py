"""Texts with structure, written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.chunker.domain.document import Block, BlockKind, NormalizedText, Run

Compose = Callable[..., NormalizedText]


@pytest.fixture
def compose() -> Compose:
    """Makes a document of (kind, text, path, context) pieces; pieces of kind None lie between blocks."""

    def make(
        *pieces: tuple[BlockKind | None, str, tuple[str, ...]] | tuple[BlockKind, str, tuple[str, ...], str],
    ) -> NormalizedText:
        text = ""
        blocks: list[Block] = []
        for kind, piece, path, *context in pieces:
            if kind is not None:
                blocks.append(Block(kind, len(text), len(text) + len(piece), path, *context))
            text += piece
        size_bytes = len(text.encode())
        runs = (Run(0, len(text), 0, len(text), 0, size_bytes, verbatim=True),) if text else ()
        return NormalizedText(text, runs, tuple(blocks))

    return make
