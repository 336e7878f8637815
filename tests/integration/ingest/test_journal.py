"""Decisions in the log: repeated, overtaken, and not yet readable."""

from __future__ import annotations

from dataclasses import replace

import pytest
from affidavit.ingest.v1.ingest_events_pb2 import DocumentRetired

from services.ingest.commands.log import Decided, Journal
from services.kernel.errors import Unavailable
from tests.integration.ingest.ingest_world import Client, World

pytestmark = pytest.mark.asyncio(loop_scope="module")


def decided(crate: str, revision: int) -> Decided:
    return Decided(
        crate_id=crate,
        aggregate="f" * 32,
        message=DocumentRetired(document_id="f" * 32, revision=revision),
        key="k",
        expected=0,
    )


async def applied(position: int) -> bool:  # noqa: ARG001  (the port's signature)
    return True


async def behind(position: int) -> bool:  # noqa: ARG001  (the port's signature)
    return False


async def test_a_repeated_append_of_the_same_decision_has_its_position(world: World, client: Client) -> None:
    journal = Journal(log=world.buses["ingest"], applied=applied)
    position = await journal.record(decided(client.crate, 1))
    assert position is not None
    # The confirmation was lost and the append is repeated: the log knows the key.
    assert await journal.record(decided(client.crate, 1)) == position


async def test_another_decision_of_the_same_name_is_not_taken_for_ours(world: World, client: Client) -> None:
    journal = Journal(log=world.buses["ingest"], applied=applied)
    assert await journal.record(decided(client.crate, 1)) is not None
    assert await journal.record(decided(client.crate, 2)) is None


async def test_a_decision_that_was_overtaken_has_to_be_made_again(world: World, client: Client) -> None:
    journal = Journal(log=world.buses["ingest"], applied=applied)
    assert await journal.record(decided(client.crate, 1)) is not None
    assert await journal.record(replace(decided(client.crate, 2), key="other")) is None


async def test_tables_that_do_not_follow_are_named(world: World, client: Client) -> None:
    journal = Journal(log=world.buses["ingest"], applied=behind)
    with pytest.raises(Unavailable, match="document x stands in the log at position 5, but the tables don't follow"):
        await journal.read_back("document x", 5)
    await journal.catch_up(client.crate, "0" * 32)
    with pytest.raises(Unavailable, match="CrateConfigured of crate stands in the log"):
        await journal.catch_up(client.crate, "crate")
