"""Whether any receipt was ever issued, asked of the log itself."""

from __future__ import annotations

from nats.js.errors import NotFoundError

from services import topology
from services.kernel.bus import Bus

_ANY_RECEIPT = f"{topology.SUBJECT_ROOTS[topology.SIGNALS]}.*.receipt.*.receipt_issued"


async def any_receipt_issued(log: Bus) -> bool:
    """Look for a receipt of any crate.

    Args:
        log: The log.

    Returns:
        False on a log that never held one: only then may a first key be made.
    """
    try:
        await log.js.get_last_msg(topology.SIGNALS, _ANY_RECEIPT)
    except NotFoundError:
        return False
    return True
