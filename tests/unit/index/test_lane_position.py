"""The position file of a lane."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.index.adapters.lane_position import PositionFile


def test_the_last_position_written_is_read(tmp_path: Path) -> None:
    stored = PositionFile(tmp_path / "position.json", layout="x-1")
    assert stored.read() == 0
    for position in (5, 2**60):
        stored.write(position)
        assert PositionFile(tmp_path / "position.json", layout="x-1").read() == position
    assert [path.name for path in tmp_path.iterdir()] == ["position.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"layout": "x-2", "position": 1}', '{"layout": "x-1", "position": "1"}']
)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "position.json").write_text(content)
    with pytest.raises(ValueError, match=r"layout|Expecting"):
        PositionFile(tmp_path / "position.json", layout="x-1").read()


def test_a_file_that_was_being_written_is_ignored(tmp_path: Path) -> None:
    stored = PositionFile(tmp_path / "position.json", layout="x-1")
    stored.write(7)
    (tmp_path / "position.new").write_text('{"layo')
    assert stored.read() == 7
    stored.write(8)
    assert stored.read() == 8
