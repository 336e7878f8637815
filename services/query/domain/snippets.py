"""The part of a chunk that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence

from services.query.domain.admission import covered_share
from services.query.domain.sentences import split_sentences
from services.query.domain.values import Passage, TermWeight
from services.query.domain.words import terms as terms_of

SNIPPET_CHARS = 300


def snippet(passage: Passage, terms: Sequence[TermWeight]) -> str:
    """Cut a snippet.

    Args:
        passage: A chunk.
        terms: The query's terms with their IDF; empty where the keyword lane was not used.

    Returns:
        The sentence or line that covers most of the query, or the start of the chunk where none covers any; one line,
        at most 300 code points.
    """
    wanted = tuple(term for term in terms if term.term in passage.terms)
    best, most = passage.text, 0.0
    if wanted:
        for sentence in split_sentences(passage.text):
            piece = passage.text[sentence.start : sentence.end]
            share = covered_share(wanted, terms_of(piece))
            if share > most:
                best, most = piece, share
    line = " ".join(best.split())
    return line if len(line) <= SNIPPET_CHARS else line[: SNIPPET_CHARS - 1].rstrip() + "…"
