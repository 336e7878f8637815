"""What an audit does with a node, through the contracts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import grpc
from affidavit.index.v1 import index_service_pb2, index_service_pb2_grpc, living_pb2
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2
from affidavit.query.v1 import query_service_pb2, query_service_pb2_grpc

from tests.audit.corpus import Corpus, CorpusDocument
from tests.audit.feed import Statement

_UNARY_BYTES = 1024 * 1024
_SENDERS = 16
_LIMIT = 64 * 1024 * 1024
_PAGE = 1000
_APPLIED_TIMEOUT_S = 60
MODES = {
    "lexical": settings_pb2.RETRIEVAL_MODE_LEXICAL,
    "semantic": settings_pb2.RETRIEVAL_MODE_SEMANTIC,
    "hybrid": settings_pb2.RETRIEVAL_MODE_HYBRID,
}
KINDS = {"chunk": index_service_pb2.RECORD_KIND_CHUNK, "document": index_service_pb2.RECORD_KIND_DOCUMENT}
ANSWER_MODES = {
    "light": settings_pb2.ANSWER_MODE_LIGHT,
    "verified": settings_pb2.ANSWER_MODE_VERIFIED,
    "audit": settings_pb2.ANSWER_MODE_AUDIT,
}


class Auditor:
    """One crate of a node under audit.

    Attributes:
        crate: Its id.
        refused: Why documents and relations were refused, by corpus id or edge.
    """

    def __init__(self, *, address: str, crate: str) -> None:
        options = (("grpc.max_receive_message_length", _LIMIT), ("grpc.max_send_message_length", _LIMIT))
        channel = grpc.insecure_channel(address, options=options)
        self.crate = crate
        self.refused: dict[str, str] = {}
        self.ingest = ingest_service_pb2_grpc.IngestServiceStub(channel)
        self.index = index_service_pb2_grpc.IndexServiceStub(channel)
        self.query = query_service_pb2_grpc.QueryServiceStub(channel)
        try:
            self.ingest.CreateCrate(ingest_service_pb2.CreateCrateRequest(crate_id=crate))
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.ABORTED):
                raise

    def configure(self, *, profile: str = "", allow_downgrade: bool | None = None) -> None:
        """Change the crate's settings; what is left out stays.

        Args:
            profile: Name of the profile.
            allow_downgrade: Whether mode verified may fall back to light.
        """
        settings = settings_pb2.CrateSettings()
        if profile:
            settings.profile = profile
        if allow_downgrade is not None:
            settings.allow_downgrade = allow_downgrade
        self.ingest.ConfigureCrate(ingest_service_pb2.ConfigureCrateRequest(crate_id=self.crate, settings=settings))

    def put(self, corpus: Corpus) -> tuple[dict[str, str], float]:
        """Ingest a corpus and wait until all of it can be searched.

        Args:
            corpus: Documents.

        Returns:
            Corpus id by document id, without those that are refused, and the seconds that it took.
        """
        started = time.perf_counter()
        with ThreadPoolExecutor(_SENDERS) as pool:
            replies = list(pool.map(self._accepted, corpus.documents))
        pairs = zip(replies, corpus.documents, strict=True)
        known = {reply.document_id: document.id for reply, document in pairs if reply is not None}
        for _ in self.ingest.WatchProgress(ingest_service_pb2.WatchProgressRequest(crate_id=self.crate)):
            pass
        return known, time.perf_counter() - started

    def declare(self, relations: Sequence[Statement], known: dict[str, str]) -> int:
        """Declare edges, in order, and wait until the index has applied them.

        Args:
            relations: Edges between documents of the corpus.
            known: Corpus id by document id.

        Returns:
            How many were declared; an edge whose ends aren't both in the corpus is left out, and so is a refused one.

        Raises:
            TimeoutError: When all are declared, but the index doesn't get that far.
        """
        documents = {name: document_id for document_id, name in known.items()}
        last, count = 0, 0
        for edge in relations:
            if edge.source not in documents or edge.target not in documents:
                continue
            request = ingest_service_pb2.DeclareRelationRequest(
                crate_id=self.crate,
                source_document_id=documents[edge.source],
                type=edge.type,
                target_document_id=documents[edge.target],
                confidence=edge.confidence,
            )
            if edge.effective_at:
                request.effective_at.FromDatetime(edge.effective_at)
            try:
                last = max(last, self.ingest.DeclareRelation(request).position)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                    raise
                self.refused[f"{edge.source} {edge.type} {edge.target}"] = str(error.details())
                continue
            count += 1
        self._applied(last)
        return count

    def states(self, as_of: datetime | None) -> dict[str, living_pb2.StateReport]:
        """States of all documents at an instant.

        Args:
            as_of: None: now.

        Returns:
            Report by document id; documents that weren't in force yet aren't listed.
        """
        found: dict[str, living_pb2.StateReport] = {}
        request = index_service_pb2.ListStatesRequest(crate_id=self.crate, page_size=_PAGE)
        if as_of:
            request.moment.as_of.FromDatetime(as_of)
        while True:
            page = self.index.ListStates(request)
            found |= {report.document_id: report for report in page.states}
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    def failed(self) -> list[str]:
        """Source ids of documents that did not get in."""
        request = ingest_service_pb2.ListDocumentsRequest(
            crate_id=self.crate, page_size=_PAGE, statuses=[ingest_service_pb2.DOCUMENT_STATUS_FAILED]
        )
        return [document.source_id for document in self.ingest.ListDocuments(request).documents]

    def chunks(self) -> int:
        """Chunks of all documents in force."""
        total, token = 0, ""
        while True:
            page = self.ingest.ListDocuments(
                ingest_service_pb2.ListDocumentsRequest(crate_id=self.crate, page_size=_PAGE, page_token=token)
            )
            total += sum(document.revisions[0].chunks for document in page.documents if document.revisions)
            token = page.next_page_token
            if not token:
                return total

    def search(
        self,
        text: str,
        *,
        mode: str,
        kind: str,
        limit: int = 10,
        reach: living_pb2.Reach.ValueType = living_pb2.REACH_UNSPECIFIED,
        as_of: datetime | None = None,
        at: int = 0,
        within: Sequence[str] = (),
    ) -> list[query_service_pb2.SearchResult]:
        """Search, one result per document.

        Args:
            text: Query.
            mode: Key of MODES.
            kind: Key of KINDS.
            limit: Documents.
            reach: Which revisions.
            as_of: None: now.
            at: Position of the log; 0: everything known.
            within: Document ids to search in; empty: all.

        Returns:
            Results, best first, each document once.
        """
        request = query_service_pb2.SearchRequest(
            crate_id=self.crate,
            query=text,
            limit=limit,
            mode=MODES[mode],
            group_by_document=True,
            filter=index_service_pb2.LaneFilter(kind=KINDS[kind], document_ids=within),
            reach=reach,
            at=at,
        )
        if as_of:
            request.as_of.FromDatetime(as_of)
        return list(self.query.Search(request).results)

    def ask(
        self,
        question: str,
        *,
        mode: str = "light",
        source_limit: int = 0,
        as_of: datetime | None = None,
        explain: bool = False,
    ) -> query_service_pb2.AskResponse:
        """Ask.

        Args:
            question: Question.
            mode: Key of ANSWER_MODES.
            source_limit: 0: the crate's.
            as_of: None: now.
            explain: Whether the candidates are wanted as well.

        Returns:
            The reply.
        """
        request = query_service_pb2.AskRequest(
            crate_id=self.crate,
            question=question,
            mode=ANSWER_MODES[mode],
            source_limit=source_limit,
            explain=explain,
        )
        if as_of:
            request.as_of.FromDatetime(as_of)
        return self.query.Ask(request)

    def position(self) -> int:
        """Position up to which the index has applied the log."""
        request = index_service_pb2.GetWatermarkRequest(crate_id=self.crate)
        return int(self.index.GetWatermark(request).position)

    def _applied(self, position: int) -> None:
        limit = time.monotonic() + _APPLIED_TIMEOUT_S
        while self.position() < position:
            if time.monotonic() > limit:
                raise TimeoutError(f"the index hasn't applied position {position} of {self.crate}: look at its log")
            time.sleep(0.05)

    def _accepted(self, document: CorpusDocument) -> ingest_service_pb2.PutDocumentResponse | None:
        try:
            return self._put(document)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
                raise
            self.refused[document.id] = str(error.details())
            return None

    def _put(self, document: CorpusDocument) -> ingest_service_pb2.PutDocumentResponse:
        header = ingest_service_pb2.DocumentHeader(
            source_id=document.source_id or document.id,
            media_type=document.media_type,
            title=document.title,
            metadata=document.metadata,
            source_domain=document.source_domain,
            uri=document.uri,
        )
        if document.effective_at:
            header.effective_at.FromDatetime(document.effective_at)
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
