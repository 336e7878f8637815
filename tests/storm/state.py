"""What a node holds, without ids and times that differ between two runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import grpc
import nats
import numpy as np
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import index_service_pb2_grpc as pb_grpc
from affidavit.ingest.v1 import ingest_service_pb2 as ingest_pb
from nats.js import JetStreamContext

from services import topology
from services.embedded.folder import Endpoints
from tests.storm.driver import Driver
from tests.storm.histories import COMMON

_MODEL, _DIMENSION = "hash-384", 384
_ALL = 1000
_CALL_S = 15.0
# What a killed process held is handed out again after the acknowledgement wait of 30 s.
_IDLE_S = 90
_KINDS = {"chunk": pb.RECORD_KIND_CHUNK, "document": pb.RECORD_KIND_DOCUMENT}


@dataclass(frozen=True, slots=True)
class State:
    """What a crate holds.

    Attributes:
        documents: By source id (erased ones by number): status, revisions with hash and chunks, chunk texts with spans.
        lanes: By lane and kind: source id, revision and ordinal of each record, with how often it is there.
        doubled: Facts that stand in the log more than once.
        waiting: Events that consumers still hold or have not seen, by consumer.
    """

    documents: Mapping[str, object]
    lanes: Mapping[str, Mapping[tuple[str, int, int], int]]
    doubled: Sequence[str] = field(default=(), compare=False)
    waiting: Mapping[str, int] = field(default_factory=dict, compare=False)


def read(endpoints: Endpoints, driver: Driver, crate: str) -> State:
    """Read the state of a crate.

    Args:
        endpoints: Where the node's parts are.
        driver: Client of the crate.
        crate: Crate.

    Returns:
        Its state; compares equal for equal histories.
    """
    index = pb_grpc.IndexServiceStub(grpc.insecure_channel(endpoints.roles["index"]))
    documents = driver.documents()
    names = {document.document_id: document.source_id for document in documents}
    doubled, waiting = asyncio.run(_log(endpoints.nats_url, crate))
    return State(
        documents=dict(sorted(_named(documents, [_document(index, driver, crate, one) for one in documents]))),
        lanes=_lanes(index, driver, crate, names),
        doubled=doubled,
        waiting=waiting,
    )


def differences(calm: State, stormy: State) -> list[str]:
    """Lines that say where two states differ; none when they are equal."""
    found = [
        f"document {name}: {calm.documents.get(name)} became {stormy.documents.get(name)}"
        for name in sorted(calm.documents.keys() | stormy.documents.keys())
        if calm.documents.get(name) != stormy.documents.get(name)
    ]
    for lane, records in calm.lanes.items():
        others = stormy.lanes[lane]
        found += [
            f"{lane} {record}: {records.get(record, 0)} times became {others.get(record, 0)}"
            for record in sorted(records.keys() | others.keys())
            if records.get(record, 0) != others.get(record, 0)
        ]
    return found


def _named(documents: Sequence[ingest_pb.Document], values: Sequence[object]) -> Iterator[tuple[str, object]]:
    # An erased document has no name left, and its id differs between two runs.
    erased = sorted(repr(value) for document, value in zip(documents, values, strict=True) if not document.source_id)
    yield from ((f"erased {number}", value) for number, value in enumerate(erased))
    for document, value in zip(documents, values, strict=True):
        if document.source_id:
            yield document.source_id, value


def _document(index: pb_grpc.IndexServiceStub, driver: Driver, crate: str, document: ingest_pb.Document) -> object:
    request = pb.ListChunksRequest(crate_id=crate, document_id=document.document_id, page_size=_ALL)
    searchable = document.status == ingest_pb.DOCUMENT_STATUS_SEARCHABLE
    chunks = driver.insist(partial(index.ListChunks, request, timeout=_CALL_S)).chunks if searchable else ()
    return (
        ingest_pb.DocumentStatus.Name(document.status),
        document.revision,
        tuple(
            (revision.revision, revision.status, revision.superseded_by, revision.chunks, revision.content_hash.hex())
            for revision in document.revisions
        ),
        tuple((chunk.chunk.ordinal, chunk.chunk.text) for chunk in chunks),
    )


def _lanes(
    index: pb_grpc.IndexServiceStub, driver: Driver, crate: str, names: Mapping[str, str]
) -> dict[str, dict[tuple[str, int, int], int]]:
    everywhere = np.full(_DIMENSION, 1 / np.sqrt(_DIMENSION), dtype="<f4").tobytes()
    found = {}
    for kind, number in _KINDS.items():
        wanted = pb.LaneFilter(kind=number)
        words = pb.SearchKeywordRequest(crate_id=crate, query=COMMON, limit=_ALL, filter=wanted)
        vector = pb.SearchVectorRequest(crate_id=crate, vector=everywhere, model_id=_MODEL, limit=_ALL, filter=wanted)
        replies: dict[str, pb.SearchKeywordResponse | pb.SearchVectorResponse] = {
            "keyword": driver.insist(partial(index.SearchKeyword, words, timeout=_CALL_S)),
            "vector": driver.insist(partial(index.SearchVector, vector, timeout=_CALL_S)),
        }
        for lane, reply in replies.items():
            assert len(reply.hits) < _ALL, "more records than one search returns: make the storm smaller"
            found[f"{lane} {kind}"] = dict(
                Counter((names[hit.document_id], hit.revision, hit.ordinal) for hit in reply.hits)
            )
    return found


async def _log(url: str, crate: str) -> tuple[list[str], dict[str, int]]:
    client = await nats.connect(url)
    try:
        js = client.jetstream()
        facts: Counter[str] = Counter()
        for stream in (topology.KNOWLEDGE, topology.SIGNALS):
            last = (await js.stream_info(stream)).state.last_seq
            for position in range(1, last + 1):
                message = await js.get_msg(stream, position, direct=True)
                subject = str(message.subject)
                if subject.split(".")[2] == crate:
                    facts[f"{subject} {(message.headers or {})['ce-id']}"] += 1
        for _ in range(_IDLE_S):
            waiting = await _waiting(js)
            if not waiting:
                break
            await asyncio.sleep(1)
    finally:
        await client.close()
    return [fact for fact, times in facts.items() if times > 1], waiting


async def _waiting(js: JetStreamContext) -> dict[str, int]:
    held = {
        info.name: (info.num_pending or 0) + (info.num_ack_pending or 0)
        for info in await js.consumers_info(topology.KNOWLEDGE)
        if info.config.durable_name
    }
    return {name: count for name, count in held.items() if count}
