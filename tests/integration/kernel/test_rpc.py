"""Grants, error mapping, health and reflection over a real gRPC connection."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from types import SimpleNamespace

import grpc
import pytest
from affidavit.ingest.v1 import ingest_events_pb2, ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from services.embedded.children import free_port
from services.kernel import auth, rpc
from services.kernel.errors import Conflict, NotAvailableYet, Rejected
from tests.conftest import ContextFactory

SERVICE = "affidavit.ingest.v1.IngestService"


async def get_crate(request: ingest_service_pb2.GetCrateRequest, _context: object) -> object:
    return ingest_service_pb2.GetCrateResponse(crate=ingest_service_pb2.Crate(crate_id=request.crate_id))


async def put_job(_request: object, _context: object) -> object:
    raise Rejected("job x is wrong: name it otherwise")


async def list_jobs(_request: object, _context: object) -> object:
    raise RuntimeError("secret text of a document")


async def upload_document(requests: AsyncIterator[object], _context: object) -> object:
    count = len([request async for request in requests])
    return ingest_service_pb2.UploadDocumentResponse(result=ingest_service_pb2.PutDocumentResponse(revision=count))


async def absent(_request: object, _context: object) -> object:
    raise NotAvailableYet("this test has no need of it")


METHODS = {"GetCrate": get_crate, "PutJob": put_job, "ListJobs": list_jobs, "UploadDocument": upload_document}


def ingest_double() -> SimpleNamespace:
    """A servicer with only the methods that these tests call."""
    names = [method.name for method in ingest_service_pb2.DESCRIPTOR.services_by_name["IngestService"].methods]
    return SimpleNamespace(**{name: METHODS.get(name, absent) for name in names})


@pytest.fixture
async def address(context_for: ContextFactory) -> AsyncIterator[str]:
    context = await context_for("ingest")
    await context.bus.append(
        crate="known", aggregate="crate", message=ingest_events_pb2.CrateConfigured(revision=1), key="1"
    )
    grants = auth.Grants(database=await context.database(auth.MIGRATIONS), bus=context.bus)
    add = ingest_service_pb2_grpc.add_IngestServiceServicer_to_server
    server = rpc.Server(
        listen=f"127.0.0.1:{free_port()}", grants=grants, servicers=(rpc.Servicer(SERVICE, add, ingest_double()),)
    )
    await server.start()
    await server.set_ready({"": True, SERVICE: False})
    yield server.address
    await server.stop(1)


@pytest.fixture
async def channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    async with grpc.aio.insecure_channel(address) as found:
        yield found


async def test_a_known_crate_is_served(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    reply = await stub.GetCrate(ingest_service_pb2.GetCrateRequest(crate_id="known"))
    assert reply.crate.crate_id == "known"


@pytest.mark.parametrize("crate", ["foreign", "a.b", "*", ">", "known.x"])
async def test_a_foreign_crate_is_not_found(channel: grpc.aio.Channel, crate: str) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetCrate(ingest_service_pb2.GetCrateRequest(crate_id=crate))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_no_crate_is_never_a_default(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError, match="names its crate") as caught:
        await stub.GetCrate(ingest_service_pb2.GetCrateRequest())
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_streams_are_guarded_too(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)

    def parts(crate: str) -> list[ingest_service_pb2.UploadDocumentRequest]:
        header = ingest_service_pb2.DocumentHeader(source_id="x")
        return [
            ingest_service_pb2.UploadDocumentRequest(crate_id=crate, header=header),
            ingest_service_pb2.UploadDocumentRequest(body=b"x"),
        ]

    reply = await stub.UploadDocument(iter(parts("known")))
    assert reply.result.revision == 2
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.UploadDocument(iter(parts("foreign")))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_stream_belongs_to_one_crate(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    header = ingest_service_pb2.DocumentHeader(source_id="x")
    first = ingest_service_pb2.UploadDocumentRequest(crate_id="known", header=header)
    for crate, accepted in (("known", True), ("", True), ("other", False)):
        parts = [first, ingest_service_pb2.UploadDocumentRequest(crate_id=crate, body=b"x")]
        if accepted:
            assert (await stub.UploadDocument(iter(parts))).result.revision == 2
            continue
        with pytest.raises(grpc.aio.AioRpcError, match="another crate than the first one, known") as caught:
            await stub.UploadDocument(iter(parts))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_enum_numbers_that_stand_for_nothing_are_refused(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    provider = settings_pb2.Provider(role=settings_pb2.PROVIDER_ROLE_EMBEDDING, kind=9)  # type: ignore[arg-type]  # the point
    with pytest.raises(grpc.aio.AioRpcError, match=r"provider\.kind 9 is unknown") as caught:
        await stub.PutProvider(ingest_service_pb2.PutProviderRequest(crate_id="known", provider=provider))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    foreign = ingest_service_pb2.PutProviderRequest(crate_id="foreign", provider=provider)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.PutProvider(foreign)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_failures_carry_their_message_and_reason(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.PutJob(ingest_service_pb2.PutJobRequest(crate_id="known"))
    assert caught.value.details() == "job x is wrong: name it otherwise"
    status = rpc_status.from_call(caught.value)
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain) == ("REJECTED", "affidavit")


async def test_unexpected_faults_quote_nothing(channel: grpc.aio.Channel) -> None:
    stub = ingest_service_pb2_grpc.IngestServiceStub(channel)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.ListJobs(ingest_service_pb2.ListJobsRequest(crate_id="known"))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in str(caught.value.details())


async def test_health_tells_each_service_apart(channel: grpc.aio.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    states = health_pb2.HealthCheckResponse
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == states.SERVING
    assert (await stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))).status == states.NOT_SERVING


async def test_reflection_lists_the_services(channel: grpc.aio.Channel) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async for reply in stub.ServerReflectionInfo(iter([request])):
        names = {service.name for service in reply.list_services_response.service}
        assert names == {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_only_loopback_is_served_without_tokens(context_for: ContextFactory) -> None:
    context = await context_for("ingest")
    grants = auth.Grants(database=await context.database(auth.MIGRATIONS), bus=context.bus)
    with pytest.raises(Rejected, match="tokens are not available yet"):
        await rpc.Server(listen="0.0.0.0:7401", grants=grants, servicers=()).start()


async def test_a_taken_address_is_never_shared(context_for: ContextFactory, address: str) -> None:
    context = await context_for("ingest")
    grants = auth.Grants(database=await context.database(auth.MIGRATIONS), bus=context.bus)
    with pytest.raises(Conflict, match=rf"{address} is taken by .*pid {os.getpid()}.*--listen"):
        await rpc.Server(listen=address, grants=grants, servicers=()).start()


async def test_a_port_that_there_is_not_is_refused(context_for: ContextFactory) -> None:
    context = await context_for("ingest")
    grants = auth.Grants(database=await context.database(auth.MIGRATIONS), bus=context.bus)
    with pytest.raises(Rejected, match="65535"):
        await rpc.Server(listen="127.0.0.1:99999", grants=grants, servicers=()).start()
