"""Units of evidence: the sentences and records of a passage, each with the terms around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from services.query.domain.records import Record, find_records
from services.query.domain.sentences import split_sentences
from services.query.domain.values import Form, Passage
from services.query.domain.words import stem, terms

_CAMEL = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})")
_SEPARATORS = regex.compile(r"[_\-./\\:]+")
_SCALAR = regex.compile(r"[\d\s.,:/+\-TZ%]*\d[\d\s.,:/+\-TZ%]*")
# Abbreviations that columns and keys are named by.
_SPELLED_OUT = {
    "eol": "end of life, support ends",
    "eoas": "end of active support",
    "eos": "end of support, end of sale",
    "lts": "long term support",
    "dob": "date of birth",
    "qty": "quantity",
    "tel": "telephone phone",
    "max": "maximum",
    "min": "minimum",
    "avg": "average",
    "desc": "description",
    "dept": "department",
    "addr": "address",
    "num": "number",
}
_YEAR = regex.compile(r"^((?:1[89]|20)\d{2})[-/.]")


@dataclass(frozen=True, slots=True)
class Unit:
    """The smallest piece that an answer can cite.

    Attributes:
        passage: The chunk that it belongs to.
        start: Code points into the passage's text.
        end: Same, exclusive.
        text: As an answer says it: the sentence, or the record written as "name: value".
        own: Terms of the unit itself.
        head: Terms of the document's title, the headings, the context and what encloses a record.
        near: Terms of the unit and its neighbours.
        body: Terms of the whole passage.
    """

    passage: Passage
    start: int
    end: int
    text: str
    own: frozenset[str]
    head: frozenset[str]
    near: frozenset[str]
    body: frozenset[str]

    @property
    def names(self) -> str:
        """Title and headings above it, in words."""
        return " ".join((self.passage.title, *self.passage.heading_path))

    @property
    def meaning_text(self) -> str:
        """What is embedded for it: the sentence behind its title and innermost heading."""
        headings = self.passage.heading_path[-1:]
        names = dict.fromkeys(name for name in (self.passage.title, *headings) if name and name != self.text)
        return " ".join((*names, self.text))


def units_of(passage: Passage) -> tuple[Unit, ...]:
    """Cut a passage into its units.

    Args:
        passage: A chunk.

    Returns:
        Its records where it is structured content that can be read as such, else its sentences without headings.
    """
    if passage.form is Form.STRUCTURED:
        records = find_records(passage.text, media_type=passage.media_type, context=passage.context)
        if records:
            return tuple(_record_units(passage, records))
    return tuple(_sentence_units(passage))


def identifier_terms(name: str) -> frozenset[str]:
    """Collect the terms of a column name, key or path.

    Args:
        name: For example "release_date", "latestReleaseDate" or "policies/leave-2025.md".

    Returns:
        The terms of its parts.
    """
    found = terms(_SEPARATORS.sub(" ", _CAMEL.sub(" ", name)))
    return found.union(*(terms(_SPELLED_OUT[term]) for term in found if term in _SPELLED_OUT))


def _sentence_units(passage: Passage) -> Iterator[Unit]:
    text = passage.text
    every = split_sentences(text)
    sentences = tuple(sentence for sentence in every if not sentence.heading)
    pieces = tuple(text[sentence.start : sentence.end] for sentence in sentences)
    owns = tuple(terms(piece) | _keys(piece) for piece in pieces)
    headings = (terms(text[sentence.start : sentence.end]) for sentence in every if sentence.heading)
    head, body = _head(passage), frozenset().union(*owns, *headings)
    for at, (sentence, piece) in enumerate(zip(sentences, pieces, strict=True)):
        near = frozenset().union(*owns[max(0, at - 1) : at + 2])
        yield Unit(passage, sentence.start, sentence.end, piece, owns[at], head, near, body)


def _keys(piece: str) -> frozenset[str]:
    """Parts of the identifiers in a piece of text."""
    return identifier_terms(piece) if "_" in piece or _CAMEL.search(piece) else frozenset()


def _record_units(passage: Passage, records: Sequence[Record]) -> Iterator[Unit]:
    owns = tuple(_record_terms(record) for record in records)
    # Values that stand alone, such as a file's "product: Ruby", speak about every record beside them.
    scalars = frozenset().union(*(own for record, own in zip(records, owns, strict=True) if len(record.pairs) == 1))
    head, body = _head(passage), frozenset().union(*owns)
    for at, (record, own) in enumerate(zip(records, owns, strict=True)):
        enclosing = frozenset().union(*(identifier_terms(parent) for parent in record.parents))
        near = frozenset().union(*owns[max(0, at - 1) : at + 2]) if len(record.pairs) == 1 else own
        yield Unit(
            passage,
            record.start,
            record.end,
            " > ".join((*record.parents[-1:], record.render())) if len(record.pairs) == 1 else record.render(),
            own,
            head | enclosing | (scalars if len(record.pairs) > 1 else frozenset()),
            near,
            own if len(record.pairs) > 1 else body,
        )


def _record_terms(record: Record) -> frozenset[str]:
    """Terms of names and values; a number or date counts only as the whole, so that 14 isn't found in 2021-09-14."""
    found: set[str] = set()
    for name, value in record.pairs:
        found |= identifier_terms(name)
        if _SCALAR.fullmatch(value):
            found.add(stem(value))
            found.update(_YEAR.findall(value))
        else:
            found |= terms(value)
    return frozenset(found)


def _head(passage: Passage) -> frozenset[str]:
    named = terms(" ".join((passage.title, *passage.heading_path)))
    context = identifier_terms(passage.context) | terms(passage.context)
    stem_of_path = passage.source_id.rpartition("/")[2].rpartition(".")[0] or passage.source_id.rpartition("/")[2]
    return named | context | identifier_terms(stem_of_path)
