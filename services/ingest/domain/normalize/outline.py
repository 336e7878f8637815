"""The headings of a document and the path to the current place."""


class Outline:
    """Keeps the open headings while a document is read."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []
        self._all: list[str] = []
        self._path: tuple[str, ...] = ()

    @property
    def path(self) -> tuple[str, ...]:
        """Names of the open headings, outermost first."""
        return self._path

    @property
    def headings(self) -> tuple[str, ...]:
        """Names of all headings in order."""
        return tuple(self._all)

    def enter(self, level: int, name: str) -> tuple[str, ...]:
        """A heading is met: it closes those of its level and below.

        Args:
            level: 1 for the outermost.
            name: Its text.

        Returns:
            The path that ends with it.
        """
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        self._open.append((level, name))
        if name:
            self._all.append(name)
        self._path = tuple(name for _, name in self._open if name)
        return self._path
