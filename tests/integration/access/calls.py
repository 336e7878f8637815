"""Any RPC of the contracts, called by its descriptor."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from services import topology

PRINCIPAL = "x-principal"
# What a reply may say of the call itself, or of how far the pipeline is, and not of what was asked for.
_VOLATILE = frozenset(
    {
        "position",
        "watermark",
        "document_id",
        "answer_id",
        "receipt",
        "receipt_id",
        "bundle",
        "verdict_json",
        "status",
        "chunks",
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to.

    Attributes:
        code: Status.
        text: Its message.
        replies: Messages before the end.
        reason: Of the error's details.
    """

    code: grpc.StatusCode
    text: str = ""
    replies: tuple[Any, ...] = ()
    reason: str = ""

    def without(self, names: Sequence[str]) -> tuple[object, ...]:
        """The outcome as a caller sees it, apart from the names that it gave itself."""
        replies = tuple(repr(_steady(MessageToDict(reply, preserving_proto_field_name=True))) for reply in self.replies)
        seen = [self.text, self.reason, *replies]
        for name in names:
            seen = [re.sub(rf"\b{re.escape(name)}\b", "<name>", part) for part in seen]
        return (self.code, *seen)


def _steady(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _steady(inner) for key, inner in value.items() if key not in _VOLATILE and not key.endswith("_at")}
    return [_steady(inner) for inner in value] if isinstance(value, list) else value


def methods() -> dict[str, MethodDescriptor]:
    """Every RPC that a role serves, by "Service/Method"."""
    found = {}
    for role in topology.ROLES:
        for name in role.serves:
            package, service = name.rsplit(".", 1)
            module: Any = importlib.import_module(f"{package}.{role.name}_service_pb2")
            for method in module.DESCRIPTOR.services_by_name[service].methods:
                found[f"{service}/{method.name}"] = method
    return found


def path(method: MethodDescriptor) -> str:
    """Full RPC name, "/package.Service/Method"."""
    return f"/{method.containing_service.full_name}/{method.name}"


def fields(message: Message) -> Iterator[tuple[Any, FieldDescriptor]]:
    """Every field that is set in a message, with the message that holds it, at any depth."""
    for descriptor, value in message.ListFields():
        yield message, descriptor
        if descriptor.message_type is not None and not descriptor.message_type.GetOptions().map_entry:
            for inner in value if descriptor.is_repeated else (value,):
                yield from fields(inner)


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls as one principal; without a name as the machine's owner.

    Attributes:
        channel: To the node.
        principal: Name in the grants table, or empty.
    """

    channel: grpc.aio.Channel
    principal: str = ""
    timeout_s: float = field(default=20.0)

    async def call(self, method: MethodDescriptor, requests: Sequence[Message]) -> Outcome:
        """Call an RPC of any shape.

        Args:
            method: Which.
            requests: One message, or those of the stream.
        """
        make = self.channel.stream_stream if method.client_streaming else self.channel.unary_stream
        stub: Any = make(
            path(method),
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        metadata = ((PRINCIPAL, self.principal),) if self.principal else ()
        replies = []
        given = iter(requests) if method.client_streaming else requests[0]
        try:
            async for reply in stub(given, metadata=metadata, timeout=self.timeout_s):
                replies.append(reply)  # noqa: PERF401  (what came before an error is kept)
        except grpc.aio.AioRpcError as error:
            status, info = rpc_status.from_call(error), error_details_pb2.ErrorInfo()
            told = status is not None and len(status.details) == 1 and status.details[0].Unpack(info)
            return Outcome(error.code(), error.details() or "", tuple(replies), info.reason if told else "")
        return Outcome(grpc.StatusCode.OK, "", tuple(replies))
