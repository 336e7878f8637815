"""PropositionsEvaluated in, RecordsEmbedded out: chunks first, then the accepted propositions."""

from __future__ import annotations

import numpy as np
import pytest

from services.embedder.adapters.model_constant import HashModel
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import unit_rows
from services.kernel.errors import Corrupt, NotFound
from tests.integration.embedder.embedder_world import CRATE, World

CHUNKS = ["alpha", "beta"]
ACCEPTED = [["Alpha is first.", "Alpha is Greek."], ["Beta is second."]]


@pytest.fixture
async def evaluating(bare_world: World) -> World:
    """A crate whose generation has propositions."""
    await bare_world.configure()
    await bare_world.start_generation(strategy="proposition")
    return bare_world


async def test_chunks_and_accepted_propositions_get_vectors(evaluating: World) -> None:
    event = await evaluating.evaluated(await evaluating.chunked(CHUNKS, title="Greek"), ACCEPTED)
    await evaluating.embedder.handle(event)
    message = await evaluating.embedded()
    assert message is not None
    assert (message.chunk_count, message.record_count, message.computed_count) == (2, 5, 5)
    assert (message.chunks, message.evaluations) == (
        event.message.chunks,  # type: ignore[attr-defined]  # the generic Message has no fields
        event.message.evaluations,  # type: ignore[attr-defined]  # the generic Message has no fields
    )
    texts = ["Greek\nalpha", "Greek\nbeta", *ACCEPTED[0], *ACCEPTED[1]]
    expected = unit_rows(await HashModel().embed(texts, Purpose.DOCUMENT), count=5, dimension=384)
    assert np.array_equal(await evaluating.vectors(message), expected)


async def test_chunks_wait_for_their_propositions(evaluating: World) -> None:
    await evaluating.embedder.handle(await evaluating.chunked(CHUNKS))
    assert await evaluating.embedded() is None
    assert evaluating.model.texts == []


async def test_propositions_are_nothing_to_a_generation_without(world: World) -> None:
    chunked = await world.chunked(CHUNKS)
    await world.embedder.handle(await world.evaluated(chunked, ACCEPTED))
    assert await world.embedded() is None
    await world.embedder.handle(chunked)
    message = await world.embedded()
    assert message is not None
    assert (message.record_count, message.chunk_count, message.HasField("evaluations")) == (2, 0, False)


async def test_propositions_of_another_generation_are_left_alone(evaluating: World) -> None:
    await evaluating.embedder.handle(
        await evaluating.evaluated(await evaluating.chunked(CHUNKS), ACCEPTED, generation=2)
    )
    assert await evaluating.embedded() is None


async def test_a_document_without_chunks_needs_no_propositions(evaluating: World) -> None:
    await evaluating.embedder.handle(await evaluating.evaluated(await evaluating.chunked([]), []))
    message = await evaluating.embedded()
    assert message is not None
    assert (message.record_count, message.chunk_count) == (0, 0)
    assert not message.HasField("vectors")


async def test_a_redelivery_computes_nothing_and_a_new_revision_only_what_is_new(evaluating: World) -> None:
    event = await evaluating.evaluated(await evaluating.chunked(CHUNKS), ACCEPTED)
    await evaluating.embedder.handle(event)
    position = await evaluating.buses["embedder"].last_position()
    evaluating.restart()
    await evaluating.embedder.handle(event)
    assert await evaluating.buses["embedder"].last_position() == position
    known = len(evaluating.model.texts)
    second = await evaluating.chunked(CHUNKS, revision=2)
    await evaluating.embedder.handle(await evaluating.evaluated(second, [ACCEPTED[0], ["Beta is news."]]))
    assert evaluating.model.texts[known:] == ["Beta is news."]


@pytest.mark.parametrize("announced", [2, 4])
async def test_propositions_that_do_not_agree_with_their_event_are_corrupt(evaluating: World, announced: int) -> None:
    event = await evaluating.evaluated(await evaluating.chunked(CHUNKS), ACCEPTED, announced=announced)
    with pytest.raises(Corrupt, match=f"{announced} propositions were announced, 3 are there") as caught:
        await evaluating.embedder.handle(event)
    assert "Alpha" not in str(caught.value)


async def test_lost_propositions_are_missed_and_those_of_an_erased_document_are_not(evaluating: World) -> None:
    event = await evaluating.evaluated(await evaluating.chunked(CHUNKS), ACCEPTED)
    await evaluating.packs.erase(f"{CRATE}/d1/1/propositions")
    with pytest.raises(NotFound):
        await evaluating.embedder.handle(event)
    await evaluating.erased()
    await evaluating.embedder.handle(event)
    assert await evaluating.embedded() is None
    assert evaluating.names("vectors") == []
