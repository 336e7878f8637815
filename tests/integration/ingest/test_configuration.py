"""Crates, settings, providers and jobs over gRPC."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import settings_pb2 as cfg

from tests.integration.ingest.ingest_world import Client, Pipeline

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = b"The relay listens on port 7443."
REMOTE = cfg.Provider(
    role=cfg.PROVIDER_ROLE_EMBEDDING,
    kind=cfg.PROVIDER_KIND_OPENAI_COMPATIBLE,
    enabled=True,
    base_url="https://models.example.org/v1",
    model="embed-3",
    dimension=64,
    max_input_chars=300,
)


async def expect(call: object, code: grpc.StatusCode, message: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match=message) as failure:
        await call  # type: ignore[misc]  # any awaitable call
    assert failure.value.code() is code


async def test_a_new_crate_has_the_defaults_and_the_packaged_model(client: Client) -> None:
    reply = await client.stub.GetCrate(pb.GetCrateRequest(crate_id=client.crate))
    crate = reply.crate
    settings = crate.settings
    assert (crate.revision, crate.documents) == (1, 0)
    assert all(settings.HasField(field.name) for field in settings.DESCRIPTOR.fields)  # type: ignore[arg-type]
    assert (settings.strict_grounding, settings.allow_client_history, settings.source_limit) == (False, True, 8)
    assert (settings.retrieval_mode, settings.mode) == (cfg.RETRIEVAL_MODE_HYBRID, cfg.ANSWER_MODE_VERIFIED)
    assert (settings.profile, settings.allow_downgrade) == ("v1", True)
    assert [(p.role, p.kind, p.enabled) for p in crate.providers] == [
        (cfg.PROVIDER_ROLE_EMBEDDING, cfg.PROVIDER_KIND_LOCAL_ONNX, True)
    ]


async def test_a_crate_is_created_once(client: Client) -> None:
    await expect(client.create_crate(client.crate), grpc.StatusCode.ABORTED, f"crate {client.crate} exists already")
    race = f"{client.crate}-race"
    results = await asyncio.gather(*(client.create_crate(race) for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(result, pb.CreateCrateResponse) for result in results) == 1
    listed = await client.stub.ListCrates(pb.ListCratesRequest())
    names = [crate.crate_id for crate in listed.crates]
    assert {client.crate, race} <= set(names)
    assert names == sorted(names)


@pytest.mark.parametrize("crate_id", ["Main", "a b", "x" * 41])
async def test_names_of_crates_are_checked(client: Client, crate_id: str) -> None:
    await expect(client.create_crate(crate_id), grpc.StatusCode.INVALID_ARGUMENT, "isn't usable")


async def test_documents_are_counted_without_those_that_are_erased(client: Client) -> None:
    for name in ("a", "b", "c"):
        await client.put(name, TEXT)
    await client.erase("b")
    await client.retire("c")
    reply = await client.stub.GetCrate(pb.GetCrateRequest(crate_id=client.crate))
    assert reply.crate.documents == 2


async def test_configure_changes_what_it_names_and_a_repetition_records_nothing(client: Client) -> None:
    request = pb.ConfigureCrateRequest(
        crate_id=client.crate,
        settings=cfg.CrateSettings(strict_grounding=True, retrieval_mode=cfg.RETRIEVAL_MODE_LEXICAL),
    )
    first = await client.stub.ConfigureCrate(request)
    assert first.crate.revision == 2
    assert first.crate.settings.strict_grounding
    assert first.crate.settings.inline_citations
    again = await client.stub.ConfigureCrate(request)
    assert (again.crate.revision, again.position) == (2, first.position)


async def test_settings_that_return_are_recorded_each_time(client: Client) -> None:
    positions = []
    for limit in (3, 4, 3, 4):
        settings = cfg.CrateSettings(source_limit=limit)
        reply = await client.stub.ConfigureCrate(pb.ConfigureCrateRequest(crate_id=client.crate, settings=settings))
        assert reply.crate.settings.source_limit == limit
        positions.append(reply.position)
    assert len(set(positions)) == 4


async def test_concurrent_changes_of_different_settings_are_all_kept(client: Client) -> None:
    patches = [
        cfg.CrateSettings(strict_grounding=True),
        cfg.CrateSettings(source_limit=5),
        cfg.CrateSettings(inline_citations=False),
    ]
    await asyncio.gather(
        *(
            client.stub.ConfigureCrate(pb.ConfigureCrateRequest(crate_id=client.crate, settings=patch))
            for patch in patches
        )
    )
    settings = (await client.stub.GetCrate(pb.GetCrateRequest(crate_id=client.crate))).crate.settings
    assert (settings.strict_grounding, settings.source_limit, settings.inline_citations) == (True, 5, False)


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (cfg.CrateSettings(source_limit=0), grpc.StatusCode.INVALID_ARGUMENT, "source_limit 0 is out of range"),
        (cfg.CrateSettings(profile="v9"), grpc.StatusCode.INVALID_ARGUMENT, "profile 'v9' doesn't exist"),
        (cfg.CrateSettings(retrieval_mode=77), grpc.StatusCode.INVALID_ARGUMENT, "retrieval_mode 77 is unknown"),  # type: ignore[arg-type]
        (cfg.CrateSettings(profile="v4.1"), grpc.StatusCode.UNIMPLEMENTED, "profile v4.1 is not available yet"),
        (
            cfg.CrateSettings(state_rules=cfg.StateRules(status_words={"sunset": "gone"})),
            grpc.StatusCode.INVALID_ARGUMENT,
            "status word 'sunset' can't stand for 'gone'",
        ),
    ],
)
async def test_bad_and_later_settings_are_refused_and_nothing_changes(
    client: Client, settings: cfg.CrateSettings, code: grpc.StatusCode, message: str
) -> None:
    request = pb.ConfigureCrateRequest(crate_id=client.crate, settings=settings)
    await expect(client.stub.ConfigureCrate(request), code, message)
    await expect(
        client.stub.CreateCrate(pb.CreateCrateRequest(crate_id=f"{client.crate}-new", settings=settings)), code, message
    )
    assert (await client.stub.GetCrate(pb.GetCrateRequest(crate_id=client.crate))).crate.revision == 1


async def test_a_provider_limits_the_chunks_and_may_be_moved_but_not_replaced(
    client: Client, pipeline: Pipeline
) -> None:
    remote = f"{client.crate}-remote"
    created = await client.stub.CreateCrate(pb.CreateCrateRequest(crate_id=remote, providers=[REMOTE]))
    assert created.crate.providers[0].model == "embed-3"
    result = await client.put("x", TEXT, crate=remote)
    assert result.notices == ["chunk_size 1000 was lowered to 300: the embedding provider takes at most 300 characters"]
    pipeline.crate = remote
    fact = await pipeline.ingested(result.document_id)
    assert (fact.chunking.size_chars, fact.chunking.overlap_chars) == (300, 150)

    moved = cfg.Provider()
    moved.CopyFrom(REMOTE)
    moved.base_url, moved.max_input_chars, moved.credential = (
        "https://other.example.org",
        500,
        "env:AFFIDAVIT_PROVIDER_KEY",
    )
    reply = await client.stub.PutProvider(pb.PutProviderRequest(crate_id=remote, provider=moved))
    assert (reply.crate.revision, reply.crate.providers[0].base_url) == (2, "https://other.example.org")
    again = await client.put("x", TEXT, crate=remote)
    assert again.outcome == pb.PUT_OUTCOME_RECHUNKED

    moved.model = "embed-4"
    await expect(
        client.stub.PutProvider(pb.PutProviderRequest(crate_id=remote, provider=moved)),
        grpc.StatusCode.UNIMPLEMENTED,
        "model from embed-3 to embed-4 needs the index to be built again",
    )
    await expect(
        client.stub.PutProvider(pb.PutProviderRequest(crate_id=remote, provider=cfg.Provider())),
        grpc.StatusCode.INVALID_ARGUMENT,
        "provider role 0 is unknown",
    )


async def test_a_job_is_clamped_and_the_reply_says_so(client: Client) -> None:
    reply = await client.job("tight", size=100, overlap=100)
    assert (reply.job.chunking.size_chars, reply.job.chunking.overlap_chars) == (100, 50)
    assert reply.notices == ["chunk_overlap 100 was lowered to 50: it can't exceed half of chunk_size 100"]


async def test_jobs_are_listed_and_a_repetition_keeps_them(client: Client) -> None:
    first = await client.job("b")
    await client.job("a", size=500)
    again = await client.job("b")
    assert again.job == first.job
    listed = await client.stub.ListJobs(pb.ListJobsRequest(crate_id=client.crate))
    assert [(job.job_id, job.chunking.size_chars) for job in listed.jobs] == [("a", 500), ("b", 1_000)]


async def test_a_job_with_a_bad_name_or_size_is_refused(client: Client) -> None:
    await expect(client.job("No Job"), grpc.StatusCode.INVALID_ARGUMENT, "job_id 'No Job' isn't usable")
    await expect(client.job("x", size=10), grpc.StatusCode.INVALID_ARGUMENT, "chunk_size 10 is out of range")


async def test_other_chunk_settings_cut_the_same_revision_anew_and_back_again(
    client: Client, pipeline: Pipeline
) -> None:
    digests, packs = [], []
    for size in (1_000, 500, 1_000, 500):
        await client.job("nightly", size=size)
        result = await client.put("x", TEXT, job="nightly")
        fact = await pipeline.ingested(result.document_id)
        assert fact.chunking.size_chars == size
        assert fact.revision == result.revision == 1
        assert (await client.put("x", TEXT, job="nightly")).outcome == pb.PUT_OUTCOME_UNCHANGED
        digests.append(fact.settings_digest)
        packs.append(fact.source.id)
        assert fact.rechunk is (len(digests) > 1)
    assert len(set(digests)) == 4
    assert len(set(packs)) == 1
    document = await client.get("x")
    assert [revision.revision for revision in document.revisions] == [1]
    assert document.job_id == "nightly"


async def test_a_report_about_the_old_chunks_does_not_count_for_the_new_ones(
    client: Client, pipeline: Pipeline
) -> None:
    result = await client.put("x", TEXT)
    await pipeline.finish(result.document_id)
    await client.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)
    await client.job("fine", size=100)
    await client.put("x", TEXT, job="fine")
    assert (await client.get("x")).status == pb.DOCUMENT_STATUS_PENDING
    await pipeline.finish(result.document_id)
    await client.until("x", pb.DOCUMENT_STATUS_SEARCHABLE)


async def test_a_missing_crate_is_not_found(client: Client) -> None:
    await expect(client.put("x", TEXT, crate="nobody"), grpc.StatusCode.NOT_FOUND, "crate 'nobody' does not exist")
    await expect(client.put("x", TEXT, crate=""), grpc.StatusCode.INVALID_ARGUMENT, "crate_id is empty")


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("credential", "file:/etc/shadow", "put it there"),
        ("credential", "file:../../etc/shadow", "put it there"),
        ("credential", "env:HOME", "AFFIDAVIT_PROVIDER_"),
        ("base_url", "http://127.0.0.1:8000/v1", "allow_loopback_providers"),
        ("base_url", "http://localhost/v1", "allow_loopback_providers"),
        ("base_url", "http://[::1]/v1", "allow_loopback_providers"),
        ("base_url", "http://[::ffff:127.0.0.1]/v1", "allow_loopback_providers"),
    ],
)
async def test_a_provider_reaches_nothing_that_the_operator_has_not_opened(
    client: Client, field: str, value: str, told: str
) -> None:
    provider = cfg.Provider()
    provider.CopyFrom(REMOTE)
    setattr(provider, field, value)
    create = pb.CreateCrateRequest(crate_id=f"{client.crate}-x", providers=[provider])
    put = pb.PutProviderRequest(crate_id=client.crate, provider=provider)
    await expect(client.stub.CreateCrate(create), grpc.StatusCode.INVALID_ARGUMENT, told)
    await expect(client.stub.PutProvider(put), grpc.StatusCode.INVALID_ARGUMENT, told)
