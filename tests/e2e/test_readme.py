"""The README's examples work: those with tools that aren't installed here run as the same call in Python."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import grpc
import nats
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.embedded.folder import Endpoints
from tests.e2e.commands import FAST, let_through, result, up

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def payload(tool: str) -> dict[str, Any]:
    """JSON that the README hands to a tool, between single quotes."""
    block = next(
        block for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL) if f"{tool} " in block and "'{" in block
    )
    found: dict[str, Any] = json.loads(re.search(r"'(\{.*\})'", block, re.DOTALL).group(1))  # type: ignore[union-attr]
    return found


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    let_through(folder)
    return folder / "data"


async def test_the_publishers_example(data_dir: Path) -> None:
    message = payload("nats request")
    with up(data_dir, environment=FAST):
        endpoints = Endpoints.read(data_dir)
        client = await nats.connect(endpoints.nats_url)
        replies = []
        for _ in range(2):
            reply = await client.request("affidavit.submit.main", json.dumps(message).encode(), timeout=10)
            replies.append(json.loads(reply.data))
        foreign = await client.request("affidavit.submit.nobody", json.dumps(message).encode(), timeout=10)
        await client.close()
        assert replies[0]["revision"] == 1
        assert replies[0]["outcome"] == "created"
        assert (replies[1]["revision"], replies[1]["position"]) == (1, replies[0]["position"])
        assert json.loads(foreign.data)["error"]["code"]
        result("ingest", str(Path(__file__)), "--media-type", "text/plain", data_dir=data_dir)
        answer = ask_by_reflection(endpoints.listen, {**payload("grpcurl"), "question": "How many days do staff have?"})
        assert "28 days" in answer["text"]


def ask_by_reflection(address: str, request: dict[str, Any]) -> dict[str, Any]:
    """What grpcurl does: learn the messages from the server, send JSON, read JSON."""
    name = re.search(r"affidavit\.query\.v1\.QueryService/Ask", README).group()  # type: ignore[union-attr]
    service, method = name.split("/")
    with grpc.insecure_channel(address) as channel:
        pool = DescriptorPool()
        learn(reflection_pb2_grpc.ServerReflectionStub(channel), service, pool)
        described = pool.FindServiceByName(service).methods_by_name[method]
        call: Any = channel.unary_unary(
            f"/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(described.output_type).FromString,
        )
        reply = call(json_format.ParseDict(request, GetMessageClass(described.input_type)()))
        found: dict[str, Any] = json_format.MessageToDict(reply, preserving_proto_field_name=True)
        return found


def learn(stub: reflection_pb2_grpc.ServerReflectionStub, symbol: str, pool: DescriptorPool) -> None:
    """Fill a pool with the file that defines a symbol, and all that it imports."""
    wanted = [reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)]
    files: dict[str, FileDescriptorProto] = {}
    while wanted:
        for reply in stub.ServerReflectionInfo(iter([wanted.pop()])):
            for raw in reply.file_descriptor_response.file_descriptor_proto:
                file = FileDescriptorProto.FromString(raw)
                if file.name not in files:
                    files[file.name] = file
                    wanted += [
                        reflection_pb2.ServerReflectionRequest(file_by_filename=name) for name in file.dependency
                    ]
    while files:
        ready = [file for file in files.values() if not set(file.dependency) & set(files)]
        for file in ready:
            pool.AddSerializedFile(file.SerializeToString())
            del files[file.name]
