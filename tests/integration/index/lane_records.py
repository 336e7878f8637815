"""Records for the lane suites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from services.index.domain.analysis import analyse_text
from services.index.domain.records import (
    EVERY_KIND,
    Form,
    KeywordChange,
    KeywordRecord,
    Kind,
    Record,
    VectorChange,
)

DIMENSION = 8


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
) -> Record:
    """A record of a numbered document."""
    return Record(document(number), revision, ordinal, kind, form, domain)


def keyword_record(of: Record, text: str, *, title: str = "", entities: Sequence[str] = ()) -> KeywordRecord:
    """A record with its terms."""
    return KeywordRecord(of, title=analyse_text(title), headings=(), text=analyse_text(text), entities=entities)


def texts(
    number: int, *chunks: str, revision: int = 1, form: Form = Form.TEXT, domain: str = "example.org"
) -> KeywordChange:
    """Replaces a document by chunks of text."""
    return KeywordChange(
        document(number),
        tuple(
            keyword_record(record(number, revision=revision, ordinal=i, form=form, domain=domain), text)
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
) -> VectorChange:
    """Replaces a document by vectors."""
    made = tuple(
        record(number, revision=revision, ordinal=i, kind=kind, form=form, domain=domain) for i in range(len(rows))
    )
    return VectorChange(document(number), made, np.stack(rows) if rows else None, kinds)
