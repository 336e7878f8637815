"""A node that runs receipt alone; ingest and query are played by the test, on the real log, tables and packs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
from affidavit.ingest.v1 import ingest_events_pb2 as ingest_pb
from affidavit.receipt.v1 import receipt_events_pb2 as events_pb
from affidavit.receipt.v1 import receipt_service_pb2 as pb
from affidavit.receipt.v1 import receipt_service_pb2_grpc as pb_grpc

from services import topology
from services.kernel import channels
from services.kernel.blobs import blob_names
from services.kernel.bus import Bus
from services.kernel.runner import Context, Node, Role
from services.kernel.settings import NodeSettings
from services.receipt.main import wire

CRATE = "main"
QUESTION = "When does check-in close?"
_PATIENCE_S = 20.0


def document_id(number: int) -> str:
    """A document id."""
    return f"{number:032x}"


def evidence(number: int, revision: int = 1, *, ordinal: int = 0, content: bytes | None = None) -> pb.Evidence:
    """One cited place of a document."""
    text = content if content is not None else f"Check-in {number}.{revision} closes at nine.".encode()
    return pb.Evidence(
        document_id=document_id(number),
        revision=revision,
        ordinal=ordinal,
        byte_start=100,
        byte_end=100 + len(text),
        content=text,
        role=pb.EVIDENCE_ROLE_SUPPORT,
    )


class World:
    """The log with receipt on it."""

    def __init__(self, *, settings: NodeSettings) -> None:
        self.settings = settings
        self.node: Node
        self.context: Context
        self.stub: pb_grpc.ReceiptServiceAsyncStub
        self.ingest: Bus
        self._channel: grpc.aio.Channel
        self._answers = 0
        self._facts = 0

    async def open(self) -> None:
        self.ingest = await Bus.connect(self.settings.nats_url, role="ingest")
        await self.create_crate(CRATE)
        await self.start()

    async def start(self) -> None:
        async def receipt(context: Context) -> Role:
            self.context = context
            return await wire(context)

        self.node = Node(settings=self.settings, wires={"receipt": receipt})
        await self.node.start()
        self._channel = channels.channel(self.node.server.address)
        self.stub = pb_grpc.ReceiptServiceStub(self._channel)

    async def stop(self) -> None:
        await self._channel.close()
        await self.node.stop()

    async def close(self) -> None:
        await self.ingest.close()

    async def create_crate(self, crate: str) -> None:
        message = ingest_pb.CrateConfigured(revision=1)
        await self.ingest.append(crate=crate, aggregate="crate", message=message, key=f"crate:{crate}")

    def request(self, items: Sequence[pb.Evidence] = (), **changes: Any) -> pb.IssueReceiptRequest:
        """What query would send."""
        self._answers += 1
        fields: dict[str, Any] = {
            "crate_id": CRATE,
            "answer_id": f"{self._answers:032x}",
            "question": QUESTION,
            "answer_text": "At nine [1].",
            "raw_answer_text": "At nine [[1]].",
            "evidence": items,
            "candidates": [pb.Candidate(document_id=document_id(9), revision=1, ordinal=3)],
            "position": 1,
            "incarnation": self.ingest.incarnation(),
            "policy_digest": b"\x01" * 32,
            "engine_digest": b"\x02" * 32,
            "mode_requested": "verified",
            "mode_applied": "light",
            "mode_reason": "mode_not_available",
            "repairs": ["[[1]] became [1]"],
        }
        return pb.IssueReceiptRequest(**fields | changes)

    async def issue(self, *items: pb.Evidence, **changes: Any) -> pb.IssueReceiptResponse:
        return await self.stub.IssueReceipt(self.request(items or (evidence(1),), **changes))

    async def show(self, receipt_id: str, crate: str = CRATE) -> pb.GetReceiptResponse:
        return await self.stub.GetReceipt(pb.GetReceiptRequest(crate_id=crate, receipt_id=receipt_id))

    async def view(self, receipt_id: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self.show(receipt_id)).view_json)
        return found

    async def keys(self) -> bytes:
        return (await self.stub.ListKeys(pb.ListKeysRequest(crate_id=CRATE))).keys_file

    async def erase(self, number: int, revision: int = 1, *, crate: str = CRATE) -> int:
        """Append that a document was erased, without waiting."""
        self._facts += 1
        message = ingest_pb.DocumentErased(document_id=document_id(number), revision=revision)
        key = f"erased:{number}:{revision}:{self._facts}"
        done = await self.ingest.append(crate=crate, aggregate=document_id(number), message=message, key=key)
        return done.position

    async def erased(self, number: int, revision: int = 1) -> None:
        """Erase a document and wait until receipt has followed."""
        position = await self.erase(number, revision)
        assert await self.context.applied("erasures", position)
        request = pb.GetErasureRequest(crate_id=CRATE, document_id=document_id(number), position=position)
        assert (await self.stub.GetErasure(request)).gone

    async def settled(self) -> None:
        """Wait until the tables have every receipt of the log."""
        last = await self.context.bus.last(crate=CRATE, service="receipt", aggregate="chain", stream=topology.SIGNALS)
        assert last is not None
        assert await self.context.applied("receipts", last.position)

    async def logged(self) -> list[events_pb.ReceiptIssued]:
        """Every receipt of the log, in order."""
        found = []
        for position in range(1, await self.context.bus.last_position(topology.SIGNALS) + 1):
            raw = await self.context.bus.js.get_msg(topology.SIGNALS, position)
            assert raw.subject is not None
            if raw.subject.endswith(".receipt_issued"):
                message = events_pb.ReceiptIssued()
                message.ParseFromString(raw.data or b"")
                found.append(message)
        return found

    def blobs(self) -> set[str]:
        """Names of all packs."""
        return set(blob_names(self.settings.blobs))

    def answers(self) -> set[str]:
        """Ids of the receipts whose answer is there."""
        return {name.split("/")[1] for name in self.blobs() if "/answer/" in name}

    def files_with(self, text: bytes) -> list[Path]:
        """Files below the data folder that hold a text."""
        return [path for path in self.settings.data_dir.rglob("*") if path.is_file() and text in path.read_bytes()]

    async def until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, "waited too long"
            await asyncio.sleep(0.02)
