"""gRPC edge: one server per process, with grants, error mapping, health and reflection on every service."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection
from grpc_status import rpc_status

from services.kernel import addresses, channels, requests, telemetry
from services.kernel.auth import Credentials, Grants
from services.kernel.errors import Failure, Rejected, Unavailable, outcome

_log = logging.getLogger("affidavit.rpc")
_PUBLIC = ("/grpc.health.", "/grpc.reflection.")
_UNSCOPED = ("/affidavit.ingest.v1.IngestService/ListCrates",)
_CREATES = ("/affidavit.ingest.v1.IngestService/CreateCrate",)

# Generic over messages that the guard never looks into.
Call: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


@dataclass(frozen=True, slots=True)
class Servicer:
    """One gRPC service of a role.

    Attributes:
        name: Full service name.
        add: Generated `add_XServicer_to_server`.
        servicer: Implementation; its methods raise Failures.
    """

    name: str
    add: Callable[[Any, grpc.aio.Server], None]
    servicer: Any


class GuardInterceptor(grpc.aio.ServerInterceptor):
    """Checks grant, enums and times of every call and turns Failures into statuses."""

    def __init__(self, *, grants: Grants) -> None:
        self._grants = grants

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Wrap the handler of one call."""
        handler: Any = await continuation(handler_call_details)
        method = str(handler_call_details.method)
        if handler is None or method.startswith(_PUBLIC):
            return cast("Handler | None", handler)
        guard = _Guard(self._grants, method)
        wrap = {
            (False, False): (grpc.unary_unary_rpc_method_handler, guard.unary_unary, handler.unary_unary),
            (False, True): (grpc.unary_stream_rpc_method_handler, guard.unary_stream, handler.unary_stream),
            (True, False): (grpc.stream_unary_rpc_method_handler, guard.stream_unary, handler.stream_unary),
            (True, True): (grpc.stream_stream_rpc_method_handler, guard.stream_stream, handler.stream_stream),
        }
        make, wrapper, inner = wrap[bool(handler.request_streaming), bool(handler.response_streaming)]
        wrapped: Handler = make(
            wrapper(inner),
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )
        return wrapped


class _Guard:
    """The four shapes of a guarded call."""

    def __init__(self, grants: Grants, method: str) -> None:
        self._grants = grants
        self._method = method

    def unary_unary(self, inner: Any) -> Any:
        async def call(request: Any, context: Call) -> Any:
            async with _Outcome(self._method, context):
                await self._check(request, context)
                return await inner(request, context)

        return call

    def unary_stream(self, inner: Any) -> Any:
        async def call(request: Any, context: Call) -> AsyncIterator[Any]:
            async with _Outcome(self._method, context):
                await self._check(request, context)
                async for reply in inner(request, context):
                    yield reply

        return call

    def stream_unary(self, inner: Any) -> Any:
        async def call(stream: AsyncIterator[Any], context: Call) -> Any:
            async with _Outcome(self._method, context):
                return await inner(self._checked(stream, context), context)

        return call

    def stream_stream(self, inner: Any) -> Any:
        async def call(stream: AsyncIterator[Any], context: Call) -> AsyncIterator[Any]:
            async with _Outcome(self._method, context):
                async for reply in inner(self._checked(stream, context), context):
                    yield reply

        return call

    async def _checked(self, stream: AsyncIterator[Any], context: Call) -> AsyncIterator[Any]:
        crate = None
        async for request in stream:
            if crate is None:
                await self._check(request, context)
                crate = _crate(request)
            elif _crate(request) not in ("", crate):
                raise Rejected(
                    f"a later message names another crate than the first one, {crate}: name the same, or none"
                )
            else:
                requests.check(request)
            yield request

    async def _check(self, request: Any, context: Call) -> None:
        shown = _credentials(context)
        if self._method in _UNSCOPED:
            await self._grants.admit_unscoped(shown, self._method)
        else:
            await self._grants.admit(shown, self._method, _crate(request), creates=self._method in _CREATES)
        requests.check(request)


def _credentials(context: Call) -> Credentials:
    metadata = context.invocation_metadata() or ()
    return Credentials(
        metadata={str(name).lower(): value for name, value in metadata if isinstance(value, str)},
        certificate_names=tuple(name.decode(errors="replace") for name in context.peer_identities() or ()),
    )


def _crate(request: Any) -> str:
    """Field 1 of a request, or of the message that its field 1 or its first part holds."""
    while True:
        if hasattr(request, "crate_id"):
            return str(request.crate_id)
        first = min(request.DESCRIPTOR.fields, key=lambda field: field.number)
        request = getattr(request, first.name)
        if isinstance(request, str | bytes):
            return ""


class _Outcome:
    """Maps what leaves a servicer to a status, and times the call."""

    def __init__(self, method: str, context: Call) -> None:
        self._method = method
        self._context = context
        self._started = time.perf_counter()

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        status = grpc.StatusCode.OK if error is None else outcome(error).status
        telemetry.rpc_seconds.labels(self._method, status.name).observe(time.perf_counter() - self._started)
        if not isinstance(error, Exception) or isinstance(error, grpc.aio.AbortError):
            return
        if isinstance(error, Failure):
            await self._context.abort_with_status(_status(error, status))
        if isinstance(error, grpc.aio.AioRpcError):
            await self._context.abort(error.code(), error.details() or "a service that this one needs failed")
        _log.error("%s failed unexpectedly", self._method, exc_info=error)
        await self._context.abort(
            grpc.StatusCode.INTERNAL, f"an unexpected fault ({type(error).__name__}); the server's log has the details"
        )


def _status(error: Failure, code: grpc.StatusCode) -> Any:
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=error.code.upper(), domain="affidavit"))
    return rpc_status.to_status(
        status_pb2.Status(code=code_pb2.Code.Value(code.name), message=error.message, details=[detail])
    )


class Server:
    """The process's gRPC server.

    Attributes:
        address: host:port that it listens on, once started.
    """

    def __init__(self, *, listen: str, grants: Grants, servicers: tuple[Servicer, ...]) -> None:
        self.address = listen
        self._server = grpc.aio.server(interceptors=(GuardInterceptor(grants=grants),), options=channels.SERVER_OPTIONS)
        self._health = health_aio.HealthServicer()
        self._names = tuple(servicer.name for servicer in servicers)
        for servicer in servicers:
            servicer.add(servicer.servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*self._names, reflection.SERVICE_NAME, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name),
            self._server,
        )

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            Rejected: When the address is no loopback address with a port.
            Conflict: When it is taken.
        """
        # gRPC takes a port above 65535 for what is left of it modulo 65536.
        addresses.parse(self.address)
        try:
            port = self._server.add_insecure_port(self.address)
        except RuntimeError as error:
            addresses.check_free(self.address)
            raise Unavailable(f"address {self.address} can't be used ({error}): use --listen") from error
        self.address = f"{self.address.rsplit(':', 1)[0]}:{port}"
        await self._server.start()

    async def set_ready(self, ready: dict[str, bool]) -> None:
        """Publish readiness.

        Args:
            ready: By full service name; "" stands for the whole process.
        """
        states = health_pb2.HealthCheckResponse
        for name in (*self._names, ""):
            state = states.SERVING if ready.get(name, False) else states.NOT_SERVING
            await self._health.set(name, state)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, let running ones finish.

        Args:
            grace_s: Seconds to wait for them.
        """
        await self._health.enter_graceful_shutdown()
        await asyncio.shield(self._server.stop(grace_s))
