"""Building and re-cutting text that remembers where it comes from."""

from services.ingest.domain.normalize.model import MappedText, Run


class RunBuilder:
    """Collects runs in the order of the text and joins verbatim neighbours that continue each other."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._runs: list[Run] = []
        # The verbatim run that may still grow: text start, first character, characters' end, first byte, bytes' end.
        self._open: tuple[int, int, int, int, int] | None = None
        self._length = 0

    @property
    def length(self) -> int:
        """Code points of text so far."""
        return self._length

    def add(self, text: str, *, chars: tuple[int, int], span: tuple[int, int], verbatim: bool) -> None:
        """Append a piece of text.

        Args:
            text: The piece; an empty one is ignored.
            chars: Its code points in the decoded original, end exclusive.
            span: Its bytes in the original, end exclusive.
            verbatim: Whether the piece equals the decoded original.
        """
        if not text:
            return
        start = self._length
        self._parts.append(text)
        if verbatim and self._open and self._open[4] == span[0] and self._open[2] == chars[0]:
            self._open = (self._open[0], self._open[1], chars[1], self._open[3], span[1])
        elif verbatim:
            self._close()
            self._open = (start, chars[0], chars[1], span[0], span[1])
        else:
            self._close()
            self._runs.append(Run(start, start + len(text), chars[0], chars[1], span[0], span[1], verbatim=False))
        self._length = start + len(text)

    def build(self) -> MappedText:
        """The text and its runs."""
        self._close()
        return MappedText("".join(self._parts), tuple(self._runs))

    def _close(self) -> None:
        if self._open:
            start, char_start, char_end, byte_start, byte_end = self._open
            self._runs.append(Run(start, self._length, char_start, char_end, byte_start, byte_end, verbatim=True))
            self._open = None


class Extractor:
    """Makes a new text out of pieces of a mapped one. Pieces come in ascending order; the cost is linear in them."""

    def __init__(self, source: MappedText, charset: str) -> None:
        self._source = source
        self._charset = charset
        self._index = 0
        # The last offset that was located, its byte, and the run it belongs to.
        self._cursor = (0, 0, -1)
        self._builder = RunBuilder()

    @property
    def length(self) -> int:
        """Code points of the new text so far."""
        return self._builder.length

    def copy(self, start: int, end: int) -> None:
        """Append the source text between two offsets (code points) as it is."""
        position = start
        while position < end:
            run = self._run_at(position)
            stop = min(end, run.text_end)
            text = self._source.text[position:stop]
            chars, span = (run.char_start, run.char_end), (run.byte_start, run.byte_end)
            if run.verbatim:
                first, byte = run.char_start + position - run.text_start, self._byte(run, position)
                chars, span = (first, first + stop - position), (byte, byte + len(text.encode(self._charset)))
                self._cursor = (stop, span[1], self._index)
            self._builder.add(text, chars=chars, span=span, verbatim=run.verbatim)
            position = stop

    def put(self, text: str, start: int, end: int) -> None:
        """Append text that stands for the source text between two offsets (code points); an empty span is a point."""
        first = self._edge(start, at_end=False)
        last = self._edge(end, at_end=True) if end > start else first
        self._builder.add(text, chars=(first[0], last[0]), span=(first[1], last[1]), verbatim=False)

    def build(self) -> MappedText:
        """The new text."""
        return self._builder.build()

    def _edge(self, offset: int, *, at_end: bool) -> tuple[int, int]:
        """Character and byte of a source offset; inside a non-verbatim run, those of its outer edge."""
        run = self._run_at(offset - 1 if at_end else min(offset, len(self._source.text) - 1))
        if run.verbatim:
            return run.char_start + offset - run.text_start, self._byte(run, offset)
        return (run.char_end, run.byte_end) if at_end or offset >= run.text_end else (run.char_start, run.byte_start)

    def _run_at(self, offset: int) -> Run:
        runs = self._source.runs
        while runs[self._index].text_end <= offset:
            self._index += 1
        while runs[self._index].text_start > offset:
            self._index -= 1
        return runs[self._index]

    def _byte(self, run: Run, offset: int) -> int:
        position, byte, index = self._cursor
        if index != self._index:
            position, byte = run.text_start, run.byte_start
        if offset >= position:
            byte += len(self._source.text[position:offset].encode(self._charset))
        else:
            byte -= len(self._source.text[offset:position].encode(self._charset))
        self._cursor = (offset, byte, self._index)
        return byte
