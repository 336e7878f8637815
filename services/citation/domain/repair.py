"""Marker repair of a whole text, at once or as a stream: the same bytes either way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.citation.domain.markers import MAX_SOURCES, Repair, repair_sentence
from services.citation.domain.sentences import Sentence, SentenceReader

RULES = "markers-1"


@dataclass(frozen=True, slots=True)
class Repaired:
    """A text with repaired markers.

    Attributes:
        text: As it should be shown.
        cited: Numbers of its markers, in order of first appearance, each once.
        actions: What was done; applied to the raw text in order they give the text.
        unsupported: Sentences of the text that lost their last marker, without white space around them.
    """

    text: str
    cited: tuple[int, ...] = ()
    actions: tuple[Repair, ...] = ()
    unsupported: tuple[str, ...] = ()


class StreamRepairer:
    """Repairs a text that arrives in pieces. What `feed` and `finish` give, joined, is what `repair` gives."""

    def __init__(self, *, source_count: int, literals: tuple[tuple[int, int], ...] = ()) -> None:
        """Start a text.

        Args:
            source_count: Markers 1 to source_count exist; 0 to MAX_SOURCES.
            literals: Spans of the raw text that quote evidence and stay as they are: code points, ends exclusive, by
                rising start, none overlapping the next.

        Raises:
            ValueError: When the count is out of range or the spans overlap.
        """
        if not 0 <= source_count <= MAX_SOURCES:
            raise ValueError(f"source_count {source_count} is out of range: 0 to {MAX_SOURCES}")
        self._source_count = source_count
        self._reader = SentenceReader(literals)
        self._raw: list[str] = []
        self._shown: list[str] = []
        self._blank: list[str] = []
        self._cited: dict[int, None] = {}
        self._actions: list[Repair] = []
        self._unsupported: list[str] = []

    def feed(self, piece: str) -> str:
        """Read on.

        Args:
            piece: Next piece of the raw text.

        Returns:
            Next piece of the repaired text: whole sentences, possibly none.
        """
        if not self._shown:
            self._raw.append(piece)
        return self._show(self._reader.feed(piece))

    def finish(self) -> tuple[str, Repaired]:
        """End the text.

        Returns:
            The last piece, and the whole.
        """
        piece = self._show(self._reader.finish())
        if self._shown:
            text = "".join(self._shown)
            whole = Repaired(text, tuple(self._cited), tuple(self._actions), tuple(self._unsupported))
            return piece, whole
        # Nothing but markers that name no source: an empty answer would hide what the model wrote.
        text = "".join(self._raw)
        return text, Repaired(text, unsupported=(text.strip(),) if text.strip() else ())

    def _show(self, sentences: Iterable[Sentence]) -> str:
        pieces: list[str] = []
        for sentence in sentences:
            found = repair_sentence(sentence.raw, sentence.masked, sentence.start, self._source_count)
            self._cited |= dict.fromkeys(found.cited)
            self._actions += found.repairs
            if found.unsupported:
                self._unsupported.append(found.text.strip())
            pieces.append(found.text)
        piece = "".join(pieces)
        if not self._shown and not piece.strip():
            self._blank.append(piece)
            return ""
        if not self._shown:
            piece = "".join((*self._blank, piece))
            self._raw, self._blank = [], []
        self._shown.append(piece)
        return piece


def repair(raw_text: str, source_count: int, literals: tuple[tuple[int, int], ...] = ()) -> Repaired:
    """Bring every marker to the form [n] and remove those that name no source.

    Args:
        raw_text: As a model wrote it.
        source_count: Markers 1 to source_count exist; 0 to MAX_SOURCES.
        literals: Spans of the raw text that stay as they are, see `StreamRepairer`.

    Returns:
        The text and what was done. Where only markers without a source stood, the raw text.

    Raises:
        ValueError: When the count is out of range or the spans overlap.
    """
    repairer = StreamRepairer(source_count=source_count, literals=literals)
    repairer.feed(raw_text)
    return repairer.finish()[1]
