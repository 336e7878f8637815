"""A stubborn client: it carries out histories and repeats what wasn't confirmed, as a publisher would."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import grpc
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc

from tests.storm.histories import Erase, History, Put, Retire

_PATIENCE_S = 300.0
_CALL_S = 15.0
_PAUSE_S = 0.2
# What a caller is told to repeat. Anything else is a fault.
_REPEATABLE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.ABORTED)
_Reply = TypeVar("_Reply")


class Driver:
    """Sends the changes of a crate's documents, each document's in order.

    Attributes:
        repeated: Calls that had to be made again.
    """

    def __init__(self, *, address: str, crate: str) -> None:
        self._stub = pb_grpc.IngestServiceStub(grpc.insecure_channel(address))
        self._crate = crate
        self._lock = threading.Lock()
        self.repeated = 0

    def create(self) -> None:
        """Create the crate."""
        self.insist(lambda: self._stub.GetCrate(pb.GetCrateRequest(crate_id="main"), timeout=_CALL_S))
        self._stub.CreateCrate(pb.CreateCrateRequest(crate_id=self._crate), timeout=_CALL_S)

    def carry_out(self, histories: Sequence[History], *, senders: int, before: Callable[[int], None]) -> None:
        """Carry out histories and return when all changes are confirmed.

        Args:
            histories: One per document.
            senders: Documents at once.
            before: Called with a document's number before its first change, to hold it back.
        """

        def one(numbered: tuple[int, History]) -> None:
            before(numbered[0])
            for change in numbered[1].changes:
                self._change(numbered[1].source_id, change)

        with ThreadPoolExecutor(senders) as pool:
            list(pool.map(one, enumerate(histories)))

    def settle(self, within_s: float) -> bool:
        """Wait until no document is on its way; False when some are stuck."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if not self._pending():
                return True
            time.sleep(_PAUSE_S)
        return False

    def documents(self) -> list[pb.Document]:
        """All documents with their revisions."""
        found: list[pb.Document] = []
        token = ""
        while True:
            request = pb.ListDocumentsRequest(crate_id=self._crate, page_size=1000, page_token=token)
            page = self.insist(partial(self._stub.ListDocuments, request, timeout=_CALL_S))
            found += page.documents
            token = page.next_page_token
            if not token:
                return found

    def _pending(self) -> bool:
        request = pb.ListDocumentsRequest(crate_id=self._crate, page_size=1, statuses=[pb.DOCUMENT_STATUS_PENDING])
        return bool(self.insist(lambda: self._stub.ListDocuments(request, timeout=_CALL_S)).documents)

    def _change(self, source_id: str, change: Put | Retire | Erase) -> None:
        if isinstance(change, Put):
            header = pb.DocumentHeader(source_id=source_id, media_type="text/plain")
            put = pb.PutDocumentRequest(crate_id=self._crate, header=header, body=change.body.encode())
            self.insist(lambda: self._stub.PutDocument(put, timeout=_CALL_S))
        elif isinstance(change, Retire):
            retire = pb.RetireDocumentRequest(crate_id=self._crate, source_id=source_id)
            self.insist(lambda: self._stub.RetireDocument(retire, timeout=_CALL_S))
        else:
            erase = pb.EraseDocumentRequest(crate_id=self._crate, source_id=source_id)
            self.insist(lambda: self._stub.EraseDocument(erase, timeout=_CALL_S))

    def insist(self, call: Callable[[], _Reply]) -> _Reply:
        """Make a call until it is answered.

        Args:
            call: It.

        Returns:
            Its reply.

        Raises:
            grpc.RpcError: When it is refused for another reason than a part that is away, or patience ends.
        """
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return call()
            except grpc.RpcError as error:
                if error.code() not in _REPEATABLE or time.monotonic() > deadline:
                    raise
                with self._lock:
                    self.repeated += 1
                time.sleep(_PAUSE_S)
