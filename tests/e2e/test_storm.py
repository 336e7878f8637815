"""A small storm: documents come in while processes are killed. `make storm` runs a large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.commands import let_through
from tests.storm.__main__ import problems
from tests.storm.storm import run

_DOCUMENTS = 30
_KILLS = 14


@pytest.mark.timeout(600)
def test_nothing_is_lost_doubled_or_stuck_when_processes_are_killed(tmp_path: Path) -> None:
    let_through(tmp_path)
    calm = run(tmp_path / "calm", documents=_DOCUMENTS, kills=0, seed=7)
    storm = run(tmp_path / "storm", documents=_DOCUMENTS, kills=_KILLS, seed=7)
    assert storm.kills.total() == _KILLS
    assert problems(calm, storm) == []
