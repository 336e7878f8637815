"""DocumentChunked in, RecordsEmbedded out: on the real log, with redelivery, reuse, crashes and erasure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from affidavit.embedder.v1 import embedder_events_pb2 as pb
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.ingest.v1 import settings_pb2 as settings_pb

from services.embedder import codec
from services.embedder.adapters.cache_sqlite import SqliteVectorCache
from services.embedder.adapters.model_constant import HashModel
from services.embedder.domain.models import Purpose
from services.embedder.domain.reuse import VectorSet
from services.embedder.domain.texts import text_key
from services.embedder.domain.vectors import unit_rows
from services.embedder.handlers import EVENTS
from services.kernel import failures
from services.kernel.envelope import Event
from services.kernel.errors import Conflict, Corrupt, NotAvailableYet, NotFound, Rejected, Unavailable
from services.kernel.steps import Step, StepRunner
from tests.integration.embedder.embedder_world import CRATE, LOCAL, World

A, B = ["alpha", "beta", "gamma"], ["alpha", "delta"]


async def test_every_chunk_gets_its_unit_vector(world: World) -> None:
    event = await world.chunked(["alpha", "beta", "x" * 41], title="Greek")
    await world.embedder.handle(event)
    message = await world.embedded()
    assert message is not None
    assert (message.generation, message.settings_digest, message.form) == (1, "s1", event_pb.FORM_TEXT)
    assert (message.model_id, message.dimension, message.record_count) == ("hash-384", 384, 3)
    assert (message.windowed_count, message.computed_count, list(message.earlier)) == (1, 3, [])
    assert message.chunks == event.message.chunks  # type: ignore[attr-defined]  # the generic Message has no fields
    texts = ["Greek\nalpha", "Greek\nbeta", "x" * 41]
    expected = unit_rows(await HashModel().embed(texts, Purpose.DOCUMENT), count=3, dimension=384)
    assert np.array_equal(await world.vectors(message), expected)


async def test_a_document_without_chunks_needs_no_pack_and_no_model(world: World) -> None:
    message = await world.run([])
    assert not message.HasField("vectors")
    assert not message.HasField("chunks")
    assert (message.record_count, message.model_id, message.dimension) == (0, "", 0)
    assert world.names("vectors") == []
    assert world.model.texts == []


async def test_a_redelivered_event_changes_nothing(world: World) -> None:
    event = await world.chunked(A)
    await world.embedder.handle(event)
    before = (world.names("vectors"), await world.buses["embedder"].last_position())
    world.restart()
    await world.embedder.handle(event)
    assert (world.names("vectors"), await world.buses["embedder"].last_position()) == before
    assert sorted(world.model.texts) == sorted(A)


async def test_an_older_revision_that_comes_again_changes_nothing(world: World) -> None:
    first = await world.chunked(A)
    await world.embedder.handle(first)
    await world.run(B, revision=2)
    before = (world.names("vectors"), await world.buses["embedder"].last_position())
    # Neither chunks nor a model are needed for what stands.
    await world.packs.erase(f"{CRATE}/d1/1/chunks")
    other = settings_pb.Provider(
        role=settings_pb.PROVIDER_ROLE_EMBEDDING, kind=settings_pb.PROVIDER_KIND_UNSPECIFIED, enabled=True
    )
    await world.configure(other, revision=2)
    world.later()
    await world.embedder.handle(replace(first, old=True))
    assert (world.names("vectors"), await world.buses["embedder"].last_position()) == (before[0], before[1] + 1)


async def test_a_pack_whose_fact_stands_already_is_removed_again(world: World) -> None:
    first = await world.chunked(A)
    await world.embedder.handle(first)
    await world.run(B, revision=2)
    before = (world.names("vectors"), await world.buses["embedder"].last_position())
    world.restart()
    # The broker knows the fact, and the step doesn't ask.
    await world.embedder.handle(first)
    assert (world.names("vectors"), await world.buses["embedder"].last_position()) == before


async def test_equal_chunks_of_a_document_are_computed_once(world: World) -> None:
    message = await world.run(["same", "other", "same", "same"])
    assert message.computed_count == 2
    rows = await world.vectors(message)
    assert np.array_equal(rows[0], rows[2])
    assert np.array_equal(rows[0], rows[3])
    assert not np.array_equal(rows[0], rows[1])


async def test_a_new_revision_computes_what_is_new(world: World) -> None:
    first = await world.run(A)
    world.restart()
    second = await world.run(B, revision=2)
    assert second.computed_count == 1
    assert world.model.texts[3:] == ["delta"]
    assert np.array_equal((await world.vectors(second))[0], (await world.vectors(first))[0])
    assert [(at.revision, at.vectors) for at in second.earlier] == [(1, first.vectors)]


async def test_a_text_that_comes_back_is_not_computed_again(world: World) -> None:
    first = await world.run(A)
    await world.run(B, revision=2)
    third = await world.run(A, revision=3)
    assert third.computed_count == 0
    assert np.array_equal(await world.vectors(third), await world.vectors(first))
    # Revision 1 has nothing that revision 3 lacks.
    assert [at.revision for at in third.earlier] == [2]


async def test_older_packs_are_not_read_when_the_last_one_has_everything(world: World) -> None:
    await world.run(A)
    await world.run(B, revision=2)
    await world.packs.erase(f"{CRATE}/d1/1/vectors")
    third = await world.run(B, revision=3)
    # Nobody looked at revision 1, so nobody knows that its pack is gone; revision 2 has nothing of its own any more.
    assert (third.computed_count, [at.revision for at in third.earlier]) == (0, [1])


async def test_history_survives_a_revision_without_chunks(world: World) -> None:
    await world.run(A)
    empty = await world.run([], revision=2)
    assert [at.revision for at in empty.earlier] == [1]
    assert (await world.run(A, revision=3)).computed_count == 0


async def test_documents_don_t_share_vectors(world: World) -> None:
    await world.run(A)
    assert (await world.run(A, document="d2")).computed_count == 3


async def test_old_vectors_that_are_gone_or_damaged_are_computed_again(world: World) -> None:
    await world.run(A)
    (name,) = world.names("vectors")
    world.blobs.path(name).write_bytes(b"damaged")
    second = await world.run(A, revision=2)
    assert (second.computed_count, list(second.earlier)) == (3, [])
    await world.packs.erase(f"{CRATE}/d1/2/vectors")
    third = await world.run(A, revision=3)
    assert (third.computed_count, list(third.earlier)) == (3, [])


async def test_old_vectors_of_another_length_are_not_used(world: World) -> None:
    old = VectorSet("hash-384", (text_key("hash-384", "alpha"),), np.ones((1, 3), dtype=np.float32))
    ref = await world.packs.write(f"{CRATE}/d1/1/vectors", codec.vector_parts(old))
    message = pb.RecordsEmbedded(document_id="d1", revision=1, record_count=1)
    message.vectors.id, message.vectors.size_bytes = ref.id, ref.size_bytes
    await world.append("embedder", "d1", message, key="old")
    assert (await world.run(["alpha"], revision=2)).computed_count == 1


async def test_an_interrupted_long_document_goes_on_where_it_stopped(world: World) -> None:
    texts = [f"text {number}" for number in range(10)]
    world.restart(partial_texts=4)
    event = await world.chunked(texts)
    world.model.fail_after = 8
    with pytest.raises(Unavailable, match="the model is away"):
        await world.embedder.handle(event)
    assert await world.embedded() is None
    assert len(world.names("vectors-partial")) == 2
    world.model.fail_after, world.model.texts = None, []
    world.restart(partial_texts=4)
    await world.embedder.handle(event)
    assert len(world.model.texts) == 2
    message = await world.embedded()
    assert message is not None
    expected = unit_rows(await HashModel().embed(texts, Purpose.DOCUMENT), count=10, dimension=384)
    assert np.array_equal(await world.vectors(message), expected)
    assert world.names("vectors-partial") == []


async def test_a_crash_between_event_and_clean_up_leaves_nothing_for_good(world: World) -> None:
    world.restart(partial_texts=2)
    event = await world.chunked(A)
    await world.embedder.handle(event)
    await world.packs.write(f"{CRATE}/d1/1/vectors-partial", {"left": b"behind"})
    await world.embedder.handle(event)
    assert world.names("vectors-partial") == []


async def test_a_failure_in_between_doesn_t_hide_the_history(world: World) -> None:
    await world.run(A)
    failed = await world.chunked(["never", "read"], revision=2)
    await failures.record(world.buses["embedder"], failed, Unavailable("the model was away"))
    third = await world.run(B, revision=3)
    assert (third.computed_count, [at.revision for at in third.earlier]) == (1, [1])


async def test_a_failure_comes_before_the_first_success(world: World) -> None:
    event = await world.chunked(A)
    await failures.record(world.buses["embedder"], event, Unavailable("the model was away"))
    await world.embedder.handle(event)
    message = await world.embedded()
    assert message is not None
    assert message.computed_count == 3


async def test_two_processes_embed_a_revision_once(world: World) -> None:
    event = await world.chunked(A)
    world.model.gate.clear()
    work = [asyncio.create_task(world.embedder.handle(event)) for _ in range(2)]
    await world.model.working.wait()
    await asyncio.sleep(0.1)
    world.model.gate.set()
    done = await asyncio.gather(*work, return_exceptions=True)
    assert [type(each) for each in done if each is not None] in ([], [Conflict])
    assert len(world.names("vectors")) == 1
    position = await world.buses["embedder"].last_position()
    await world.embedder.handle(event)
    assert await world.buses["embedder"].last_position() == position


async def test_settings_are_remembered_for_a_second(world: World) -> None:
    await world.run(A)
    disabled = settings_pb.Provider(role=LOCAL.role, kind=LOCAL.kind, enabled=False)
    await world.configure(disabled, revision=2)
    await world.run(B, revision=2)
    world.later()
    with pytest.raises(Rejected, match="no enabled embedding provider"):
        await world.run(A, revision=3)


async def test_the_cache_spares_a_later_run(world: World, tmp_path: Path) -> None:
    cache = SqliteVectorCache(folder=tmp_path / "cache")
    world.restart(cache=cache, partial_texts=2)
    first = await world.run(A)
    again = await world.run(A, document="d2")
    assert (first.computed_count, again.computed_count) == (3, 0)
    assert np.array_equal(await world.vectors(first), await world.vectors(again))
    await cache.close()


async def test_erasing_deletes_all_packs_of_the_document_and_no_others(world: World) -> None:
    await world.run(A)
    await world.run(B, revision=2)
    await world.run(A, document="d2")
    await world.packs.write(f"{CRATE}/d1/2/vectors-partial", {"left": b"behind"})
    await world.packs.write(f"{CRATE}/d1/3/vectors", {"newer": b"revision, put after the erasure"})
    event = await world.erased(revision=2)
    await world.embedder.handle(event)
    await world.embedder.handle(event)
    assert [name.rsplit("/", 1)[0] for name in world.names("vectors")] == ["main/d1/3/vectors", "main/d2/1/vectors"]
    assert world.names("vectors-partial") == []


@pytest.mark.parametrize("chunks_gone", [True, False])
async def test_an_erased_document_is_left_alone(world: World, *, chunks_gone: bool) -> None:
    event = await world.chunked(A)
    await world.erased(chunks=chunks_gone)
    await world.embedder.handle(event)
    assert await world.embedded() is None
    assert world.names("vectors") == []


async def test_erasing_while_the_model_works_leaves_nothing(world: World) -> None:
    world.restart(partial_texts=2)
    event = await world.chunked(A)
    world.model.gate.clear()
    work = asyncio.create_task(world.embedder.handle(event))
    await world.model.working.wait()
    # Another process handles the erasure first.
    await world.embedder.handle(await world.erased())
    world.model.gate.set()
    await work
    assert await world.embedded() is None
    assert world.names("vectors") == world.names("vectors-partial") == []


async def test_a_failure_after_the_erasure_leaves_nothing_either(world: World) -> None:
    world.restart(partial_texts=2)
    event = await world.chunked(A)
    world.model.gate.clear()
    work = asyncio.create_task(world.embedder.handle(event))
    await world.model.working.wait()
    await world.embedder.handle(await world.erased())
    world.model.fail_after = 2
    world.model.gate.set()
    await work
    assert await world.embedded() is None
    assert world.names("vectors") == world.names("vectors-partial") == []


async def test_a_revision_put_after_an_erasure_is_embedded(world: World) -> None:
    await world.run(A)
    await world.embedder.handle(await world.erased())
    message = await world.run(A, revision=2)
    assert message.computed_count == 3


async def test_chunks_that_are_gone_without_erasure_are_an_error(world: World) -> None:
    event = await world.chunked(A)
    await world.packs.erase(f"{CRATE}/d1/1/chunks")
    with pytest.raises(NotFound):
        await world.embedder.handle(event)


async def test_chunks_that_don_t_add_up_are_an_error(world: World) -> None:
    event = await world.chunked(A)
    event.message.chunk_count = 4  # type: ignore[attr-defined]  # the generic Message has no fields
    with pytest.raises(Corrupt, match="revision 1 of document d1 can't be used: 4 chunks were announced, 3 are there"):
        await world.embedder.handle(event)


async def test_without_a_generation_the_document_waits_for_it(bare_world: World) -> None:
    await bare_world.configure()
    done = asyncio.Event()

    async def handle(event: Event) -> None:
        await bare_world.embedder.handle(event)
        done.set()

    runner = StepRunner(bus=bare_world.buses["embedder"], steps=(Step(name="embed", events=EVENTS, handle=handle),))
    event = await bare_world.chunked(A)
    with pytest.raises(Unavailable, match="crate main has no generation yet"):
        await bare_world.embedder.handle(event)
    await runner.start()
    await asyncio.sleep(0.2)
    assert not done.is_set()
    await bare_world.start_generation()
    await asyncio.wait_for(done.wait(), 20)
    assert await bare_world.embedded() is not None
    await runner.stop(1)


async def test_another_model_than_the_generation_s_is_refused(bare_world: World) -> None:
    await bare_world.configure()
    await bare_world.start_generation(model_id="all-MiniLM-L6-v2-int8")
    event = await bare_world.chunked(A)
    with pytest.raises(Rejected, match=r"crate main: generation 1 is built on all-MiniLM-L6-v2-int8 .* now hash-384"):
        await bare_world.embedder.handle(event)


async def test_the_same_model_on_other_software_is_noted_once(
    bare_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    await bare_world.configure()
    await bare_world.start_generation(fingerprint="former")
    await bare_world.run(A)
    bare_world.later()
    await bare_world.run(B, revision=2)
    notes = [record.getMessage() for record in caplog.records if "fingerprint" in record.getMessage()]
    assert len(notes) == 1
    assert notes[0].startswith("generation 1 of crate main was started with model fingerprint former, now it is ")


async def test_a_generation_without_crate_is_refused(bare_world: World) -> None:
    await bare_world.start_generation()
    with pytest.raises(NotFound, match="crate 'main' does not exist"):
        await bare_world.embedder.handle(await bare_world.chunked(A))


async def test_providers_that_can_t_be_used_are_named(world: World) -> None:
    event = await world.chunked(A)
    disabled = settings_pb.Provider(role=LOCAL.role, kind=LOCAL.kind, enabled=False)
    await world.configure(disabled, revision=2)
    with pytest.raises(Rejected, match="crate main has no enabled embedding provider"):
        await world.embedder.handle(event)
    triton = settings_pb.Provider(role=LOCAL.role, kind=settings_pb.PROVIDER_KIND_TRITON, enabled=True)
    await world.configure(triton, revision=3)
    world.later()
    with pytest.raises(NotAvailableYet, match="local-onnx or openai-compatible"):
        await world.embedder.handle(event)


async def test_a_key_is_a_fact_s_own(world: World) -> None:
    await world.run(A)
    event = await world.buses["embedder"].last(crate=CRATE, service="embedder", aggregate="d1")
    assert event is not None
    assert event.key == "d1:1:embedded:1:s1"
