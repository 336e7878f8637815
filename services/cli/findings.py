"""What `doctor` found, and what it finds by asking a running node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import grpc
from affidavit.embedder.v1 import embedder_service_pb2, embedder_service_pb2_grpc
from affidavit.ingest.v1 import ingest_service_pb2, ingest_service_pb2_grpc, settings_pb2

from services.embedded.folder import Endpoints

# A provider elsewhere may take its time; doctor itself must come to an end.
_PROVIDER_S = 30
_ANSWER_S = 10
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong.

    Attributes:
        part: What it is about.
        problem: What was found.
        remedy: What to do.
        fatal: False for a warning.
    """

    part: str
    problem: str
    remedy: str
    fatal: bool = True


def of_crates(endpoints: Endpoints) -> Iterator[Finding]:
    """Look at what the roles of a running node know about their crates.

    Args:
        endpoints: The node's.

    Yields:
        Tasks that were given up, and embedding providers that don't embed.
    """
    with (
        grpc.insecure_channel(endpoints.roles["ingest"]) as ingest_channel,
        grpc.insecure_channel(endpoints.roles["embedder"]) as embedder_channel,
    ):
        ingest = ingest_service_pb2_grpc.IngestServiceStub(ingest_channel)
        embedder = embedder_service_pb2_grpc.EmbedderServiceStub(embedder_channel)
        try:
            crates = ingest.ListCrates(ingest_service_pb2.ListCratesRequest(), timeout=_ANSWER_S).crates
            for crate in crates:
                yield from _failures(ingest, crate.crate_id)
                yield from _provider(embedder, crate)
        except grpc.RpcError as error:
            yield Finding(
                "services", f"the crates can't be listed: {error.details()}", "wait, or look at the node's output"
            )


def _failures(ingest: ingest_service_pb2_grpc.IngestServiceStub, crate_id: str) -> Iterator[Finding]:
    request = ingest_service_pb2.ListFailuresRequest(crate_id=crate_id, page_size=_PAGE, open_only=True)
    failures = ingest.ListFailures(request, timeout=_ANSWER_S).failures
    if not failures:
        return
    newest = failures[0]
    about = newest.source_id or newest.task.document_id or f"position {newest.task.position}"
    more = " or more" if len(failures) == _PAGE else ""
    yield Finding(
        "failures",
        f"crate {crate_id} has {len(failures)}{more} given up, for example {about} by {newest.task.service}: "
        f"{newest.task.reason}",
        f"see them all with `affidavit failures list --open --crate {crate_id}`; remove the cause, then "
        f"`affidavit failures retry {newest.failure_id} --crate {crate_id}`, or ingest the document again, "
        "or drop the failure",
    )


def _provider(
    embedder: embedder_service_pb2_grpc.EmbedderServiceStub, crate: ingest_service_pb2.Crate
) -> Iterator[Finding]:
    # The packaged model has a check of its own.
    if not any(
        provider.role == settings_pb2.PROVIDER_ROLE_EMBEDDING
        and provider.enabled
        and provider.kind != settings_pb2.PROVIDER_KIND_LOCAL_ONNX
        for provider in crate.providers
    ):
        return
    request = embedder_service_pb2.EmbedRequest(
        crate_id=crate.crate_id, purpose=embedder_service_pb2.EMBED_PURPOSE_QUERY, texts=["affidavit doctor"]
    )
    try:
        embedder.Embed(request, timeout=_PROVIDER_S)
    except grpc.RpcError as error:
        yield Finding(
            "embedding provider",
            f"the provider of crate {crate.crate_id} doesn't embed: {error.details()}",
            "mend it or its credential, or give the crate another provider; what waits for it goes on by itself",
        )
