"""Every way in which an evaluation can fail, under every policy: what stands in log and packs, and what heals it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import httpx
import pytest
from affidavit.event.v1 import envelope_pb2 as event_pb
from affidavit.proposition.v1 import proposition_events_pb2 as pb

from services.kernel import failures
from services.kernel.errors import Failure, Rejected, Unavailable
from tests.integration.proposition.chat_double import KEY, PROMPT_CANARY, Call, rated, reply, right
from tests.integration.proposition.proposition_world import (
    CRATE,
    DOCUMENT,
    EMBED,
    FAIL,
    SKIP,
    Policy,
    World,
    answer_provider,
)

TEXTS = ["alpha", "CANARY-chunk", "gamma"]
BAD = 1
Bad = Callable[[Call], httpx.Response]


def status(code: int) -> Bad:
    return lambda call: httpx.Response(code, text=f"{KEY} {call.last}")


def timeout(call: Call) -> httpx.Response:
    raise httpx.ReadTimeout(call.last)


def dropped(call: Call) -> httpx.Response:
    raise httpx.RemoteProtocolError(call.last)


def generates(content: object, **more: str) -> Bad:
    return lambda call: right(call) if call.grades else reply(content, **more)


def grades(content: object, **more: str) -> Bad:
    return lambda call: reply(content, **more) if call.grades else right(call)


def second(bad: Bad) -> Bad:
    """Fails at the grading call."""
    return lambda call: bad(call) if call.grades else right(call)


def without(name: str) -> object:
    found = rated(1)
    del found["ratings"][0][name]
    return found


WHOLE = json.dumps({"propositions": [{"text": "CANARY-chunk is here."}]})
# Failure, problem, requests for the bad chunk, and whether it may pass.
CASES: dict[str, tuple[Bad, str, int, bool]] = {
    "500": (status(500), "PROVIDER_ERROR", 4, True),
    "429": (status(429), "PROVIDER_ERROR", 4, True),
    "timeout": (timeout, "PROVIDER_ERROR", 4, True),
    "dropped": (dropped, "PROVIDER_ERROR", 4, True),
    # Once more without the form in which the answer was asked for.
    "400": (status(400), "PROVIDER_ERROR", 2, False),
    "404": (status(404), "PROVIDER_ERROR", 1, False),
    "401": (status(401), "PROVIDER_ERROR", 1, True),
    "redirect": (status(307), "PROVIDER_ERROR", 1, False),
    "500 while grading": (second(status(500)), "PROVIDER_ERROR", 5, True),
    "404 while grading": (second(status(404)), "PROVIDER_ERROR", 2, False),
    "no completion": (lambda _: httpx.Response(200, text=f"<html>{KEY}"), "PROVIDER_ERROR", 1, True),
    "withheld": (generates("CANARY", reason="content_filter"), "PROVIDER_ERROR", 1, False),
    "malformed": (generates("I can't do CANARY-chunk."), "MALFORMED", 1, True),
    "malformed grading": (grades("Nine. CANARY-chunk."), "MALFORMED", 2, True),
    "cut off": (generates(WHOLE[:-1]), "MALFORMED", 1, True),
    "blank": (generates({"propositions": [{"text": "CANARY-chunk."}, {"text": " "}]}), "MALFORMED", 1, True),
    "too many": (generates([f"Fact {number}." for number in range(1_001)]), "MALFORMED", 1, True),
    "truncated": (generates(WHOLE, reason="length"), "TRUNCATED", 1, True),
    "truncated without text": (generates(None, reason="length"), "TRUNCATED", 1, True),
    "truncated grading": (grades(rated(1), reason="length"), "TRUNCATED", 2, True),
    "mismatched": (grades(rated(2)), "MISMATCHED", 2, True),
    "duplicate": (grades({"ratings": rated(1)["ratings"] * 2}), "MISMATCHED", 2, True),
    "missing rating": (grades({"ratings": []}), "MISSING_RATING", 2, True),
    "missing score": (grades(without("focus")), "MISSING_RATING", 2, True),
    "score 0": (grades(rated(1, clarity=0)), "OUT_OF_RANGE", 2, True),
    "score 11": (grades(rated(1, clarity=11)), "OUT_OF_RANGE", 2, True),
    "score 8.5": (grades(rated(1, clarity=8.5)), "OUT_OF_RANGE", 2, True),
    "score as text": (grades(rated(1, clarity="9")), "OUT_OF_RANGE", 2, True),
    "none accepted": (grades(rated(1, fidelity=1)), "NONE_ACCEPTED", 2, True),
    "empty list": (generates({"propositions": []}), "NONE_ACCEPTED", 1, True),
}
STATUSES = {SKIP: pb.EVALUATION_STATUS_SKIPPED, EMBED: pb.EVALUATION_STATUS_SOURCE}


def only_bad(bad: Bad) -> Bad:
    """The other chunks are answered as they should be."""
    return lambda call: bad(call) if call.passage == TEXTS[BAD] else right(call)


def check_silent(said: str) -> None:
    for secret in ("CANARY", KEY, PROMPT_CANARY, "alpha", "gamma"):
        assert secret not in said


def check_log(records: pytest.LogCaptureFixture) -> None:
    for record in records.records:
        check_silent(record.getMessage() + str(record.exc_info) + str(record.args))


@pytest.mark.parametrize("case", CASES)
async def test_with_fail_indexing_the_document_fails_and_a_retry_heals_it(
    world: World, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad, problem, requests, may_pass = CASES[case]
    caplog.set_level(logging.DEBUG)
    world.chat.script = only_bad(bad)
    event = await world.chunked(TEXTS, title="CANARY-title")
    with pytest.raises(Failure) as caught:
        await world.evaluating.handle(event)
    error = caught.value
    assert type(error) is (Unavailable if may_pass else Rejected)
    told = problem.lower().replace("_", " ").split()[0]
    assert error.message.startswith(f"chunk {BAD} of revision 1 of document {DOCUMENT} couldn't be evaluated (")
    assert told in error.message
    assert "set proposition_failure_policy" in error.message
    assert error.__cause__ is error.__context__ is None
    check_silent(error.message)
    await failures.record(world.buses["proposition"], event, error)
    failed = await world.buses["proposition"].last(crate=CRATE, service="proposition", aggregate=DOCUMENT)
    assert failed is not None
    assert isinstance(failed.message, event_pb.TaskFailed)
    assert failed.message.code == ("unavailable" if may_pass else "rejected")
    check_silent(str(failed.message))
    check_log(caplog)
    # The others were in work and are kept; what failed isn't.
    assert world.names("propositions") == []
    assert len(world.names("propositions-partial")) == 2
    assert sum(call.passage == TEXTS[BAD] for call in world.chat.calls) == requests

    world.calls()
    world.chat.script = right
    world.restart()
    await world.evaluating.handle(event)
    message = await world.evaluated()
    assert message is not None
    assert (world.calls(), message.accepted_count, message.reused_count) == (2, 3, 2)
    assert world.names("propositions-partial") == []


@pytest.mark.parametrize("policy", [SKIP, EMBED])
@pytest.mark.parametrize("case", CASES)
async def test_with_the_other_policies_the_chunk_is_recorded_and_never_reused(
    world: World, case: str, policy: Policy, caplog: pytest.LogCaptureFixture
) -> None:
    bad, problem, requests, _ = CASES[case]
    caplog.set_level(logging.DEBUG)
    await world.configure(answer_provider(), policy=policy)
    world.chat.script = only_bad(bad)
    message = await world.run(TEXTS)
    assert sum(call.passage == TEXTS[BAD] for call in world.chat.calls) == requests
    assert (message.skipped_count, message.source_count) == ((1, 0) if policy == SKIP else (0, 1))
    assert message.accepted_count == 2
    good, failed, also_good = await world.stored(message)
    assert {good.status, also_good.status} == {pb.EVALUATION_STATUS_EVALUATED}
    assert failed.status == STATUSES[policy]
    assert pb.EvaluationProblem.Name(failed.problem) == f"EVALUATION_PROBLEM_{problem}"
    assert failed.fingerprint == b""
    assert failed.diagnostics
    check_silent(failed.diagnostics)
    check_log(caplog)
    assert not any(proposition.accepted for proposition in failed.propositions)
    assert message.rejected_count == len(failed.propositions)
    assert world.names("propositions-partial") == []

    world.calls()
    world.chat.script = right
    second_message = await world.run(TEXTS, revision=2)
    assert (world.calls(), second_message.reused_count, second_message.accepted_count) == (2, 2, 3)


async def test_what_was_read_before_a_failure_is_recorded_with_it(world: World) -> None:
    await world.configure(answer_provider(), policy=EMBED)
    for revision, bad in enumerate((grades(rated(1, fidelity=7)), grades("no JSON")), 1):
        world.chat.script = bad
        message = await world.run(["alpha"], revision=revision)
        (stored,) = await world.stored(message)
        (proposition,) = stored.propositions
        assert proposition.text == "The fact is: alpha"
        assert (proposition.fidelity, proposition.focus) == ((7, 9) if revision == 1 else (0, 0))
        assert stored.generation_request_id == stored.grading_request_id == "req-7"


async def test_the_first_failed_chunk_is_named_and_none_is_begun_after_it(world: World) -> None:
    texts = [f"text {number}" for number in range(40)]
    world.chat.script = lambda call: reply("no JSON") if call.passage >= "text 2" else right(call)
    with pytest.raises(Unavailable, match=r"chunk 2 of revision 1"):
        await world.evaluating.handle(await world.chunked(texts))
    assert world.calls() < 20


@pytest.mark.parametrize("policy", [FAIL, SKIP, EMBED])
async def test_faults_of_ours_are_never_taken_for_failed_evaluations(
    world: World, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.configure(answer_provider(), policy=policy)
    event = await world.chunked(TEXTS)
    with monkeypatch.context() as patch:
        patch.delenv("AFFIDAVIT_PROVIDER_CHAT")
        with pytest.raises(Unavailable, match="credential env:AFFIDAVIT_PROVIDER_CHAT can't be read"):
            await world.evaluating.handle(event)
    with monkeypatch.context() as patch:

        async def full(*_: object) -> None:
            raise Unavailable("the disk is full")

        patch.setattr(world.packs, "write", full)
        with pytest.raises(Unavailable, match=r"^the disk is full$"):
            await world.evaluating.handle(event)
    assert await world.evaluated() is None
    await world.evaluating.handle(event)
    message = await world.evaluated()
    assert message is not None
    assert (message.accepted_count, message.skipped_count, message.source_count) == (3, 0, 0)
