"""DocumentChunked in, PropositionsEvaluated out: on the real log, with redelivery, reuse, crashes and erasure."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NoReturn

import httpx
import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_events_pb2 as pb
from blake3 import blake3

from services.kernel import failures
from services.kernel.errors import Conflict, Corrupt, NotAvailableYet, NotFound, Rejected, Unavailable
from services.proposition.domain import prompts
from tests.integration.proposition.chat_double import Call, rated, reply, right
from tests.integration.proposition.proposition_world import CRATE, DOCUMENT, NOW, World, answer_provider

A, B = ["alpha", "beta", "gamma"], ["alpha", "delta", "gamma"]


async def test_a_chunk_costs_two_calls_and_becomes_graded_propositions(world: World) -> None:
    def answer(call: Call) -> httpx.Response:
        if not call.grades:
            return reply({"propositions": [{"text": "One."}, {"text": "Two."}]})
        low = rated(1, fidelity=10, focus=7)["ratings"][0] | {"ordinal": 2}
        return reply({"ratings": [low, rated(1)["ratings"][0]]})

    world.chat.script = answer
    event = await world.chunked(["alpha"], title="Greek")
    await world.evaluating.handle(event)
    message = await world.evaluated()
    assert message is not None
    assert (message.generation, message.settings_digest, message.form) == (1, "s1", event_pb.FORM_TEXT)
    assert (message.chunk_count, message.accepted_count, message.rejected_count) == (1, 1, 1)
    assert (message.call_count, message.reused_count) == (2, 0)
    assert (message.skipped_count, message.source_count) == (0, 0)
    assert message.chunks == event.message.chunks  # type: ignore[attr-defined]  # the generic Message has no fields
    (stored,) = await world.stored(message)
    assert (stored.chunk_ordinal, stored.status) == (0, pb.EVALUATION_STATUS_EVALUATED)
    assert (stored.problem, stored.diagnostics) == (pb.EVALUATION_PROBLEM_UNSPECIFIED, "")
    assert (stored.model_id, stored.prompt_version) == ("gpt-x-2026", prompts.VERSION)
    assert (stored.generation_request_id, stored.grading_request_id) == ("req-7", "req-7")
    assert stored.source_hash == blake3(b"alpha").digest()
    assert len(stored.fingerprint) == 32
    assert stored.evaluated_at.ToDatetime(NOW.tzinfo) == NOW
    assert [(each.ordinal, each.text, each.fidelity, each.focus, each.accepted) for each in stored.propositions] == [
        (1, "One.", 9, 9, True),
        (2, "Two.", 10, 7, False),
    ]
    generation, grading = world.chat.calls
    assert not generation.grades
    assert grading.grades
    assert grading.passage == generation.passage == "alpha"
    assert "Title: Greek" in grading.last
    assert [entry["role"] for entry in grading.body["messages"]] == ["system", "user"]
    assert world.names("propositions-partial") == []


async def test_a_standard_generation_needs_no_evaluation(bare_world: World) -> None:
    await bare_world.configure(answer_provider())
    await bare_world.start_generation("standard")
    await bare_world.evaluating.handle(await bare_world.chunked(A))
    assert await bare_world.evaluated() is None
    assert (bare_world.calls(), bare_world.names("propositions")) == (0, [])


async def test_a_document_without_chunks_needs_no_pack_and_no_call(world: World) -> None:
    message = await world.run([])
    assert not message.HasField("evaluations")
    assert not message.HasField("chunks")
    assert (message.chunk_count, message.call_count, world.calls()) == (0, 0, 0)
    assert world.names("propositions") == []


async def test_a_redelivered_event_changes_nothing(world: World) -> None:
    event = await world.chunked(A)
    await world.evaluating.handle(event)
    before = (world.names("propositions"), await world.buses["proposition"].last_position())
    assert world.calls() == 6
    for again in (event, replace(event, old=True), replace(event, deliveries=2)):
        world.restart()
        await world.evaluating.handle(again)
        assert (world.names("propositions"), await world.buses["proposition"].last_position()) == before
    assert world.calls() == 0


async def test_an_older_revision_that_comes_again_changes_nothing(world: World) -> None:
    first = await world.chunked(A)
    await world.evaluating.handle(first)
    await world.run(B, revision=2)
    world.calls()
    before = (world.names("propositions"), await world.buses["proposition"].last_position())
    await world.packs.erase(f"{CRATE}/{DOCUMENT}/1/chunks")
    await world.configure()
    await world.evaluating.handle(replace(first, old=True))
    assert (world.names("propositions"), await world.buses["proposition"].last_position()) == (before[0], before[1] + 1)
    assert world.calls() == 0


async def test_a_pack_whose_fact_stands_already_is_removed_again(world: World) -> None:
    first = await world.chunked(A)
    await world.evaluating.handle(first)
    await world.run(B, revision=2)
    before = (world.names("propositions"), await world.buses["proposition"].last_position())
    world.restart()
    # The broker knows the fact, and the step doesn't ask.
    await world.evaluating.handle(first)
    assert (world.names("propositions"), await world.buses["proposition"].last_position()) == before


async def test_a_new_revision_costs_two_calls_for_each_new_chunk(world: World) -> None:
    first = await world.run(A)
    assert world.calls() == 6
    world.restart()
    second = await world.run(B, revision=2)
    assert (world.calls(), second.call_count, second.reused_count) == (2, 2, 2)
    third = await world.run([*B, "alpha"], revision=3)
    assert (world.calls(), third.call_count, third.reused_count) == (0, 0, 4)
    old, new = await world.stored(first), await world.stored(third)
    assert [each.chunk_ordinal for each in new] == [0, 1, 2, 3]
    assert new[0].propositions == new[3].propositions == old[0].propositions


async def test_settings_of_chunks_that_change_nothing_cost_nothing(world: World) -> None:
    await world.run(A)
    world.calls()
    await world.evaluating.handle(await world.chunked(A, digest="other"))
    message = await world.evaluated()
    assert message is not None
    assert (message.settings_digest, message.reused_count, world.calls()) == ("other", 3, 0)


async def test_equal_chunks_of_a_document_are_evaluated_once(world: World) -> None:
    message = await world.run(["same", "other", "same"])
    assert (world.calls(), message.call_count, message.reused_count) == (4, 4, 1)
    stored = await world.stored(message)
    assert stored[0].propositions == stored[2].propositions


async def test_documents_don_t_share_evaluations(world: World) -> None:
    await world.run(A)
    await world.run(A, document="e" * 32)
    assert world.calls() == 12


@pytest.mark.parametrize("change", ["model", "endpoint", "title", "prompt"])
async def test_what_an_evaluation_depends_on_makes_it_anew(
    world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    await world.run(A)
    world.calls()
    if change == "model":
        await world.configure(answer_provider(model="gpt-y"))
    elif change == "endpoint":
        await world.configure(answer_provider(base_url="https://other.example.com/v1"))
    elif change == "prompt":
        monkeypatch.setattr(prompts, "VERSION", "2")
    message = await world.run(A, revision=2, title="Greek" if change == "title" else "")
    assert (world.calls(), message.reused_count) == (6, 0)


async def test_old_evaluations_that_are_gone_or_damaged_are_made_again(world: World) -> None:
    await world.run(A)
    (name,) = world.names("propositions")
    world.blobs.path(name).write_bytes(b"damaged")
    assert (await world.run(A, revision=2)).call_count == 6
    await world.packs.erase(f"{CRATE}/{DOCUMENT}/2/propositions")
    assert (await world.run(A, revision=3)).call_count == 6


async def test_a_crash_costs_the_calls_in_flight_only(world: World) -> None:
    texts = [f"text {number}" for number in range(9)]
    event = await world.chunked(texts)

    def dies(call: Call) -> httpx.Response:
        if call.passage == "text 6":
            raise MemoryError
        return right(call)

    world.chat.script = dies
    with pytest.raises(MemoryError):
        await world.evaluating.handle(event)
    assert await world.evaluated() is None
    kept = len(world.names("propositions-partial"))
    assert kept >= 6
    world.chat.script = right
    world.calls()
    (damaged, *_) = world.names("propositions-partial")
    world.blobs.path(damaged).write_bytes(b"damaged")
    world.restart()
    await world.evaluating.handle(event)
    assert world.calls() == 2 * (len(texts) - kept + 1)
    message = await world.evaluated()
    assert message is not None
    assert (message.accepted_count, message.reused_count) == (9, kept - 1)
    assert world.names("propositions-partial") == []


async def test_a_crash_between_pack_and_event_costs_no_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    event = await world.chunked(A)

    async def dies(**_: object) -> NoReturn:
        raise Unavailable("the log is away")

    with monkeypatch.context() as patch:
        patch.setattr(world.buses["proposition"], "append", dies)
        with pytest.raises(Unavailable, match="the log is away"):
            await world.evaluating.handle(event)
    assert world.calls() == 6
    world.restart()
    await world.evaluating.handle(event)
    message = await world.evaluated()
    assert message is not None
    assert (world.calls(), message.call_count, message.reused_count) == (0, 0, 3)
    assert len(await world.stored(message)) == 3


async def test_a_crash_between_event_and_clean_up_leaves_nothing_for_good(world: World) -> None:
    event = await world.chunked(A)
    await world.evaluating.handle(event)
    await world.packs.write(f"{CRATE}/{DOCUMENT}/1/propositions-partial", {"left": b"behind"})
    await world.evaluating.handle(event)
    assert world.names("propositions-partial") == []


async def test_a_failure_in_between_doesn_t_hide_what_was_evaluated(world: World) -> None:
    await world.run(A)
    failed = await world.chunked(["never", "read"], revision=2)
    await failures.record(world.buses["proposition"], failed, Unavailable("the provider was away"))
    assert (await world.run(B, revision=3)).call_count == 2


async def test_two_processes_evaluate_a_revision_once(world: World) -> None:
    event = await world.chunked(A)
    done = await asyncio.gather(*(world.evaluating.handle(event) for _ in range(2)), return_exceptions=True)
    assert [type(each) for each in done if each is not None] in ([], [Conflict])
    assert len(world.names("propositions")) == 1
    position = await world.buses["proposition"].last_position()
    await world.evaluating.handle(event)
    assert await world.buses["proposition"].last_position() == position


async def test_a_pack_goes_again_when_another_process_was_faster(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    event = await world.chunked(A)

    async def slower(**_: object) -> NoReturn:
        raise Conflict("somebody was faster")

    monkeypatch.setattr(world.buses["proposition"], "append", slower)
    with pytest.raises(Conflict, match="somebody was faster"):
        await world.evaluating.handle(event)
    assert world.names("propositions") == []
    assert len(world.names("propositions-partial")) == 3


async def test_old_evaluations_of_another_form_are_made_again(world: World) -> None:
    ref = await world.packs.write(f"{CRATE}/{DOCUMENT}/1/propositions", {"evaluations": b"\xff"})
    message = pb.PropositionsEvaluated(document_id=DOCUMENT, revision=1, generation=1, chunk_count=1)
    message.evaluations.CopyFrom(event_pb.PackRef(id=ref.id, size_bytes=ref.size_bytes))
    await world.append("proposition", DOCUMENT, message, key="old")
    assert (await world.run(["alpha"], revision=2)).call_count == 2


async def test_erasing_deletes_all_packs_of_the_document_and_no_others(world: World) -> None:
    await world.run(A)
    await world.run(B, revision=2)
    await world.run(A, document="e" * 32)
    await world.packs.write(f"{CRATE}/{DOCUMENT}/2/propositions-partial", {"left": b"behind"})
    await world.packs.write(f"{CRATE}/{DOCUMENT}/3/propositions", {"newer": b"revision, put after the erasure"})
    event = await world.erased(revision=2)
    await world.evaluating.handle(event)
    await world.evaluating.handle(event)
    left = [name.rsplit("/", 1)[0] for name in world.names("propositions")]
    assert left == [f"{CRATE}/{DOCUMENT}/3/propositions", f"{CRATE}/{'e' * 32}/1/propositions"]
    assert world.names("propositions-partial") == []


@pytest.mark.parametrize("chunks_gone", [True, False])
async def test_an_erased_document_is_left_alone(world: World, *, chunks_gone: bool) -> None:
    event = await world.chunked(A)
    await world.erased(chunks=chunks_gone)
    await world.evaluating.handle(event)
    assert await world.evaluated() is None
    assert world.names("propositions") == world.names("propositions-partial") == []


@pytest.mark.parametrize("fails", [True, False])
async def test_erasing_while_the_model_works_leaves_nothing(world: World, *, fails: bool) -> None:
    event = await world.chunked([f"text {number}" for number in range(30)])
    erased: list[bool] = []

    async def erase_in_between(call: Call) -> httpx.Response:
        if call.passage == "text 6" and not erased:
            # Another process handles the erasure first.
            erased.append(True)
            await world.evaluating.handle(await world.erased())
        return reply("no JSON") if fails and call.passage == "text 7" else right(call)

    handle = world.chat.handle_async_request

    async def slow(request: httpx.Request) -> httpx.Response:
        answer = await erase_in_between(Call(request))
        await handle(request)
        return answer

    world.chat.handle_async_request = slow  # type: ignore[method-assign]  # the double of this test
    await world.evaluating.handle(event)
    assert erased
    # What isn't known yet when it is erased is never sent.
    assert not any(call.passage == "text 29" for call in world.chat.calls)
    assert await world.evaluated() is None
    assert world.names("propositions") == world.names("propositions-partial") == []


async def test_a_revision_put_after_an_erasure_is_evaluated_anew(world: World) -> None:
    await world.run(A)
    await world.evaluating.handle(await world.erased())
    assert (await world.run(A, revision=2)).call_count == 6


async def test_chunks_that_are_gone_without_erasure_are_an_error(world: World) -> None:
    event = await world.chunked(A)
    await world.packs.erase(f"{CRATE}/{DOCUMENT}/1/chunks")
    with pytest.raises(NotFound):
        await world.evaluating.handle(event)


async def test_chunks_that_don_t_add_up_are_an_error(world: World) -> None:
    event = await world.chunked(A)
    event.message.chunk_count = 4  # type: ignore[attr-defined]  # the generic Message has no fields
    with pytest.raises(Corrupt, match=f"document {DOCUMENT} can't be used: 4 chunks were announced, 3 are there"):
        await world.evaluating.handle(event)


async def test_without_a_generation_the_document_waits_for_it(bare_world: World) -> None:
    await bare_world.configure(answer_provider())
    event = await bare_world.chunked(A)
    with pytest.raises(Unavailable, match="crate main has no generation yet"):
        await bare_world.evaluating.handle(event)
    await bare_world.start_generation()
    await bare_world.evaluating.handle(event)
    assert await bare_world.evaluated() is not None


async def test_a_crate_without_a_provider_that_is_served_is_refused(world: World) -> None:
    event = await world.chunked(A)
    other = answer_provider()
    other.kind = settings_pb2.PROVIDER_KIND_TRITON
    off = answer_provider()
    off.enabled = False
    for providers, kind, problem in (
        ([], Rejected, "crate main has no enabled answer provider"),
        ([off], Rejected, "crate main has no enabled answer provider"),
        ([other], NotAvailableYet, "of a kind that is not available yet: use openai-compatible"),
    ):
        await world.configure(*providers)
        with pytest.raises(kind, match=problem):
            await world.evaluating.handle(event)
    await world.configure(answer_provider())
    await world.evaluating.handle(event)
    assert await world.evaluated() is not None


async def test_a_generation_without_crate_is_refused(bare_world: World) -> None:
    await bare_world.start_generation()
    with pytest.raises(NotFound, match="crate 'main' does not exist"):
        await bare_world.evaluating.handle(await bare_world.chunked(A))


async def test_a_key_is_a_fact_s_own(world: World) -> None:
    await world.run(A)
    event = await world.buses["proposition"].last(crate=CRATE, service="proposition", aggregate=DOCUMENT)
    assert event is not None
    assert event.key == f"{DOCUMENT}:1:evaluated:1:s1"
