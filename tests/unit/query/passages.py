"""Passages for tests, made from a file's text as the chunker would for a file of one chunk."""

from __future__ import annotations

from services.index.domain.analysis import analyse_text
from services.query.domain.values import Form, Passage, RecordKey, Run


def passage(
    text: str,
    *,
    document: str = "doc",
    ordinal: int = 0,
    title: str = "",
    headings: tuple[str, ...] = (),
    context: str = "",
    form: Form = Form.TEXT,
    media_type: str = "text/plain",
    source_id: str = "notes.txt",
) -> Passage:
    """A chunk that is verbatim the whole of its document."""
    size = len(text.encode())
    return Passage(
        key=RecordKey(document, 1, ordinal),
        text=text,
        heading_path=headings,
        context=context,
        runs=(Run(0, len(text), 0, len(text), 0, size, verbatim=True),),
        terms=frozenset(analyse_text(" ".join((title, *headings, context, text)))),
        title=title,
        source_id=source_id,
        source_domain="tests",
        media_type=media_type,
        form=form,
        ingested_position=1,
    )
