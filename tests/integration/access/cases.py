"""One case for every RPC: the role that it needs, and a request that names everything of a crate that it can name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from affidavit.chunker.v1 import chunker_service_pb2 as chunker
from affidavit.citation.v1 import citation_service_pb2 as citation
from affidavit.embedder.v1 import embedder_service_pb2 as embedder
from affidavit.index.v1 import index_service_pb2 as index
from affidavit.ingest.v1 import ingest_service_pb2 as ingest
from affidavit.ingest.v1 import settings_pb2
from affidavit.proposition.v1 import proposition_service_pb2 as proposition
from affidavit.query.v1 import query_service_pb2 as query
from affidavit.receipt.v1 import receipt_service_pb2 as receipt
from google.protobuf.message import Message

READER, WRITER, OWNER = "reader", "writer", "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Things:
    """What a crate holds, by name; none of it means anything in another crate."""

    crate: str
    document: str
    source: str
    job: str
    receipt: str
    answer: str
    failure: int


Requests: TypeAlias = Callable[[Things], list[Message]]


@dataclass(frozen=True, slots=True)
class Case:
    """One RPC.

    Attributes:
        role: Least role that may call it.
        requests: The messages of a call about everything in `Things`.
    """

    role: str
    requests: Requests


# Fields that name a thing of a crate; every field that ends so must be listed here or below.
NAMES = frozenset(
    {
        "document_id",
        "document_ids",
        "source_document_id",
        "target_document_id",
        "source_source_id",
        "target_source_id",
        "source_id",
        "job_id",
        "receipt_id",
        "answer_id",
        "failure_id",
    }
)
# Names of models and of things outside.
NO_NAMES = frozenset({"crate_id", "model_id", "llm_request_id"})

_SETTINGS = settings_pb2.CrateSettings(source_limit=8)
_VECTOR = b"\0\0\x80\x3f" + bytes(383 * 4)


def _one(role: str, make: Callable[[Things], Message]) -> Case:
    return Case(role, lambda of: [make(of)])


def _upload(of: Things) -> list[Message]:
    header = ingest.DocumentHeader(source_id=of.source, media_type="text/plain", job_id=of.job)
    return [
        ingest.UploadDocumentRequest(crate_id=of.crate, header=header),
        ingest.UploadDocumentRequest(crate_id=of.crate, body=b"new text"),
    ]


def _repair_stream(of: Things) -> list[Message]:
    start = citation.RepairRequest(crate_id=of.crate, answer_id=of.answer, source_count=1)
    return [citation.RepairStreamRequest(start=start), citation.RepairStreamRequest(text="It is so [1].")]


def _header(of: Things) -> ingest.DocumentHeader:
    return ingest.DocumentHeader(source_id=of.source, media_type="text/plain", job_id=of.job)


def _filter(of: Things) -> index.LaneFilter:
    return index.LaneFilter(document_ids=[of.document])


def _ask(of: Things) -> query.AskRequest:
    return query.AskRequest(crate_id=of.crate, question="Where is the harbour?", filter=_filter(of))


def _issue(of: Things) -> receipt.IssueReceiptRequest:
    return receipt.IssueReceiptRequest(
        crate_id=of.crate,
        answer_id=of.answer,
        question="Where?",
        answer_text="Here [1].",
        evidence=[receipt.Evidence(document_id=of.document, revision=1, byte_end=4, content=b"Here")],
        candidates=[receipt.Candidate(document_id=of.document, revision=1)],
        position=1,
        incarnation=bytes(16),
        policy_digest=bytes(32),
        engine_digest=bytes(32),
        mode_requested="light",
        mode_applied="light",
    )


_INGEST = {
    "CreateCrate": _one(OWNER, lambda of: ingest.CreateCrateRequest(crate_id=of.crate)),
    "GetCrate": _one(READER, lambda of: ingest.GetCrateRequest(crate_id=of.crate)),
    "ListCrates": _one(READER, lambda _: ingest.ListCratesRequest()),
    "ConfigureCrate": _one(OWNER, lambda of: ingest.ConfigureCrateRequest(crate_id=of.crate, settings=_SETTINGS)),
    "PutProvider": _one(
        OWNER,
        lambda of: ingest.PutProviderRequest(
            crate_id=of.crate,
            provider=settings_pb2.Provider(
                role=settings_pb2.PROVIDER_ROLE_EMBEDDING, kind=settings_pb2.PROVIDER_KIND_LOCAL_ONNX, enabled=True
            ),
        ),
    ),
    "PutDocument": _one(
        WRITER, lambda of: ingest.PutDocumentRequest(crate_id=of.crate, header=_header(of), body=b"text")
    ),
    "UploadDocument": Case(WRITER, _upload),
    "GetDocument": _one(READER, lambda of: ingest.GetDocumentRequest(crate_id=of.crate, document_id=of.document)),
    "ListDocuments": _one(READER, lambda of: ingest.ListDocumentsRequest(crate_id=of.crate, job_id=of.job)),
    "ReadDocument": _one(READER, lambda of: ingest.ReadDocumentRequest(crate_id=of.crate, document_id=of.document)),
    "RetireDocument": _one(WRITER, lambda of: ingest.RetireDocumentRequest(crate_id=of.crate, document_id=of.document)),
    "EraseDocument": _one(OWNER, lambda of: ingest.EraseDocumentRequest(crate_id=of.crate, document_id=of.document)),
    "GetErasure": _one(READER, lambda of: ingest.GetErasureRequest(crate_id=of.crate, document_id=of.document)),
    "DeclareRelation": _one(
        WRITER,
        lambda of: ingest.DeclareRelationRequest(
            crate_id=of.crate, source_source_id=of.source, type="supersedes", target_document_id=of.document
        ),
    ),
    "PutJob": _one(WRITER, lambda of: ingest.PutJobRequest(crate_id=of.crate, job=ingest.Job(job_id=of.job))),
    "ListJobs": _one(READER, lambda of: ingest.ListJobsRequest(crate_id=of.crate)),
    "WatchProgress": _one(
        READER, lambda of: ingest.WatchProgressRequest(crate_id=of.crate, job_id=of.job, document_ids=[of.document])
    ),
    "RetryFailure": _one(WRITER, lambda of: ingest.RetryFailureRequest(crate_id=of.crate, failure_id=of.failure)),
    "DropFailure": _one(WRITER, lambda of: ingest.DropFailureRequest(crate_id=of.crate, failure_id=of.failure)),
    "ListFailures": _one(READER, lambda of: ingest.ListFailuresRequest(crate_id=of.crate)),
}
_INDEX = {
    "SearchKeyword": _one(
        READER,
        lambda of: index.SearchKeywordRequest(crate_id=of.crate, query="harbour", limit=5, filter=_filter(of)),
    ),
    "SearchVector": _one(
        READER,
        lambda of: index.SearchVectorRequest(
            crate_id=of.crate, vector=_VECTOR, model_id="hash-384", limit=5, filter=_filter(of)
        ),
    ),
    "FetchChunks": _one(
        READER,
        lambda of: index.FetchChunksRequest(
            crate_id=of.crate, keys=[index.ChunkKey(document_id=of.document, revision=1)]
        ),
    ),
    "ListChunks": _one(READER, lambda of: index.ListChunksRequest(crate_id=of.crate, document_id=of.document)),
    "GetWatermark": _one(READER, lambda of: index.GetWatermarkRequest(crate_id=of.crate)),
    "GetErasure": _one(READER, lambda of: index.GetErasureRequest(crate_id=of.crate, document_id=of.document)),
    "ListGenerations": _one(READER, lambda of: index.ListGenerationsRequest(crate_id=of.crate)),
    "Rebuild": _one(OWNER, lambda of: index.RebuildRequest(crate_id=of.crate)),
    "ListNeighbours": _one(
        READER,
        lambda of: index.ListNeighboursRequest(crate_id=of.crate, document_id=of.document, document_ids=[of.document]),
    ),
    "GetState": _one(
        READER,
        lambda of: index.GetStateRequest(crate_id=of.crate, document_id=of.document, source_id=of.source),
    ),
    "ListStates": _one(READER, lambda of: index.ListStatesRequest(crate_id=of.crate, document_ids=[of.document])),
    "ListHistory": _one(
        READER,
        lambda of: index.ListHistoryRequest(crate_id=of.crate, document_id=of.document, source_id=of.source),
    ),
    "ListFamilies": _one(READER, lambda of: index.ListFamiliesRequest(crate_id=of.crate, document_ids=[of.document])),
}
_RECEIPT = {
    "IssueReceipt": _one(WRITER, _issue),
    "GetReceipt": _one(READER, lambda of: receipt.GetReceiptRequest(crate_id=of.crate, receipt_id=of.receipt)),
    "GetErasure": _one(READER, lambda of: receipt.GetErasureRequest(crate_id=of.crate, document_id=of.document)),
    "VerifyReceipt": _one(READER, lambda of: receipt.VerifyReceiptRequest(crate_id=of.crate, bundle=b"x")),
    "ListKeys": _one(READER, lambda of: receipt.ListKeysRequest(crate_id=of.crate)),
    "ProveReceipt": _one(READER, lambda of: receipt.ProveReceiptRequest(crate_id=of.crate, receipt_id=of.receipt)),
    "GetCheckpoint": _one(READER, lambda of: receipt.GetCheckpointRequest(crate_id=of.crate)),
    "WatchReceipts": _one(READER, lambda of: receipt.WatchReceiptsRequest(crate_id=of.crate)),
}
_OTHERS = {
    "ChunkerService/Preview": _one(READER, lambda of: chunker.PreviewRequest(crate_id=of.crate)),
    "PropositionService/ListPropositions": _one(
        READER, lambda of: proposition.ListPropositionsRequest(crate_id=of.crate, document_id=of.document)
    ),
    "EmbedderService/Embed": _one(
        READER,
        lambda of: embedder.EmbedRequest(
            crate_id=of.crate, purpose=embedder.EMBED_PURPOSE_QUERY, texts=["the harbour"]
        ),
    ),
    "EmbedderService/Rerank": _one(
        READER, lambda of: embedder.RerankRequest(crate_id=of.crate, query="harbour", texts=["the harbour"])
    ),
    "EmbedderService/ListModels": _one(READER, lambda of: embedder.ListModelsRequest(crate_id=of.crate)),
    "QueryService/Search": _one(
        READER, lambda of: query.SearchRequest(crate_id=of.crate, query="harbour", filter=_filter(of))
    ),
    "QueryService/Ask": _one(READER, _ask),
    "QueryService/AskStream": _one(READER, lambda of: query.AskStreamRequest(ask=_ask(of))),
    "CitationService/Repair": _one(
        READER,
        lambda of: citation.RepairRequest(
            crate_id=of.crate, answer_id=of.answer, raw_text="It is so [1].", source_count=1
        ),
    ),
    "CitationService/RepairStream": Case(READER, _repair_stream),
    "CitationService/Replay": _one(OWNER, lambda of: citation.ReplayRequest(crate_id=of.crate)),
}
CASES: dict[str, Case] = {
    **{f"IngestService/{name}": case for name, case in _INGEST.items()},
    **{f"IndexService/{name}": case for name, case in _INDEX.items()},
    **{f"ReceiptService/{name}": case for name, case in _RECEIPT.items()},
    **_OTHERS,
}
# The one RPC that names no crate is granted over all crates or not at all.
UNSCOPED = "IngestService/ListCrates"
