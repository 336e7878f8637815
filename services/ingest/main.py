"""Wiring of ingest: the only place that picks adapters."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from functools import partial

from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc

from services import topology
from services.ingest.adapters.preparer_process import ProcessPreparer
from services.ingest.adapters.schema_postgres import CONTENT, MIGRATIONS, TABLES
from services.ingest.adapters.sources_packs import PackSources
from services.ingest.adapters.submit_faststream import SubmitSubject
from services.ingest.adapters.tables_postgres import PostgresTables
from services.ingest.codec.facts import KNOWLEDGE_EVENTS, SIGNAL_EVENTS
from services.ingest.commands.clock import Clock
from services.ingest.commands.crates import Crates
from services.ingest.commands.documents import Documents
from services.ingest.commands.failures import Failures
from services.ingest.commands.log import Journal
from services.ingest.commands.quotas import Limits, Quotas
from services.ingest.commands.relations import Relations
from services.ingest.domain.providers import ProviderPolicy
from services.ingest.domain.values import UnderWay
from services.ingest.handlers import DOCUMENTS, INDEXED, Projections, Submissions
from services.ingest.servicer import IngestServicer
from services.ingest.settings import IngestSettings
from services.kernel import retries
from services.kernel.bus import LogReader
from services.kernel.db import Database
from services.kernel.failures import LoggedFailures
from services.kernel.ids import utc_now
from services.kernel.progress import Listener
from services.kernel.projections import Projection
from services.kernel.replay import ReplayContext, Replica
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.scrub import Erasure, Scrubber

_CONNECTIONS = 8
_STREAMS = {DOCUMENTS: topology.KNOWLEDGE, INDEXED: topology.SIGNALS}


async def wire(context: Context) -> Role:
    """Put ingest together.

    Args:
        context: What the node offers.

    Returns:
        The role.
    """
    settings = IngestSettings(data_dir=context.settings.data_dir)
    database = await context.database(MIGRATIONS, max_connections=_CONNECTIONS)
    tables = _tables(database, context.bus)
    sources = PackSources(packs=context.packs)
    journal = Journal(log=context.bus, applied=lambda position: context.applied(DOCUMENTS, position))
    preparer, quotas = _preparer(settings), _quotas(tables, settings)
    documents = Documents(
        journal=journal, tables=tables, sources=sources, preparer=preparer, clock=utc_now, quotas=quotas
    )
    relations = Relations(journal=journal, tables=tables, documents=documents, quotas=quotas, clock=utc_now)
    scrubber = _scrubber(database, tables, sources, context.bus)
    embedding = Listener("embedder")
    servicer = IngestServicer(
        crates=_crates(settings, journal, sources),
        documents=documents,
        relations=relations,
        failures=Failures(journal=journal, tables=tables, sources=sources, clock=utc_now),
        tables=tables,
        sources=sources,
        scrubber=scrubber,
        under_way=lambda crate_id: _under_way(embedding, crate_id),
        uploads_in_flight=settings.uploads_in_flight,
    )
    projections = Projections(
        tables=tables,
        sources=sources,
        log=context.bus,
        handed_over=partial(retries.handed_over, context.bus, LoggedFailures(bus=context.bus)),
        erased=scrubber.wake,
    )
    add = pb_grpc.add_IngestServiceServicer_to_server
    submit = _submissions(context, documents, relations, settings)
    clock = Clock(log=context.bus, tables=tables, interval_s=settings.clock_interval_s, clock=utc_now)
    return Role(
        name="ingest",
        servicers=(Servicer("affidavit.ingest.v1.IngestService", add, servicer),),
        projections=_projections(tables, projections),
        background=(submit.run, scrubber.run, clock.run, lambda: embedding.run(context.bus)),
        checks={"publishers' subject": submit.problem},
        close=(preparer.close,),
    )


def _quotas(tables: PostgresTables, settings: IngestSettings) -> Quotas:
    limits = Limits(
        documents=settings.crate_documents,
        size_bytes=settings.crate_bytes,
        puts_in_flight=settings.crate_puts_in_flight,
        turns=settings.puts_in_flight,
    )
    return Quotas(tables=tables, limits=limits, clock=time.monotonic)


async def replica(context: ReplayContext) -> Replica:
    """Put ingest's projections together once more, into other tables.

    Args:
        context: What a replay offers.

    Returns:
        The projections, and what is compared.
    """
    tables = _tables(await context.database(MIGRATIONS), context.log)
    projections = Projections(
        tables=tables,
        sources=PackSources(packs=context.packs),
        log=context.log,
        handed_over=partial(retries.handed_over, context.log, context.failures),
    )
    return Replica(name="ingest", projections=_projections(tables, projections), tables=TABLES)


def _tables(database: Database, log: LogReader) -> PostgresTables:
    incarnations = {name: log.incarnation(stream) for name, stream in _STREAMS.items()}
    return PostgresTables(database=database, incarnations=incarnations)


def _crates(settings: IngestSettings, journal: Journal, sources: PackSources) -> Crates:
    return Crates(journal=journal, sources=sources, policy=_policy(settings), clock=utc_now, random=secrets.token_bytes)


def _preparer(settings: IngestSettings) -> ProcessPreparer:
    return ProcessPreparer(
        thread_above_bytes=settings.thread_above_bytes,
        process_above_bytes=settings.process_above_bytes,
        recycle_above_bytes=settings.recycle_above_bytes,
    )


def _submissions(
    context: Context, documents: Documents, relations: Relations, settings: IngestSettings
) -> SubmitSubject:
    answer = Submissions(documents=documents, relations=relations, admit=context.admit, clock=utc_now).answer
    return SubmitSubject(url=context.bus.url, answer=answer, concurrency=settings.puts_in_flight)


def _scrubber(database: Database, tables: PostgresTables, sources: PackSources, log: LogReader) -> Scrubber:
    async def packs(erasures: Sequence[Erasure]) -> None:
        # A step that was at work during the erasure may have written one since.
        for erasure in erasures:
            await sources.erase(erasure.crate, erasure.document_id, erasure.revision, whole=False)

    return Scrubber(
        database=database, tables=CONTENT, position=lambda: tables.position(DOCUMENTS), before=packs, log=log
    )


def _projections(tables: PostgresTables, projections: Projections) -> tuple[Projection, ...]:
    return (
        Projection(
            name=DOCUMENTS,
            events=KNOWLEDGE_EVENTS,
            stream=_STREAMS[DOCUMENTS],
            apply=projections.documents,
            position=lambda: tables.position(DOCUMENTS),
        ),
        Projection(
            name=INDEXED,
            events=SIGNAL_EVENTS,
            stream=_STREAMS[INDEXED],
            apply=projections.indexed,
            position=lambda: tables.position(INDEXED),
        ),
    )


def _under_way(embedding: Listener, crate_id: str) -> list[UnderWay]:
    return [UnderWay(told.aggregate, told.task, told.done) for told in embedding.of(crate_id).values()]


def _policy(settings: IngestSettings) -> ProviderPolicy:
    return ProviderPolicy(
        allow_loopback=settings.allow_loopback_providers,
        allow_private=settings.allow_private_providers,
        packaged_model=settings.packaged_model,
        packaged_dimension=settings.packaged_dimension,
        check_credential=settings.credentials.problem,
    )
