"""What an audit does with a node, through the contracts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
from affidavit.index.v1 import index_service_pb2
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2
from affidavit.query.v1 import query_service_pb2, query_service_pb2_grpc

from tests.audit.corpus import Corpus, CorpusDocument

_UNARY_BYTES = 1024 * 1024
_SENDERS = 16
_LIMIT = 64 * 1024 * 1024
MODES = {
    "lexical": settings_pb2.RETRIEVAL_MODE_LEXICAL,
    "semantic": settings_pb2.RETRIEVAL_MODE_SEMANTIC,
    "hybrid": settings_pb2.RETRIEVAL_MODE_HYBRID,
}
KINDS = {"chunk": index_service_pb2.RECORD_KIND_CHUNK, "document": index_service_pb2.RECORD_KIND_DOCUMENT}


class Auditor:
    """One crate of a node under audit."""

    def __init__(self, *, address: str, crate: str) -> None:
        options = (("grpc.max_receive_message_length", _LIMIT), ("grpc.max_send_message_length", _LIMIT))
        channel = grpc.insecure_channel(address, options=options)
        self.crate = crate
        self.ingest = ingest_service_pb2_grpc.IngestServiceStub(channel)
        self.query = query_service_pb2_grpc.QueryServiceStub(channel)
        try:
            self.ingest.CreateCrate(ingest_service_pb2.CreateCrateRequest(crate_id=crate))
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.ABORTED):
                raise

    def put(self, corpus: Corpus) -> tuple[dict[str, str], float]:
        """Ingest a corpus and wait until all of it can be searched.

        Args:
            corpus: Documents.

        Returns:
            Corpus id by document id, and the seconds that it took.
        """
        started = time.perf_counter()
        with ThreadPoolExecutor(_SENDERS) as pool:
            replies = list(pool.map(self._put, corpus.documents))
        known = {reply.document_id: document.id for reply, document in zip(replies, corpus.documents, strict=True)}
        for _ in self.ingest.WatchProgress(ingest_service_pb2.WatchProgressRequest(crate_id=self.crate)):
            pass
        return known, time.perf_counter() - started

    def failed(self) -> list[str]:
        """Source ids of documents that did not get in."""
        request = ingest_service_pb2.ListDocumentsRequest(
            crate_id=self.crate, page_size=1000, statuses=[ingest_service_pb2.DOCUMENT_STATUS_FAILED]
        )
        return [document.source_id for document in self.ingest.ListDocuments(request).documents]

    def chunks(self) -> int:
        """Chunks of all documents in force."""
        total, token = 0, ""
        while True:
            page = self.ingest.ListDocuments(
                ingest_service_pb2.ListDocumentsRequest(crate_id=self.crate, page_size=1000, page_token=token)
            )
            total += sum(document.revisions[0].chunks for document in page.documents if document.revisions)
            token = page.next_page_token
            if not token:
                return total

    def search(self, text: str, *, mode: str, kind: str, limit: int = 10) -> list[str]:
        """Document ids, best first, each once."""
        request = query_service_pb2.SearchRequest(
            crate_id=self.crate,
            query=text,
            limit=limit,
            mode=MODES[mode],
            group_by_document=True,
            filter=index_service_pb2.LaneFilter(kind=KINDS[kind]),
        )
        return [result.document_id for result in self.query.Search(request).results]

    def ask(self, question: str) -> query_service_pb2.AskResponse:
        """Ask in mode light."""
        request = query_service_pb2.AskRequest(
            crate_id=self.crate, question=question, mode=settings_pb2.ANSWER_MODE_LIGHT
        )
        return self.query.Ask(request)

    def _put(self, document: CorpusDocument) -> ingest_service_pb2.PutDocumentResponse:
        header = ingest_service_pb2.DocumentHeader(
            source_id=document.id, media_type=document.media_type, title=document.title
        )
        if len(document.body) <= _UNARY_BYTES:
            request = ingest_service_pb2.PutDocumentRequest(crate_id=self.crate, header=header, body=document.body)
            return self.ingest.PutDocument(request)
        return self.ingest.UploadDocument(_pieces(self.crate, header, document.body)).result


def _pieces(
    crate: str, header: ingest_service_pb2.DocumentHeader, body: bytes
) -> Iterator[ingest_service_pb2.UploadDocumentRequest]:
    yield ingest_service_pb2.UploadDocumentRequest(crate_id=crate, header=header)
    for at in range(0, len(body), _UNARY_BYTES):
        yield ingest_service_pb2.UploadDocumentRequest(crate_id=crate, body=body[at : at + _UNARY_BYTES])
