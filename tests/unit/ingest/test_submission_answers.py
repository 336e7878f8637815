"""A publisher always gets an answer."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import cast

import pytest

from services.ingest.commands.documents import Documents
from services.ingest.commands.relations import Relations
from services.ingest.handlers import Submissions
from services.kernel.errors import Unavailable
from tests.conftest import admit_everybody

EVENT = json.dumps(
    {
        "specversion": "1.0",
        "id": "1",
        "source": "/hr",
        "type": "dev.affidavit.document.retire",
        "subject": "handbook/leave",
    }
).encode()


class Broken:
    """Commands that fail."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def submission_id(self, crate_id: str, source: str, event_id: str) -> str:  # noqa: ARG002  (the real signature)
        raise self._error


async def answer(error: Exception) -> dict[str, str]:
    submissions = Submissions(
        documents=cast(Documents, Broken(error)),
        relations=cast(Relations, None),
        admit=admit_everybody,
        clock=lambda: datetime(2026, 1, 2, tzinfo=UTC),
    )
    found: dict[str, dict[str, str]] = json.loads(await submissions.answer("main", EVENT, {}))
    return found["error"]


async def test_an_outcome_keeps_its_code_and_message() -> None:
    assert await answer(Unavailable("the log doesn't answer: retry")) == {
        "code": "unavailable",
        "message": "the log doesn't answer: retry",
    }


async def test_a_fault_of_ours_is_told_without_its_text_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = await answer(RuntimeError("text of a document"))
    assert error["code"] == "internal"
    assert "RuntimeError" in error["message"]
    assert "text of a document" not in error["message"]
    assert "a submission to crate main failed unexpectedly" in caplog.text
