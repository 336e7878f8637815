"""Wiring of query: the only place that picks adapters."""

from __future__ import annotations

from importlib.metadata import version

from affidavit.query.v1 import query_service_pb2_grpc as pb_grpc

from services import topology
from services.kernel.ids import random_id, utc_now
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.query.adapters.answers_log import LogAnswers
from services.query.adapters.citations_grpc import GrpcCitations
from services.query.adapters.crates_log import LogCrateBook
from services.query.adapters.embedder_grpc import GrpcEmbedder
from services.query.adapters.index_grpc import GrpcIndex
from services.query.adapters.originals_grpc import GrpcOriginals
from services.query.adapters.receipts_grpc import GrpcReceipts
from services.query.answering import Answerer
from services.query.codec.digests import engine_digest, policy_digest
from services.query.investigation import Investigator
from services.query.living_answers import LivingEvidenceMaker
from services.query.retrieval import Retriever
from services.query.searching import Searcher
from services.query.servicer import QueryServicer
from services.query.settings import QuerySettings
from services.query.signing import Engine, Notary

_DISTRIBUTION = "affidavit-server"


async def wire(context: Context) -> Role:
    """Put query together.

    Args:
        context: What the node offers.

    Returns:
        The role.
    """
    settings = QuerySettings(data_dir=context.settings.data_dir)
    lane_s, sign_s = settings.query_lane_timeout_s, settings.query_sign_timeout_s
    crates = LogCrateBook(bus=context.bus)
    embedder = GrpcEmbedder(channel=context.channel("embedder"), timeout_s=lane_s)
    index = GrpcIndex(channel=context.channel("index"), timeout_s=lane_s)
    retriever = Retriever(index=index, embedder=embedder, lane_timeout_s=lane_s)
    searcher = Searcher(retriever=retriever, clock=utc_now)
    living = LivingEvidenceMaker(investigator=Investigator(retriever=retriever, index=index), embedder=embedder)
    notary = Notary(
        originals=GrpcOriginals(channel=context.channel("ingest"), timeout_s=sign_s),
        receipts=GrpcReceipts(channel=context.channel("receipt"), timeout_s=sign_s),
        embedder=embedder,
        answers=LogAnswers(bus=context.bus),
        engine=Engine(
            build=version(_DISTRIBUTION),
            incarnation=context.bus.incarnation(topology.KNOWLEDGE),
            policy_digest=policy_digest,
            engine_digest=engine_digest,
        ),
        timeout_s=sign_s,
    )
    answerer = Answerer(
        retriever=retriever,
        embedder=embedder,
        crates=crates,
        living=living,
        citations=GrpcCitations(channel=context.channel("citation"), timeout_s=lane_s),
        notary=notary,
        new_id=random_id,
        clock=utc_now,
    )
    return Role(
        name="query",
        servicers=(
            Servicer(
                name="affidavit.query.v1.QueryService",
                add=pb_grpc.add_QueryServiceServicer_to_server,
                servicer=QueryServicer(crates=crates, searcher=searcher, answerer=answerer),
            ),
        ),
    )
