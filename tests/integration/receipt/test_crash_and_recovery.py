"""Receipt under fire: a crash between any two steps, a rival writer, a lost key, a restored or replaced log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
import pytest
from affidavit.receipt.v1 import receipt_events_pb2 as events_pb
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import parse_bundle
from affidavit.verify.chain import verify_chain

from services import topology
from services.kernel.bus import Bus
from services.kernel.errors import Corrupt
from services.receipt.adapters.signer_file import KEY_FILE, KeyFolder
from services.receipt.codec import messages
from services.receipt.main import check_key
from tests.integration.receipt.issuer_parts import Dying, Killed, Parts
from tests.integration.receipt.receipt_world import CRATE, World, document_id, evidence

STEPS = (
    ("tables", "intend", "before"),
    ("tables", "intend", "after"),
    ("store", "write_evidence", "after"),
    ("store", "write_answer", "after"),
    ("log", "append", "after"),
)


@pytest.mark.parametrize(("part", "method", "when"), STEPS)
async def test_a_crash_between_any_two_steps(world: World, part: str, method: str, when: str) -> None:
    before = await world.issue()
    parts = Parts(world)
    setattr(parts, part, Dying(getattr(parts, part), method=method, when=when))
    with pytest.raises(Killed):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(2, content=b"left behind")])))
    after = await world.issue(evidence(3))
    await world.settled()
    logged = await world.logged()
    appended = (part, when) == ("log", "after")
    assert len(logged) == 2 + appended
    keys = keys_files.parse(await world.keys())
    verify_chain([one.cose for one in logged], keys, every_signature=True)
    assert {before.receipt_id, after.receipt_id} <= {one.receipt_id for one in logged}
    for one in logged:
        assert (await world.show(one.receipt_id)).disclosed
    sweeper = Parts(world).sweeper()
    await sweeper.sweep()
    assert world.answers() == {one.receipt_id for one in logged}
    assert await sweeper.sweep() == 0
    await world.erased(2)
    assert not world.files_with(b"left behind")


async def test_evidence_written_after_its_erasure_is_swept(world: World) -> None:
    parts = Parts(world)
    await world.issue()
    writes = parts.store.write_answer

    async def erased_meanwhile(*args: Any) -> Any:
        await world.erased(2)
        await writes(*args)
        raise Killed

    store = Dying(parts.store, method="nothing", when="before")
    store.write_answer = erased_meanwhile  # type: ignore[attr-defined]  # the step at which it dies
    writes_evidence = parts.store.write_evidence

    async def late(*args: Any) -> Any:
        await world.erased(2)
        return await writes_evidence(*args)

    store.write_evidence = late  # type: ignore[attr-defined]  # content that was read before the erasure
    parts.store = store
    request = world.request([evidence(2, content=b"should be gone")])
    with pytest.raises(Killed):
        await parts.issuer().issue(CRATE, messages.draft_from(request))
    # The erasure inside write_answer took it; put it back as a crash of another order would leave it.
    fresh = Parts(world)
    await fresh.store.write_evidence(CRATE, document_id(2), 1, {"0": b"should be gone"})
    assert world.files_with(b"should be gone")
    assert await fresh.sweeper().sweep() == 1
    assert not world.files_with(b"should be gone")


async def test_nothing_is_swept_too_early(world: World) -> None:
    parts = Parts(world)
    parts.log = Dying(parts.log, method="append", when="before")
    with pytest.raises(Killed):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(2)])))
    assert await Parts(world).sweeper(later=timedelta(0)).sweep() == 0
    assert await Parts(world).sweeper(caught_up=False).sweep() == 0
    assert await Parts(world).sweeper().sweep() == 1


async def test_a_receipt_of_an_erased_document_that_came_late_is_closed(world: World) -> None:
    parts = Parts(world)
    original = parts.tables.tombstones

    async def not_yet(crate: str, documents: list[str]) -> dict[str, int]:
        await original(crate, documents)
        return {}

    tables = Dying(parts.tables, method="nothing", when="before")
    tables.tombstones = not_yet  # type: ignore[attr-defined]  # as if the erasure came just after the check
    parts.tables = tables
    await world.erased(1)
    receipt_id, _ = await parts.issuer().issue(
        CRATE, messages.draft_from(world.request([evidence(1, content=b"gone"), evidence(2, content=b"stays")]))
    )
    await world.settled()
    shown = await world.show(receipt_id.hex())
    assert not shown.disclosed
    assert not world.files_with(b"gone")
    assert world.files_with(b"stays")


async def test_two_writers_do_not_fork_the_chain(world: World) -> None:
    rivals = [Parts(world).issuer() for _ in range(3)]
    drafts = [messages.draft_from(world.request([evidence(number)])) for number in range(1, 10)]
    await asyncio.gather(*(rivals[place % 3].issue(CRATE, draft) for place, draft in enumerate(drafts)))
    logged = await world.logged()
    assert [one.sequence for one in logged] == list(range(9))
    verify_chain([one.cose for one in logged], keys_files.parse(await world.keys()), every_signature=True)
    await world.settled()
    assert world.answers() == {one.receipt_id for one in logged}


async def test_a_confirmation_that_was_lost_is_recognised(world: World) -> None:
    parts = Parts(world)
    append: Callable[..., Awaitable[Any]] = parts.log.append

    class Forgetful(Dying):
        async def append(self, **kwargs: Any) -> Any:
            await append(**kwargs)
            return await append(**{**kwargs, "key": kwargs["key"] + "-again"})

    parts.log = Forgetful(parts.log, method="nothing", when="before")
    receipt_id, _ = await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(1)])))
    assert [one.receipt_id for one in await world.logged()] == [receipt_id.hex()]


async def test_a_task_that_was_given_up_does_not_hide_the_head(world: World) -> None:
    first = await world.issue()
    bad = events_pb.ReceiptIssued(receipt_id="ff" * 32, cose=b"no receipt")
    from services.kernel import failures  # only this test records one by hand

    event = await world.context.bus.last(crate=CRATE, service="receipt", aggregate="chain", stream=topology.SIGNALS)
    assert event is not None
    await failures.record(world.context.bus, event, Corrupt("made up by a test"))
    second = await world.issue()
    assert parse_bundle(second.bundle).receipt.parent.hex() == first.receipt_id
    await world.context.bus.append(crate=CRATE, aggregate="chain", message=bad, key="bad")
    with pytest.raises(grpc.aio.AioRpcError, match="holds no receipt") as caught:
        await world.issue()
    assert caught.value.code() is grpc.StatusCode.DATA_LOSS


async def test_a_lost_key_stops_signing_and_nothing_else(world: World) -> None:
    reply = await world.issue()
    keys = await world.keys()
    await world.settled()
    await world.stop()
    key = world.settings.data_dir / "keys" / KEY_FILE
    kept = key.read_bytes()
    key.unlink()
    assert "restore it from a backup" in check_key(world.settings.data_dir)
    await world.start()
    assert "restore it from a backup" in (await world.node.problems())["receipt/signing key"]
    with pytest.raises(grpc.aio.AioRpcError, match="signing is down") as caught:
        await world.issue()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert await world.keys() == keys
    assert (await world.show(reply.receipt_id)).bundle == reply.bundle
    assert not key.exists()
    await world.stop()
    key.write_bytes(kept)
    key.chmod(0o600)
    await world.start()
    await world.issue()
    assert check_key(world.settings.data_dir) == ""


async def test_a_whole_keys_folder_that_is_gone_is_not_replaced(world: World) -> None:
    await world.issue()
    await world.stop()
    folder = world.settings.data_dir / "keys"
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    for path in kept:
        path.unlink()
    assert "receipts were issued" in check_key(world.settings.data_dir)
    await world.start()
    with pytest.raises(grpc.aio.AioRpcError, match="signing is down"):
        await world.issue()
    with pytest.raises(grpc.aio.AioRpcError, match="there is no keys file"):
        await world.keys()
    assert not list(folder.iterdir())


async def test_another_key_never_continues_a_chain(world: World) -> None:
    await world.issue()
    parts = Parts(world)
    other = KeyFolder(path=world.settings.data_dir / "other-keys").create(issuer="", seed=b"\x05" * 32)
    parts.signer = other
    with pytest.raises(Exception, match="restore the keys folder that belongs to this log"):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(1)])))


async def test_tables_that_know_more_than_the_log_stop_it(world: World) -> None:
    await world.issue()
    await world.issue()
    await world.settled()
    parts = Parts(world)

    class Older(Dying):
        """The log as an old backup would have it."""

        async def last(self, **kwargs: Any) -> Any:
            return None if kwargs["aggregate"] == "chain" else await self._inner.last(**kwargs)

    parts.log = Older(parts.log, method="nothing", when="before")
    with pytest.raises(Exception, match="an older copy of the log was restored"):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(1)])))


async def test_a_stream_that_was_made_again_stops_the_role(world: World) -> None:
    await world.issue()
    await world.settled()
    await world.stop()
    bus = await Bus.connect(world.settings.nats_url, role="kernel")
    await bus.js.delete_stream(topology.SIGNALS)
    await bus.close()
    with pytest.raises(Corrupt, match="built from another log"):
        await world.start()
    # What the fixture stops and closes is there again.
    await _recreate(world)


async def _recreate(world: World) -> None:
    for table in ("positions", "receipts", "citations", "intents"):
        connection = await _connect(world)
        await connection.execute(f"truncate receipt.{table}")
        await connection.close()
    await world.start()


async def _connect(world: World) -> Any:
    import asyncpg  # only to play the operator

    return await asyncpg.connect(world.settings.postgres_dsn)


async def test_a_pack_that_vanished_is_named(world: World) -> None:
    reply = await world.issue()
    await world.settled()
    for path in world.settings.blobs.rglob(f"{reply.receipt_id},answer,*"):
        path.unlink()
    with pytest.raises(grpc.aio.AioRpcError, match="nothing it cites was erased") as caught:
        await world.show(reply.receipt_id)
    assert caught.value.code() is grpc.StatusCode.DATA_LOSS


async def test_replaying_both_streams_gives_the_same_tables(world: World) -> None:
    for number in (1, 2, 3, 2):
        await world.issue(evidence(number))
    await world.settled()
    await world.erased(2)
    before = await _rows(world)
    assert before
    await world.stop()
    connection = await _connect(world)
    for table in ("positions", "receipts", "citations", "tombstones", "intents"):
        await connection.execute(f"truncate receipt.{table}")
    await connection.close()
    await world.start()
    await world.settled()
    assert await world.context.applied("erasures", await world.erase(7))
    after = await _rows(world)
    assert [row for row in after if row[0] != document_id(7)] == before


async def _rows(world: World) -> list[tuple[Any, ...]]:
    connection = await _connect(world)
    rows = await connection.fetch(
        "select crate, receipt_id, sequence, parent_id, answer_id, cose, answer_pack from receipt.receipts order by 3"
    )
    rows += await connection.fetch("select * from receipt.citations order by 2, 3, 4")
    rows += await connection.fetch("select document_id, revision from receipt.tombstones order by 1")
    await connection.close()
    return [tuple(row) for row in rows]
