"""Records for the lane suites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.index.domain.analysis import analyse_text
from services.index.domain.force import Force
from services.index.domain.records import (
    EVERY_KIND,
    EVERY_REVISION,
    Form,
    KeywordChange,
    KeywordRecord,
    Kind,
    Record,
    VectorChange,
)

DIMENSION = 8
ALWAYS = Force(effective_from=0, position=1)


def document(number: int) -> str:
    """Document id of a number."""
    return f"{number:032x}"


def record(  # a record has this many fields
    number: int,
    *,
    revision: int = 1,
    ordinal: int = 0,
    kind: Kind = Kind.CHUNK,
    form: Form = Form.TEXT,
    domain: str = "example.org",
    force: Force = ALWAYS,
) -> Record:
    """A record of a numbered document."""
    return Record(document(number), revision, ordinal, kind, form, domain, force)


def keyword_record(of: Record, text: str, *, title: str = "", entities: Sequence[str] = ()) -> KeywordRecord:
    """A record with its terms."""
    return KeywordRecord(of, title=analyse_text(title), headings=(), text=analyse_text(text), entities=entities)


def texts(
    number: int,
    *chunks: str,
    revision: int = 1,
    form: Form = Form.TEXT,
    domain: str = "example.org",
    force: Force = ALWAYS,
    of: int = EVERY_REVISION,
) -> KeywordChange:
    """Replaces a document, or one of its revisions, by chunks of text."""
    return KeywordChange(
        document(number),
        of,
        tuple(
            keyword_record(record(number, revision=revision, ordinal=i, form=form, domain=domain, force=force), text)
            for i, text in enumerate(chunks)
        ),
    )


def direction(*components: float) -> NDArray[np.float32]:
    """A vector with the given first components."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[: len(components)] = components
    return vector


def vectors(
    number: int,
    *rows: NDArray[np.float32],
    revision: int = 1,
    kind: Kind = Kind.CHUNK,
    form: Form = Form.TEXT,
    domain: str = "example.org",
    kinds: tuple[Kind, ...] = EVERY_KIND,
    force: Force = ALWAYS,
    of: int = EVERY_REVISION,
) -> VectorChange:
    """Replaces a document, or one of its revisions, by vectors."""
    made = tuple(
        record(number, revision=revision, ordinal=i, kind=kind, form=form, domain=domain, force=force)
        for i in range(len(rows))
    )
    return VectorChange(document(number), of, made, np.stack(rows) if rows else None, kinds)
