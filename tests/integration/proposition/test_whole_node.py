"""Case G10 and what follows, on a node that runs everything; a script stands in for the answer provider."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_service_pb2 as proposition_pb
from affidavit.proposition.v1 import proposition_service_pb2_grpc as proposition_grpc
from affidavit.query.v1 import query_service_pb2 as query_pb

from tests.integration.whole_node import WholeNode

pytestmark = pytest.mark.asyncio(loop_scope="module")
CRATE = "depots"
PASSAGE = (
    "The Aldgate depot opened in 1998. It was rebuilt in 2011 after a flood, and since then it stores only dry goods."
)
UNTIDY = """Here is the result for {passage}:
```json
{"propositions": [
  {"text": "The Aldgate depot opened in 1998."},
  {"text": "The Aldgate depot was rebuilt in 2011 after a flood."},
  {"text": "Since 2011 the Aldgate depot stores only dry goods."},
  {"text": "The Aldgate depot is the largest depot in the country."},
],}
```
Tell me if [more] is needed."""
# Whether a question is answered hangs on the real model.
SETTINGS = {"embedder_model": '"all-MiniLM-L6-v2-int8"'}
LEXICAL = settings_pb2.RETRIEVAL_MODE_LEXICAL
GOOD = {"fidelity": 10, "clarity": 9, "completeness": 8, "focus": 9}
RATINGS = {
    "ratings": [{"ordinal": ordinal} | (GOOD | {"fidelity": 10 if ordinal < 4 else 2}) for ordinal in range(1, 5)]
}
SCRIPT = [
    {"call": "propositions", "contains": "Aldgate", "reply": UNTIDY},
    {"call": "ratings", "contains": "Aldgate", "reply": RATINGS},
    {"contains": "unlucky", "reply": '{"propositions": [{"text": "cut o', "truncated": True},
    {"call": "propositions", "reply": {"propositions": ["The pier of Quenby is long."]}},
    {"call": "ratings", "scores": 9},
]
ANSWERS = settings_pb2.Provider(
    role=settings_pb2.PROVIDER_ROLE_ANSWER,
    kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
    enabled=True,
    base_url="https://models.example.org",
    model="writer-1",
)


def strategy(
    policy: settings_pb2.PropositionFailurePolicy.ValueType = settings_pb2.PROPOSITION_FAILURE_POLICY_FAIL_INDEXING,
) -> settings_pb2.CrateSettings:
    """Settings of a crate with propositions."""
    return settings_pb2.CrateSettings(
        retrieval_strategy=settings_pb2.RETRIEVAL_STRATEGY_PROPOSITION, proposition_failure_policy=policy
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> AsyncIterator[WholeNode]:
    folder: Path = tmp_path_factory.mktemp("propositions")
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    async with WholeNode.start(
        folder / "node", postgres_server, settings=SETTINGS | {"proposition_script": f'"{script}"'}
    ) as whole:
        await whole.ingest.CreateCrate(pb.CreateCrateRequest(crate_id=CRATE, settings=strategy(), providers=[ANSWERS]))
        await whole.put(CRATE, "aldgate.txt", PASSAGE)
        await whole.until(CRATE, "aldgate.txt", pb.DOCUMENT_STATUS_SEARCHABLE)
        yield whole


async def listed(node: WholeNode, crate: str, document_id: str) -> proposition_pb.ListPropositionsResponse:
    stub = proposition_grpc.PropositionServiceStub(node.channel)
    return await stub.ListPropositions(proposition_pb.ListPropositionsRequest(crate_id=crate, document_id=document_id))


async def snippets(node: WholeNode, crate: str, query: str) -> list[tuple[str, str]]:
    request = query_pb.SearchRequest(crate_id=crate, query=query, limit=5, mode=LEXICAL)
    return [(found.source_id, found.snippet) for found in (await node.query.Search(request)).results]


async def evaluated(node: WholeNode, document_id: str) -> int:
    facts = node.bus.facts(crate=CRATE, service="proposition", aggregate=document_id, name="PropositionsEvaluated")
    return len([fact async for fact in facts])


async def ask(node: WholeNode, question: str) -> query_pb.AskResponse:
    return await node.query.Ask(
        query_pb.AskRequest(crate_id=CRATE, question=question, mode=settings_pb2.ANSWER_MODE_LIGHT)
    )


async def test_g10_untidy_propositions_are_graded_and_listed(node: WholeNode) -> None:
    document = await node.document(CRATE, "aldgate.txt")
    found = await listed(node, CRATE, document.document_id)
    assert [(one.ordinal, one.accepted, one.fidelity) for one in found.propositions] == [
        (1, True, 10),
        (2, True, 10),
        (3, True, 10),
        (4, False, 2),
    ]
    assert (found.accepted_count, found.rejected_count, found.chunk_count) == (3, 1, 1)
    assert not any(" it " in one.text for one in found.propositions)


async def test_g10_questions_are_answered_from_the_whole_chunk_or_not_at_all(node: WholeNode) -> None:
    answered = await ask(node, "What does the Aldgate depot store?")
    assert answered.status == query_pb.ANSWER_STATUS_ANSWERED
    assert "dry goods" in answered.text
    for citation in answered.citations:
        assert PASSAGE.encode()[citation.byte_start : citation.byte_end].decode() == citation.quote
    none = await ask(node, "Which is the largest depot?")
    assert none.status == query_pb.ANSWER_STATUS_NO_ANSWER


async def test_a_search_shows_the_proposition_that_was_found(node: WholeNode) -> None:
    assert await snippets(node, CRATE, "Aldgate dry goods") == [
        ("aldgate.txt", "Since 2011 the Aldgate depot stores only dry goods.")
    ]
    assert not await snippets(node, CRATE, "largest country")


async def test_g10_the_same_passage_again_makes_no_second_set(node: WholeNode) -> None:
    reply = await node.put(CRATE, "aldgate.txt", PASSAGE)
    assert reply.outcome == pb.PUT_OUTCOME_UNCHANGED
    assert await evaluated(node, reply.document_id) == 1
    assert len((await listed(node, CRATE, reply.document_id)).propositions) == 4


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (settings_pb2.PROPOSITION_FAILURE_POLICY_SKIP_CHUNK, []),
        (settings_pb2.PROPOSITION_FAILURE_POLICY_EMBED_SOURCE_CHUNK, ["unlucky.txt"]),
    ],
)
async def test_a_chunk_that_fails_follows_the_crates_policy(
    node: WholeNode, policy: settings_pb2.PropositionFailurePolicy.ValueType, found: list[str]
) -> None:
    crate = f"policy-{policy}"
    await node.ingest.CreateCrate(pb.CreateCrateRequest(crate_id=crate, settings=strategy(policy), providers=[ANSWERS]))
    await node.put(crate, "unlucky.txt", "An unlucky text about the lighthouse keeper.")
    await node.put(crate, "pier.txt", "It is long, the pier there.")
    for source in ("unlucky.txt", "pier.txt"):
        await node.until(crate, source, pb.DOCUMENT_STATUS_SEARCHABLE)
    assert [source for source, _ in await snippets(node, crate, "lighthouse keeper")] == found
    assert await snippets(node, crate, "Quenby pier") == [("pier.txt", "The pier of Quenby is long.")]


async def test_without_a_provider_or_later_a_crate_can_t_have_propositions(node: WholeNode) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.ingest.CreateCrate(pb.CreateCrateRequest(crate_id="bare", settings=strategy()))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "needs an enabled answer provider" in str(caught.value.details())
    await node.create("plain")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.ingest.ConfigureCrate(pb.ConfigureCrateRequest(crate_id="plain", settings=strategy()))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "create another crate with that strategy" in str(caught.value.details())
    other = settings_pb2.Provider()
    other.CopyFrom(ANSWERS)
    other.model = "writer-2"
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await node.ingest.PutProvider(pb.PutProviderRequest(crate_id=CRATE, provider=other))
    assert "changing the answer provider's model from writer-1 to writer-2" in str(caught.value.details())
