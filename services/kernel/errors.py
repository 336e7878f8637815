"""The five outcomes in which a request or an event can fail, and what each means on both edges."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import grpc


class Settlement(Enum):
    """What happens to an event whose handler failed."""

    RETRY = "retry"
    GIVE_UP = "give up"


class Failure(Exception):  # noqa: N818  (the five outcomes are the vocabulary of the house, not Python errors)
    """A failure with a message fit for the caller: what happened, to which id, what to do next."""

    code = "internal"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Rejected(Failure):
    """The input is wrong; the same input will always be refused."""

    code = "rejected"


class NotAvailableYet(Rejected):
    """The request is well formed, but this version doesn't serve it."""

    code = "not_available_yet"


class PreconditionFailed(Rejected):
    """The request is well formed, but what is stored doesn't meet what it asks for; the message says what is missing."""

    code = "precondition_failed"


class NotFound(Failure):
    """The named thing doesn't exist, or not for this caller."""

    code = "not_found"


class Conflict(Failure):
    """Somebody else changed the same thing first, or the state forbids the change."""

    code = "conflict"


class Unavailable(Failure):
    """A part that is needed doesn't answer; the same request may succeed later."""

    code = "unavailable"


class Exhausted(Unavailable):
    """A quota is used up; the same request may succeed once something was freed or the quota was raised."""

    code = "exhausted"


class ProviderRefused(Rejected):
    """A model's provider refuses this request, and will refuse it again.

    Attributes:
        status: HTTP status that it answered with; 0 when the answer itself is the refusal.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ProviderAway(Unavailable):
    """A model's provider doesn't answer as it should now; the same request may succeed later."""


class Corrupt(Failure):
    """Stored data isn't what was stored."""

    code = "corrupt"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a failure looks on the two edges."""

    status: grpc.StatusCode
    settlement: Settlement


OUTCOMES: dict[type[Failure], Outcome] = {
    Rejected: Outcome(grpc.StatusCode.INVALID_ARGUMENT, Settlement.GIVE_UP),
    NotAvailableYet: Outcome(grpc.StatusCode.UNIMPLEMENTED, Settlement.GIVE_UP),
    PreconditionFailed: Outcome(grpc.StatusCode.FAILED_PRECONDITION, Settlement.GIVE_UP),
    NotFound: Outcome(grpc.StatusCode.NOT_FOUND, Settlement.GIVE_UP),
    Conflict: Outcome(grpc.StatusCode.ABORTED, Settlement.RETRY),
    Unavailable: Outcome(grpc.StatusCode.UNAVAILABLE, Settlement.RETRY),
    Exhausted: Outcome(grpc.StatusCode.RESOURCE_EXHAUSTED, Settlement.RETRY),
    Corrupt: Outcome(grpc.StatusCode.DATA_LOSS, Settlement.GIVE_UP),
}


def outcome(error: BaseException) -> Outcome:
    """Look up how an exception is to be treated.

    Args:
        error: Any exception that left a handler or a servicer.

    Returns:
        The row of its class; INTERNAL and retry for what is no Failure, since a fault of ours may be transient.
    """
    for kind in type(error).__mro__:
        if kind in OUTCOMES:
            return OUTCOMES[kind]
    return Outcome(grpc.StatusCode.INTERNAL, Settlement.RETRY)
