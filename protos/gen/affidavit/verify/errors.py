"""Why bytes were refused."""

from __future__ import annotations


class Refused(Exception):  # noqa: N818  (a refusal is the verifier's ordinary result, not a fault of the program)
    """Bytes that are not what they claim to be.

    Attributes:
        step: Step of the verification that refused them, for example "signature".
        reason: What is wrong, in words.
    """

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step}: {reason}")
        self.step = step
        self.reason = reason
