"""Receipts over gRPC on the real log: issued, shown, verified by a stranger, erased."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable

import grpc
import pytest
from affidavit.receipt.v1 import receipt_service_pb2 as pb
from affidavit.verify import Exit, verify_bundle
from affidavit.verify import keys as keys_files
from affidavit.verify.bundle import parse_bundle
from affidavit.verify.chain import verify_chain

from tests.integration.receipt.receipt_world import CRATE, QUESTION, World, document_id, evidence


async def refusal(call: Awaitable[object]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value.code(), caught.value.details() or ""


async def test_a_stranger_verifies_what_was_issued(world: World) -> None:
    reply = await world.issue(evidence(1), evidence(2, 3), evidence(1, ordinal=2))
    keys = await world.keys()
    verdict = verify_bundle(reply.bundle, keys, question=QUESTION, answer="At nine [1].")
    assert verdict.exit is Exit.OK
    assert verdict.facts is not None
    assert verdict.facts.receipt_id == reply.receipt_id
    assert [one.state for one in verdict.evidence] == ["matched"] * 3
    assert verdict.chain_link.detail == "the first of its chain"
    assert verdict.facts.issuer.startswith("affidavit.localhost/")


async def test_what_was_issued_is_shown_again_byte_for_byte(world: World) -> None:
    first = await world.issue()
    second = await world.issue()
    for reply in (first, second):
        shown = await world.show(reply.receipt_id)
        assert shown.bundle == reply.bundle
        assert shown.disclosed
    view = await world.view(second.receipt_id)
    assert view["receipt_id"] == second.receipt_id
    assert view["parent_id"] == first.receipt_id
    assert view["question"] == {"state": "disclosed", "content": QUESTION}
    assert view["citations"][0]["text"] == "Check-in 1.1 closes at nine."
    assert view["mode"] == {"requested": "verified", "applied": "light", "reason": "mode_not_available"}
    assert "model" not in view


async def test_a_receipt_without_evidence_and_one_with_a_model(world: World) -> None:
    await world.stub.IssueReceipt(world.request((), answer_text="No answer.", raw_answer_text="No answer."))
    reply = await world.issue(llm_model="example-model")
    view = await world.view(reply.receipt_id)
    assert view["model"] == {"name": "example-model"}
    reply = await world.issue(llm_model="example-model", llm_request_id="r-1")
    assert (await world.view(reply.receipt_id))["model"] == {"name": "example-model", "request_id": "r-1"}


async def test_many_at_once_make_one_chain(world: World) -> None:
    replies = await asyncio.gather(*(world.issue(evidence(number)) for number in range(1, 21)))
    logged = await world.logged()
    assert [one.sequence for one in logged] == list(range(20))
    assert {one.receipt_id for one in logged} == {reply.receipt_id for reply in replies}
    link = verify_chain([one.cose for one in logged], keys_files.parse(await world.keys()), every_signature=True)
    assert (link.lowest, link.parent_seen) == (0, True)


async def test_each_crate_has_its_own_chain(world: World) -> None:
    await world.create_crate("other")
    mine = await world.issue()
    theirs = await world.issue(crate_id="other")
    chains = {parse_bundle(reply.bundle).receipt.chain for reply in (mine, theirs)}
    assert len(chains) == 2
    assert parse_bundle(theirs.bundle).receipt.sequence == 0
    request = pb.GetReceiptRequest(crate_id="other", receipt_id=mine.receipt_id)
    assert (await refusal(world.stub.GetReceipt(request)))[0] is grpc.StatusCode.NOT_FOUND


async def test_the_server_verifies_with_the_parent_from_its_tables(world: World) -> None:
    await world.issue()
    second = await world.issue()
    await world.settled()
    reply = await world.stub.VerifyReceipt(pb.VerifyReceiptRequest(crate_id=CRATE, bundle=second.bundle))
    assert reply.ok
    record = json.loads(reply.verdict_json)
    assert record["findings"]["chain link"] == {"state": "ok", "detail": "unbroken from receipt 0 to 1"}
    broken = second.bundle.replace(b"closes at nine", b"closes at nina")
    assert broken != second.bundle
    reply = await world.stub.VerifyReceipt(pb.VerifyReceiptRequest(crate_id=CRATE, bundle=broken))
    assert not reply.ok
    assert json.loads(reply.verdict_json)["findings"]["evidence 1"]["state"] == "failed"
    reply = await world.stub.VerifyReceipt(pb.VerifyReceiptRequest(crate_id=CRATE, bundle=b"junk"))
    assert json.loads(reply.verdict_json)["exit_name"] == "integrity"


async def test_the_log_holds_no_content(world: World) -> None:
    await world.issue(evidence(1, content=b"a very secret sentence"), question="a most secret question?")
    for position in (1,):
        raw = await world.context.bus.js.get_msg("SIGNALS", position)
        assert raw.data
        assert b"secret" not in raw.data


async def test_erasing_a_cited_document_leaves_commitments_only(world: World) -> None:
    cites_both = await world.issue(evidence(1, content=b"secret of one"), evidence(2, content=b"words of two"))
    cites_other = await world.issue(evidence(2, content=b"words of two"))
    await world.settled()
    assert world.files_with(b"secret of one")
    await world.erased(1)
    shown = await world.show(cites_both.receipt_id)
    assert not shown.disclosed
    verdict = verify_bundle(shown.bundle, await world.keys())
    assert verdict.exit is Exit.OK
    assert [one.state for one in verdict.evidence] == ["erased", "matched"]
    assert {one.state for one in verdict.disclosures[:5]} == {"erased"}
    view = await world.view(cites_both.receipt_id)
    assert view["question"] == {"state": "erased"}
    assert view["citations"][0]["state"] == "erased"
    assert parse_bundle(shown.bundle).receipt == parse_bundle(cites_both.bundle).receipt
    assert not world.files_with(b"secret of one")
    untouched = await world.show(cites_other.receipt_id)
    assert untouched.disclosed
    assert untouched.bundle == cites_other.bundle


async def test_a_document_that_was_put_again_keeps_its_new_evidence(world: World) -> None:
    old = await world.issue(evidence(1, 1))
    new = await world.issue(evidence(1, 3))
    await world.settled()
    await world.erased(1, revision=2)
    assert not (await world.show(old.receipt_id)).disclosed
    assert (await world.show(new.receipt_id)).disclosed


async def test_nothing_is_signed_that_cites_an_erased_document(world: World) -> None:
    await world.erased(1)
    code, details = await refusal(world.stub.IssueReceipt(world.request([evidence(1)])))
    assert code is grpc.StatusCode.ABORTED
    assert document_id(1) in details
    await world.issue(evidence(1, 2))


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"question": ""}, grpc.StatusCode.INVALID_ARGUMENT, "question is empty"),
        ({"position": 999}, grpc.StatusCode.INVALID_ARGUMENT, "the log ends at"),
        ({"incarnation": b"\x01" * 16}, grpc.StatusCode.ABORTED, "another log"),
        ({"policy_digest": b""}, grpc.StatusCode.INVALID_ARGUMENT, "policy_digest has 0 bytes"),
    ],
)
async def test_bad_drafts_are_refused_and_leave_nothing(
    world: World, changes: dict[str, object], code: grpc.StatusCode, words: str
) -> None:
    found, details = await refusal(world.stub.IssueReceipt(world.request([evidence(1)], **changes)))
    assert found is code
    assert words in details
    assert await world.logged() == []
    assert world.blobs() == set()


async def test_what_comes_later_is_refused_by_name(world: World) -> None:
    prove = world.stub.ProveReceipt(pb.ProveReceiptRequest(crate_id=CRATE, receipt_id="0" * 64))
    watch = world.stub.WatchReceipts(pb.WatchReceiptsRequest(crate_id=CRATE))
    checkpoint = world.stub.GetCheckpoint(pb.GetCheckpointRequest(crate_id=CRATE))
    calls: tuple[Awaitable[object], ...] = (prove, checkpoint, anext(aiter(watch)))
    for call in calls:
        code, details = await refusal(call)
        assert code is grpc.StatusCode.UNIMPLEMENTED
        assert "not available yet" in details


async def test_unknown_and_malformed_ids(world: World) -> None:
    await world.issue()
    for receipt_id, code in (
        ("0" * 64, grpc.StatusCode.NOT_FOUND),
        ("abc", grpc.StatusCode.INVALID_ARGUMENT),
        ("A" * 64, grpc.StatusCode.INVALID_ARGUMENT),
    ):
        request = pb.GetReceiptRequest(crate_id=CRATE, receipt_id=receipt_id)
        assert (await refusal(world.stub.GetReceipt(request)))[0] is code


async def test_a_restart_goes_on_with_the_same_chain_and_key(world: World) -> None:
    first = await world.issue()
    keys = await world.keys()
    await world.stop()
    await world.start()
    second = await world.issue()
    assert await world.keys() == keys
    verdict = verify_bundle(second.bundle, keys, parents=[first.bundle])
    assert verdict.chain_link.detail == "unbroken from receipt 0 to 1"


async def test_the_erasure_of_a_document_that_there_isn_t(world: World) -> None:
    await world.erased(7)
    # Its last erasure, when no position is given.
    request = pb.GetErasureRequest(crate_id=CRATE, document_id=document_id(7))
    assert (await world.stub.GetErasure(request)).gone
    for wanted, code in (
        ("", grpc.StatusCode.INVALID_ARGUMENT),
        ("nobody", grpc.StatusCode.NOT_FOUND),
        ("f" * 32, grpc.StatusCode.NOT_FOUND),
    ):
        unknown = pb.GetErasureRequest(crate_id=CRATE, document_id=wanted)
        assert (await refusal(world.stub.GetErasure(unknown)))[0] is code
