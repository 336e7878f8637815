"""From the status of a call to another service to one of the five outcomes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from services.kernel.errors import Conflict, Corrupt, Failure, NotAvailableYet, NotFound, Rejected, Unavailable

_OUTCOMES: dict[grpc.StatusCode, type[Failure]] = {
    grpc.StatusCode.INVALID_ARGUMENT: Rejected,
    grpc.StatusCode.UNIMPLEMENTED: NotAvailableYet,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.PERMISSION_DENIED: NotFound,
    grpc.StatusCode.ABORTED: Conflict,
    grpc.StatusCode.FAILED_PRECONDITION: Conflict,
    grpc.StatusCode.DATA_LOSS: Corrupt,
}


@contextmanager
def calling(service: str) -> Iterator[None]:
    """Turn the errors of a call into outcomes.

    Args:
        service: Name of the service that is called, for the message.

    Yields:
        Nothing.

    Raises:
        Failure: The outcome that belongs to the status; Unavailable for every other one.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        kind = _OUTCOMES.get(error.code(), Unavailable)
        details = error.details() or "no details"
        if kind is Unavailable:
            raise Unavailable(f"{service} doesn't answer ({error.code().name.lower()}): {details}") from error
        raise kind(details) from error
