from __future__ import annotations

import grpc
import pytest

from services.kernel import errors
from services.kernel.errors import Settlement


@pytest.mark.parametrize(
    ("error", "status", "settlement"),
    [
        (errors.Rejected("x"), grpc.StatusCode.INVALID_ARGUMENT, Settlement.GIVE_UP),
        (errors.NotAvailableYet("x"), grpc.StatusCode.UNIMPLEMENTED, Settlement.GIVE_UP),
        (errors.NotFound("x"), grpc.StatusCode.NOT_FOUND, Settlement.GIVE_UP),
        (errors.Conflict("x"), grpc.StatusCode.ABORTED, Settlement.RETRY),
        (errors.Unavailable("x"), grpc.StatusCode.UNAVAILABLE, Settlement.RETRY),
        (errors.Corrupt("x"), grpc.StatusCode.DATA_LOSS, Settlement.GIVE_UP),
        (RuntimeError("x"), grpc.StatusCode.INTERNAL, Settlement.RETRY),
    ],
)
def test_every_outcome_has_a_status_and_a_settlement(
    error: Exception, status: grpc.StatusCode, settlement: Settlement
) -> None:
    found = errors.outcome(error)
    assert (found.status, found.settlement) == (status, settlement)
