"""The standard strategy acknowledges and emits nothing; the other one is refused in so many words."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
import pytest
from affidavit.chunker.v1 import chunker_events_pb2 as chunker_pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_service_pb2 as pb
from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.errors import NotFound
from services.kernel.settings import NodeSettings
from services.proposition.main import wire
from tests.integration.chunker.small_world import DOCUMENT, World


@pytest.fixture
async def world(node_settings: NodeSettings) -> AsyncIterator[World]:
    """A node that runs proposition."""
    made = World(settings=node_settings, wires={"proposition": wire})
    await made.open()
    yield made
    await made.stop()
    await made.close()


def chunked(revision: int = 1) -> chunker_pb.DocumentChunked:
    return chunker_pb.DocumentChunked(document_id=DOCUMENT, revision=revision, chunk_count=1)


async def test_the_standard_strategy_emits_nothing(world: World) -> None:
    await world.configure()
    await world.append(chunked(), aggregate=DOCUMENT, role="chunker")
    await world.settled("proposition", "evaluate")
    assert [event.name for event in await world.events()] == ["CrateConfigured", "DocumentChunked"]


async def test_without_a_configuration_the_strategy_is_standard(world: World) -> None:
    await world.append(chunked(), aggregate=DOCUMENT, role="chunker")
    await world.settled("proposition", "evaluate")
    assert [event.name for event in await world.events()] == ["DocumentChunked"]


async def test_a_crate_that_asks_for_propositions_is_told(world: World) -> None:
    await world.configure(strategy=settings_pb2.RETRIEVAL_STRATEGY_PROPOSITION)
    await world.append(chunked(), aggregate=DOCUMENT, role="chunker")
    (event,) = await world.named("TaskFailed")
    failed = event.message
    assert isinstance(failed, event_pb.TaskFailed)
    assert (failed.service, failed.code, failed.document_id) == ("proposition", "not_available_yet", DOCUMENT)


async def test_what_comes_again_is_judged_by_the_configuration_of_its_time(world: World) -> None:
    await world.configure()
    await world.append(chunked(), aggregate=DOCUMENT, role="chunker")
    await world.settled("proposition", "evaluate")
    await world.configure(strategy=settings_pb2.RETRIEVAL_STRATEGY_PROPOSITION)
    await world.buses["ingest"].js.delete_consumer("KNOWLEDGE", "proposition-evaluate-main")
    await world.settled("proposition", "evaluate")
    assert [event.name for event in await world.events()] == ["CrateConfigured", "DocumentChunked", "CrateConfigured"]


async def test_erasing_removes_evaluations_of_that_revision_and_before(world: World) -> None:
    refs = {
        revision: await world.packs.write(f"main/{DOCUMENT}/{revision}/propositions", {"evaluations": b"x"})
        for revision in (1, 2, 3)
    }
    await world.erase(revision=2)
    await world.settled("proposition", "evaluate")
    for revision in (1, 2):
        with pytest.raises(NotFound):
            await world.packs.read(f"main/{DOCUMENT}/{revision}/propositions", refs[revision].id)
    assert await world.packs.read(f"main/{DOCUMENT}/3/propositions", refs[3].id) == {"evaluations": b"x"}


async def test_listing_is_not_available_yet(world: World) -> None:
    await world.configure()
    with pytest.raises(grpc.aio.AioRpcError, match="propositions are not available yet") as refused:
        await pb_grpc.PropositionServiceStub(world.channel).ListPropositions(
            pb.ListPropositionsRequest(crate_id="main", document_id=DOCUMENT)
        )
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
