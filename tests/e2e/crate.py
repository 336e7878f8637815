"""One crate of a running node, as a test talks to it: through the contracts alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime

import grpc
from affidavit.citation.v1 import citation_service_pb2_grpc
from affidavit.index.v1 import index_service_pb2, index_service_pb2_grpc, living_pb2
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2
from affidavit.query.v1 import query_service_pb2, query_service_pb2_grpc
from affidavit.receipt.v1 import receipt_service_pb2, receipt_service_pb2_grpc
from google.protobuf.timestamp_pb2 import Timestamp

LEXICAL = settings_pb2.RETRIEVAL_MODE_LEXICAL
SEMANTIC = settings_pb2.RETRIEVAL_MODE_SEMANTIC
HYBRID = settings_pb2.RETRIEVAL_MODE_HYBRID
ANSWERED = query_service_pb2.ANSWER_STATUS_ANSWERED
NO_ANSWER = query_service_pb2.ANSWER_STATUS_NO_ANSWER
_WAIT_S = 60


class Crate:
    """A crate of its own for one test."""

    def __init__(
        self,
        *,
        address: str,
        crate_id: str,
        providers: Sequence[settings_pb2.Provider] = (),
        settings: settings_pb2.CrateSettings | None = None,
    ) -> None:
        channel = grpc.insecure_channel(address)
        self.id = crate_id
        self.ingest = ingest_service_pb2_grpc.IngestServiceStub(channel)
        self.index = index_service_pb2_grpc.IndexServiceStub(channel)
        self.query = query_service_pb2_grpc.QueryServiceStub(channel)
        self.citation = citation_service_pb2_grpc.CitationServiceStub(channel)
        self.receipt = receipt_service_pb2_grpc.ReceiptServiceStub(channel)
        self.ingest.CreateCrate(
            ingest_service_pb2.CreateCrateRequest(crate_id=crate_id, providers=providers, settings=settings)
        )

    def put(
        self,
        source_id: str,
        body: bytes | str,
        *,
        media_type: str = "",
        charset: str = "",
        job: str = "",
        metadata: Mapping[str, str] | None = None,
        effective: datetime | None = None,
        domain: str = "",
    ) -> ingest_service_pb2.PutDocumentResponse:
        """Put a document and wait until it has a final state."""
        header = ingest_service_pb2.DocumentHeader(
            source_id=source_id,
            media_type=media_type,
            charset=charset,
            job_id=job,
            metadata=metadata,
            effective_at=timestamp(effective),
            source_domain=domain,
        )
        data = body.encode() if isinstance(body, str) else body
        request = ingest_service_pb2.PutDocumentRequest(crate_id=self.id, header=header, body=data)
        reply = self.ingest.PutDocument(request)
        self.settle(reply.document_id)
        return reply

    def settle(self, *document_ids: str) -> ingest_service_pb2.WatchProgressResponse:
        """Wait until documents have a final state; without ids, all of the crate."""
        request = ingest_service_pb2.WatchProgressRequest(crate_id=self.id, document_ids=document_ids)
        return list(self.ingest.WatchProgress(request, timeout=_WAIT_S))[-1]

    def document(self, source_id: str) -> ingest_service_pb2.Document:
        """A document with its revisions, newest first."""
        request = ingest_service_pb2.GetDocumentRequest(crate_id=self.id, source_id=source_id)
        return self.ingest.GetDocument(request).document

    def original(self, document_id: str, revision: int = 0) -> bytes:
        """The original bytes of a revision."""
        request = ingest_service_pb2.ReadDocumentRequest(crate_id=self.id, document_id=document_id, revision=revision)
        return b"".join(piece.body for piece in self.ingest.ReadDocument(request))

    def chunks(self, document_id: str) -> index_service_pb2.ListChunksResponse:
        """Chunks of the current revision."""
        request = index_service_pb2.ListChunksRequest(crate_id=self.id, document_id=document_id, page_size=1000)
        return self.index.ListChunks(request)

    def ask(
        self,
        question: str,
        *,
        mode: settings_pb2.AnswerMode.ValueType = settings_pb2.ANSWER_MODE_LIGHT,
        as_of: datetime | None = None,
        at: int = 0,
        explain: bool = False,
    ) -> query_service_pb2.AskResponse:
        """Ask, in mode light unless another is given."""
        request = query_service_pb2.AskRequest(
            crate_id=self.id, question=question, mode=mode, as_of=timestamp(as_of), at=at, explain=explain
        )
        return self.query.Ask(request)

    def relate(self, source: str, kind: str, target: str, effective: datetime | None = None) -> int:
        """State a relation between two source ids, and wait until the index knows it."""
        request = ingest_service_pb2.DeclareRelationRequest(
            crate_id=self.id,
            source_source_id=source,
            type=kind,
            target_source_id=target,
            effective_at=timestamp(effective),
        )
        position = self.ingest.DeclareRelation(request).position
        self.applied(position)
        return position

    def applied(self, position: int) -> None:
        """Wait until the index has applied the log up to a position."""
        deadline = time.monotonic() + _WAIT_S
        while self.position() < position:
            assert time.monotonic() < deadline, f"position {position} is not applied"
            time.sleep(0.02)

    def position(self) -> int:
        """KNOWLEDGE position that the index has applied."""
        return self.index.GetWatermark(index_service_pb2.GetWatermarkRequest(crate_id=self.id)).position

    def state(
        self, source_id: str, *, as_of: datetime | None = None, at: int = 0, revision: int = 0
    ) -> living_pb2.StateReport:
        """Living state of a document."""
        request = index_service_pb2.GetStateRequest(
            crate_id=self.id, source_id=source_id, as_of=timestamp(as_of), at=at, revision=revision
        )
        return self.index.GetState(request).report

    def search(
        self, query: str, mode: settings_pb2.RetrievalMode.ValueType = HYBRID, limit: int = 10
    ) -> query_service_pb2.SearchResponse:
        """Search chunks."""
        request = query_service_pb2.SearchRequest(crate_id=self.id, query=query, mode=mode, limit=limit)
        return self.query.Search(request)

    def found(self, query: str, mode: settings_pb2.RetrievalMode.ValueType = HYBRID, limit: int = 10) -> list[str]:
        """Source ids that a search returns."""
        return [result.source_id for result in self.search(query, mode, limit).results]

    def keys(self) -> bytes:
        """The keys file that a verifier pins."""
        return bytes(self.receipt.ListKeys(receipt_service_pb2.ListKeysRequest(crate_id=self.id)).keys_file)


def timestamp(moment: datetime | None) -> Timestamp | None:
    """A time as messages carry it."""
    if moment is None:
        return None
    made = Timestamp()
    made.FromDatetime(moment)
    return made
