"""What only the tantivy adapter can get wrong: its files, its writers, its errors."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import tantivy

from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.domain.records import EVERY_REVISION, KeywordChange, LaneFilter
from services.kernel.errors import Corrupt, Unavailable
from tests.integration.index.lane_records import document, texts


async def test_more_lanes_than_writers(tmp_path: Path) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    opened = [await lanes.open(f"crate-{n}", 1) for n in range(7)]
    for position in (1, 2):
        for lane in opened:
            await lane.replace([texts(position, "gate")], position)
    assert [await lane.count() for lane in opened] == [2] * 7
    await lanes.close()


async def test_a_second_owner_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    first, second = TantivyKeywordLanes(root=tmp_path), TantivyKeywordLanes(root=tmp_path)
    await (await first.open("main", 1)).replace([texts(1, "gate")], 1)
    other = await second.open("main", 1)
    with pytest.raises(Unavailable, match="lock"):
        await other.replace([texts(2, "gate")], 2)
    await first.close()
    await other.replace([texts(2, "gate")], 2)
    assert await other.count() == 2
    await second.close()


async def test_damaged_files_are_reported_as_corrupt(tmp_path: Path) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    await (await lanes.open("main", 1)).replace([texts(1, "gate")], 1)
    await lanes.close()
    folder = tmp_path / "main" / "1" / "keyword"
    kept = (folder / "position.json").read_bytes()
    (folder / "position.json").write_text('{"layout": "keyword-0", "position": 3}')
    with pytest.raises(Corrupt, match="start again"):
        await TantivyKeywordLanes(root=tmp_path).open("main", 1)
    (folder / "position.json").write_bytes(kept)
    (folder / "chunk" / "meta.json").write_text("{")
    with pytest.raises(Corrupt, match="start again"):
        await TantivyKeywordLanes(root=tmp_path).open("main", 1)


async def test_a_lost_position_means_that_everything_comes_again(tmp_path: Path) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    await (await lanes.open("main", 1)).replace([texts(1, "gate")], 1)
    await lanes.close()
    (tmp_path / "main" / "1" / "keyword" / "position.json").unlink()
    lane = await TantivyKeywordLanes(root=tmp_path).open("main", 1)
    assert await lane.position() == 0
    await lane.replace([texts(1, "gate")], 1)
    assert await lane.count() == 1
    await lane.close()


async def test_a_failed_batch_leaves_the_lane_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    lane = await lanes.open("main", 1)
    await lane.replace([texts(1, "gate")], 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("services.index.adapters.tantivy_index._document", full)
        with pytest.raises(Unavailable, match="No space left"):
            await lane.replace([texts(1, "door")], 2)
    assert await lane.position() == 1
    assert len(await lane.search(["gate"], LaneFilter(), 1)) == 1
    await lane.replace([texts(1, "door")], 2)
    assert await lane.search(["gate"], LaneFilter(), 1) == []
    await lanes.close()


async def test_killed_at_any_point_the_lane_holds_a_prefix(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import asyncio, sys
        from pathlib import Path
        from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
        from tests.integration.index.lane_records import document, texts

        async def main():
            lane = await TantivyKeywordLanes(root=Path(sys.argv[1])).open("main", 1)
            position = await lane.position()
            while True:
                position += 1
                # One document changes with every batch, one more comes.
                await lane.replace([texts(0, f"r{position}", revision=position), texts(position, "gate")], position)
                print(position, flush=True)

        asyncio.run(main())
    """)
    acknowledged = 0
    for pause in (3, 5):
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert writer.stdout is not None
        for _ in range(pause):
            acknowledged = int(await writer.stdout.readline())
        writer.kill()
        await writer.wait()
        lanes = TantivyKeywordLanes(root=tmp_path)
        lane = await lanes.open("main", 1)
        position, count = await lane.position(), await lane.count()
        assert position >= acknowledged
        # The commit may be one batch ahead of the position, which then is applied again.
        assert count in {position + 1, position + 2}
        (hit,) = await lane.search([f"r{count - 1}"], LaneFilter(), 5)
        assert hit.revision == count - 1
        await lanes.close()


async def pages_of(*changes: KeywordChange) -> AsyncIterator[Sequence[KeywordChange]]:
    for change in changes:
        yield [change]


def dictionary_holds(folder: Path, term: str) -> bool:
    """Whether a lane's files name a term, be it of deleted records only."""
    indexes = (folder / "main" / "1" / "keyword" / "chunk").parent
    found = [
        tantivy.Index.open(str(indexes / kind)).searcher().doc_freq("body", term) for kind in ("chunk", "document")
    ]
    return any(found)


async def test_a_rewrite_leaves_no_term_of_deleted_records(tmp_path: Path) -> None:
    lanes = TantivyKeywordLanes(root=tmp_path)
    lane = await lanes.open("main", 1)
    await lane.replace([texts(1, "gate"), texts(2, "zworblax"), texts(3, "harbour")], 1)
    await lane.replace([KeywordChange(document(2), EVERY_REVISION)], 2)
    assert dictionary_holds(tmp_path, "zworblax")
    await lane.rewrite(pages_of(texts(1, "gate"), texts(3, "harbour")))
    assert not dictionary_holds(tmp_path, "zworblax")
    assert (await lane.count(), await lane.position()) == (2, 2)
    assert [hit.document_id for hit in await lane.search(["harbour"], LaneFilter(), 5)] == [document(3)]
    await lane.replace([texts(3, "pier"), texts(4, "harbour")], 3)
    assert [hit.document_id for hit in await lane.search(["harbour"], LaneFilter(), 5)] == [document(4)]
    await lanes.close()
    again = await TantivyKeywordLanes(root=tmp_path).open("main", 1)
    assert (await again.count(), await again.position()) == (3, 3)
    await again.close()


async def test_a_rewrite_that_fails_leaves_the_lane_as_it_was(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[Sequence[KeywordChange]]:
        yield [texts(1, "gate")]
        raise Unavailable("the rows are away")

    lanes = TantivyKeywordLanes(root=tmp_path)
    lane = await lanes.open("main", 1)
    await lane.replace([texts(1, "gate"), texts(2, "harbour")], 1)
    with pytest.raises(Unavailable, match="rows are away"):
        await lane.rewrite(broken())
    assert await lane.count() == 2
    await lane.replace([texts(3, "harbour")], 2)
    assert [hit.document_id for hit in await lane.search(["harbour"], LaneFilter(), 5)] == [document(2), document(3)]
    await lanes.close()
