"""Lines of a text: CR LF, LF and a lone CR end one alike, and nothing else does."""

import re
from array import array
from bisect import bisect_right

# Atomic, so that CR LF is never taken for two line ends.
LINE_END = r"(?>\r\n|\n|\r)"
_LINE_END = re.compile(r"\r\n|\n|\r")


class Lines:
    """Start and end of each line of a text; the end leaves the line end out."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = array("Q", [0])
        self.ends = array("Q")
        for match in _LINE_END.finditer(text):
            self.ends.append(match.start())
            self.starts.append(match.end())
        self.ends.append(len(text))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, index: int) -> str:
        return self.text[self.starts[index] : self.ends[index]]

    def is_blank(self, index: int) -> bool:
        """Whether a line holds white space only."""
        return not self[index].strip()

    def span(self, first: int, end: int) -> tuple[int, int]:
        """Offsets of lines `first` to `end` (exclusive), without blank lines at the end and the last line end."""
        while end > first + 1 and self.is_blank(end - 1):
            end -= 1
        return self.starts[first], self.ends[end - 1]

    def number(self, offset: int) -> int:
        """The line, from 1, that an offset lies in."""
        return bisect_right(self.starts, offset)


def line_number(text: str, offset: int) -> int:
    """The line, from 1, that an offset lies in."""
    return sum(1 for _ in _LINE_END.finditer(text, 0, offset)) + 1
