"""Edge 2: gRPC."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from affidavit.citation.v1 import citation_service_pb2 as pb
from affidavit.citation.v1 import citation_service_pb2_grpc as pb_grpc

from services.citation import codec
from services.citation.domain.repair import Repaired, StreamRepairer
from services.citation.ports import Signals
from services.kernel.errors import NotAvailableYet, Rejected
from services.kernel.rpc import Call

_ANSWER_ID = re.compile(r"[A-Za-z0-9_-]{0,64}")


class CitationServicer(pb_grpc.CitationServiceServicer):
    """Repairs markers."""

    def __init__(self, *, signals: Signals, max_chars: int) -> None:
        """Keep what repairing needs.

        Args:
            signals: Told of each answer's repair.
            max_chars: Longest text, code points.
        """
        self._signals = signals
        self._max_chars = max_chars

    async def Repair(self, request: pb.RepairRequest, context: Call) -> pb.RepairResponse:
        """See the contract.

        Raises:
            Rejected: When the text is too long, the count out of range or a span of evidence out of order.
            Unavailable: When the log doesn't take the signal.
        """
        session = _Session(request, self._max_chars)
        session.feed(request.raw_text)
        _, result = session.finish()
        await self._tell(request, result)
        return codec.response(result)

    async def RepairStream(
        self, requests: AsyncIterator[pb.RepairStreamRequest], context: Call
    ) -> AsyncIterator[pb.RepairStreamResponse]:
        """See the contract.

        Raises:
            Rejected: As for Repair, and when the first message is no start or a later one is.
            Unavailable: When the log doesn't take the signal.
        """
        first = await anext(requests, None)
        if first is None or first.WhichOneof("part") != "start" or first.start.raw_text:
            raise Rejected("the first message of RepairStream must be `start`, with raw_text empty")
        session = _Session(first.start, self._max_chars)
        async for request in requests:
            if request.WhichOneof("part") != "text":
                raise Rejected("every message of RepairStream after the first must be `text`")
            text = session.feed(request.text)
            if text:
                yield codec.piece(text)
        text, result = session.finish()
        if text:
            yield codec.piece(text)
        await self._tell(first.start, result)
        yield codec.final(result)

    async def Replay(self, request: pb.ReplayRequest, context: Call) -> pb.ReplayResponse:
        """See the contract.

        Raises:
            NotAvailableYet: Always.
        """
        raise NotAvailableYet(
            "replaying citation decisions is not available yet: repair the text again with Repair, which is deterministic"
        )

    async def _tell(self, start: pb.RepairRequest, result: Repaired) -> None:
        if start.answer_id:
            await self._signals.repaired(start.crate_id, start.answer_id, result)


class _Session:
    """One text, with its limits."""

    def __init__(self, start: pb.RepairRequest, max_chars: int) -> None:
        self._size = 0
        self._max_chars = max_chars
        if not _ANSWER_ID.fullmatch(start.answer_id):
            raise Rejected("answer_id may hold letters, digits, '_' and '-', at most 64: send the id that Ask returned")
        try:
            self._repairer = StreamRepairer(source_count=start.source_count, literals=codec.literals(start))
        except ValueError as error:
            raise Rejected(f"the text can't be repaired: {error}") from error

    def feed(self, piece: str) -> str:
        self._size += len(piece)
        if self._size > self._max_chars:
            raise Rejected(f"the text is longer than {self._max_chars} characters: repair it in parts")
        return self._repairer.feed(piece)

    def finish(self) -> tuple[str, Repaired]:
        return self._repairer.finish()
