"""Refusals of the domain as the outcomes that the edges know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from services.ingest.domain.normalize import InvalidDocument
from services.ingest.domain.refusals import NotBuiltYet, Refused, Unknown
from services.kernel.errors import NotAvailableYet, NotFound, Rejected


@contextmanager
def outcomes(about: str = "") -> Iterator[None]:
    """Turn refusals into outcomes.

    Args:
        about: What is refused, where the refusal itself doesn't say so.

    Raises:
        Rejected: For input that is wrong.
        NotAvailableYet: For input that a later version serves.
        NotFound: For a document that doesn't exist.
    """
    try:
        yield
    except NotBuiltYet as error:
        raise NotAvailableYet(str(error)) from error
    except Refused as error:
        raise Rejected(str(error)) from error
    except InvalidDocument as error:
        raise Rejected(f"{about}{error}") from error
    except Unknown as error:
        raise NotFound(str(error.args[0])) from error
