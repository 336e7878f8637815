"""One crate of a running node, as a test talks to it: through the contracts alone."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from affidavit.citation.v1 import citation_service_pb2_grpc
from affidavit.index.v1 import index_service_pb2, index_service_pb2_grpc
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2
from affidavit.query.v1 import query_service_pb2, query_service_pb2_grpc
from affidavit.receipt.v1 import receipt_service_pb2, receipt_service_pb2_grpc

LEXICAL = settings_pb2.RETRIEVAL_MODE_LEXICAL
SEMANTIC = settings_pb2.RETRIEVAL_MODE_SEMANTIC
HYBRID = settings_pb2.RETRIEVAL_MODE_HYBRID
ANSWERED = query_service_pb2.ANSWER_STATUS_ANSWERED
NO_ANSWER = query_service_pb2.ANSWER_STATUS_NO_ANSWER
_WAIT_S = 60


class Crate:
    """A crate of its own for one test."""

    def __init__(self, *, address: str, crate_id: str, providers: Sequence[settings_pb2.Provider] = ()) -> None:
        channel = grpc.insecure_channel(address)
        self.id = crate_id
        self.ingest = ingest_service_pb2_grpc.IngestServiceStub(channel)
        self.index = index_service_pb2_grpc.IndexServiceStub(channel)
        self.query = query_service_pb2_grpc.QueryServiceStub(channel)
        self.citation = citation_service_pb2_grpc.CitationServiceStub(channel)
        self.receipt = receipt_service_pb2_grpc.ReceiptServiceStub(channel)
        self.ingest.CreateCrate(ingest_service_pb2.CreateCrateRequest(crate_id=crate_id, providers=providers))

    def put(
        self, source_id: str, body: bytes | str, *, media_type: str = "", charset: str = "", job: str = ""
    ) -> ingest_service_pb2.PutDocumentResponse:
        """Put a document and wait until it has a final state."""
        header = ingest_service_pb2.DocumentHeader(
            source_id=source_id, media_type=media_type, charset=charset, job_id=job
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

    def ask(self, question: str) -> query_service_pb2.AskResponse:
        """Ask in mode light."""
        request = query_service_pb2.AskRequest(crate_id=self.id, question=question, mode=settings_pb2.ANSWER_MODE_LIGHT)
        return self.query.Ask(request)

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
