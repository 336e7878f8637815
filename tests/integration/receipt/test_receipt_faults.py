"""What can't happen by itself, and what is said when it does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from services.kernel.errors import Conflict, Corrupt, NotFound, Rejected, Unavailable
from services.receipt import issuing
from services.receipt.codec import messages
from services.receipt.ports import Gone, ReceiptRow
from tests.integration.receipt.issuer_parts import Dying, Parts
from tests.integration.receipt.receipt_world import CRATE, World, evidence


async def nothing(_: Gone) -> None:
    """Deletes nothing."""


async def row_of(world: World, receipt_id: str) -> ReceiptRow:
    await world.settled()
    row = await Parts(world).tables.receipt(CRATE, bytes.fromhex(receipt_id))
    assert isinstance(row, ReceiptRow)
    return row


async def test_a_fork_in_the_log_never_enters_the_tables(world: World) -> None:
    row = await row_of(world, (await world.issue()).receipt_id)
    tables = Parts(world).tables
    await tables.add([row], position=row.position, delete=nothing)
    twin = replace(row, head=replace(row.head, receipt_id=b"\x01" * 32))
    with pytest.raises(Corrupt, match="forks the chain of crate main at 0"):
        await tables.add([twin], position=row.position + 1, delete=nothing)
    assert await tables.last(CRATE) == row.head


async def test_postgres_away_is_said(world: World) -> None:
    await world.issue()
    parts = Parts(world)
    await world.context._databases[0].pool.close()
    for call in (
        parts.tables.last(CRATE),
        parts.tables.tombstones(CRATE, []),
        parts.tables.receipt(CRATE, bytes(32)),
        parts.tables.position("receipts"),
    ):
        with pytest.raises(Unavailable, match="Postgres doesn't answer"):
            await call


async def test_a_chain_that_others_keep_taking_is_given_up(world: World) -> None:
    parts = Parts(world)

    class Contended(Dying):
        async def append(self, **_: Any) -> Any:
            raise Conflict("always")

    parts.log = Contended(parts.log, method="nothing", when="before")
    with pytest.raises(Conflict, match="answered by too many at once"):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(1)])))
    assert not [name for name in world.blobs() if "/answer/" in name]


async def test_an_issue_that_takes_too_long_is_ended(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuing, "_DEADLINE_S", 0.05)
    parts = Parts(world)

    class Slow(Dying):
        async def append(self, **_: Any) -> Any:
            await asyncio.sleep(5)

    parts.log = Slow(parts.log, method="nothing", when="before")
    with pytest.raises(Unavailable, match=r"no receipt within 0\.05 s"):
        await parts.issuer().issue(CRATE, messages.draft_from(world.request([evidence(1)])))


async def test_a_pack_of_another_layout_is_corrupt(world: World) -> None:
    reply = await world.issue()
    await world.settled()
    parts = Parts(world)

    class Odd(Dying):
        async def read_answer(self, *_: Any) -> dict[str, bytes]:
            return {"answer": b"\x80"}

    parts.store = Odd(parts.store, method="nothing", when="before")
    with pytest.raises(Corrupt, match="the pack of the answer can't be read"):
        await parts.archive().show(CRATE, reply.receipt_id)


async def test_a_read_during_an_erasure_waits_for_it(world: World) -> None:
    reply = await world.issue(evidence(1))
    row = await row_of(world, reply.receipt_id)
    parts = Parts(world)
    deleted, go_on = asyncio.Event(), asyncio.Event()

    async def slowly(gone: Gone) -> None:
        await parts.store.delete(gone)
        deleted.set()
        await go_on.wait()

    from services.receipt.ports import ErasedRow  # only this test erases by hand

    erased = [ErasedRow(CRATE, evidence(1).document_id, 1)]
    erasing = asyncio.create_task(parts.tables.erase(erased, position=row.position, delete=slowly))
    await deleted.wait()
    reading = asyncio.create_task(parts.archive().show(CRATE, reply.receipt_id))
    await asyncio.sleep(0.1)
    assert not reading.done()
    go_on.set()
    await erasing
    assert not (await reading).disclosed


async def test_an_empty_chain_has_no_receipts(world: World) -> None:
    with pytest.raises(NotFound, match="crate main has no receipt"):
        await Parts(world).archive().show(CRATE, "0" * 64)


async def test_an_issuer_can_not_be_renamed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.issue()
    await world.stop()
    monkeypatch.setenv("AFFIDAVIT_RECEIPT_ISSUER", "example.org/another")
    with pytest.raises(Rejected, match="an issuer can't be renamed"):
        await world.start()
    monkeypatch.delenv("AFFIDAVIT_RECEIPT_ISSUER")
    await world.start()
    await world.issue()
