"""What is embedded for a chunk: the one place that decides it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from blake3 import blake3

# Says of each text whether the model takes it whole, in one window.
Fits = Callable[[Sequence[str]], Sequence[bool]]


@dataclass(frozen=True, slots=True)
class ChunkText:
    """A chunk as far as embedding is concerned.

    Attributes:
        text: Its text, with the overlap.
        heading_path: Titles of the enclosing headings, outermost first.
    """

    text: str
    heading_path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """A text as it goes to the model.

    Attributes:
        text: With or without heading.
        windowed: True when it is longer than the model takes at once.
    """

    text: str
    windowed: bool


def embedded_texts(title: str, chunks: Sequence[ChunkText], fits: Fits) -> tuple[EmbeddedText, ...]:
    """Decide what is embedded for each chunk of a document.

    The nearest heading, or else the title, stands before the text, unless the text begins with it or the two together
    no longer fit: a heading must never be what makes windows necessary.

    Args:
        title: Of the document; may be empty.
        chunks: In order.
        fits: Which texts the model takes whole.

    Returns:
        One text per chunk.
    """
    headed = [_headed(title, chunk) for chunk in chunks]
    headed_fits = fits(headed)
    alone = [index for index, ok in enumerate(headed_fits) if not ok]
    alone_fits = dict(zip(alone, fits([chunks[index].text for index in alone]), strict=True))
    return tuple(
        EmbeddedText(chunk.text, windowed=not alone_fits[index])
        if index in alone_fits
        else EmbeddedText(headed[index], windowed=False)
        for index, chunk in enumerate(chunks)
    )


def statement_texts(statements: Sequence[str], fits: Fits) -> tuple[EmbeddedText, ...]:
    """What is embedded for propositions: they stand for themselves, without heading.

    Args:
        statements: Texts.
        fits: Which texts the model takes whole.

    Returns:
        One text per proposition.
    """
    return tuple(EmbeddedText(text, windowed=not ok) for text, ok in zip(statements, fits(statements), strict=True))


def text_key(model_id: str, text: str) -> bytes:
    """What reuse is keyed by.

    Args:
        model_id: Model.
        text: As it goes to the model.

    Returns:
        BLAKE3 over both, each after its length, 32 bytes.
    """
    hasher = blake3()
    for field in (model_id.encode(), text.encode()):
        hasher.update(len(field).to_bytes(8, "big"))
        hasher.update(field)
    return hasher.digest()


def _headed(title: str, chunk: ChunkText) -> str:
    heading = (chunk.heading_path[-1] if chunk.heading_path else title).strip()
    if not heading or chunk.text.startswith(heading):
        return chunk.text
    return f"{heading}\n{chunk.text}"
