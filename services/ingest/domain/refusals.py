"""Why a command can't be carried out, as values of the domain; the edges map them to the five outcomes."""

from __future__ import annotations


class Refused(ValueError):  # noqa: N818  (an outcome of a decision, not a Python error)
    """The input is wrong: the same input is refused every time."""


class NotBuiltYet(Refused):
    """The input is well formed, but this version doesn't serve it; storing it would mean ignoring it."""


class Unknown(LookupError):  # noqa: N818  (an outcome of a decision, not a Python error)
    """The named document doesn't exist."""
