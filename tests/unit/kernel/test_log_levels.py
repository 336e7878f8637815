"""What providers send is in no log, at any level."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from services.kernel.telemetry import configure_logging


@pytest.fixture
def untouched() -> Iterator[None]:
    """The root logger as it was."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    # Taken away first: setting logging up anew closes those that it finds.
    root.handlers.clear()
    yield
    root.handlers[:], root.level = handlers, level
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.mark.usefixtures("untouched")
def test_libraries_that_log_headers_stay_silent() -> None:
    configure_logging("debug")
    assert logging.getLogger("affidavit.kernel").isEnabledFor(logging.DEBUG)
    for name in ("httpx", "httpcore.http11", "httpcore.connection"):
        assert not logging.getLogger(name).isEnabledFor(logging.INFO)
        assert logging.getLogger(name).isEnabledFor(logging.WARNING)
