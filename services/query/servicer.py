"""Edge 2: gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator

from affidavit.query.v1 import query_service_pb2 as pb
from affidavit.query.v1 import query_service_pb2_grpc as pb_grpc

from services.kernel.errors import Rejected
from services.query.answering import Answerer, Ask
from services.query.codec import incoming, living, outgoing
from services.query.domain.crate import history_problem
from services.query.domain.extractive import pieces
from services.query.domain.living import Moment
from services.query.ports import CrateBook
from services.query.retrieval import Request, check_query, usable_profile
from services.query.searching import Look, Searcher

DEFAULT_LIMIT = 10
MAX_LIMIT = 100


class QueryServicer(pb_grpc.QueryServiceServicer):
    """Search and answers; see the contract."""

    def __init__(self, *, crates: CrateBook, searcher: Searcher, answerer: Answerer) -> None:
        self._crates = crates
        self._searcher = searcher
        self._answerer = answerer

    async def Search(self, request: pb.SearchRequest, context: object) -> pb.SearchResponse:
        """Find records in both lanes."""
        query = check_query(request.query, name="query")
        limit = request.limit or DEFAULT_LIMIT
        if limit > MAX_LIMIT:
            raise Rejected(f"limit {limit} is out of range: choose 1 to {MAX_LIMIT}")
        rules = await self._crates.rules(request.crate_id)
        profile = usable_profile(rules)
        wanted = Request(
            request.crate_id,
            query,
            incoming.retrieval_mode(request.mode) or rules.retrieval_mode,
            incoming.lane_filter(request.filter),
            profile,
            profile.lane_depth,
        )
        look = Look(
            wanted,
            moment=_moment(request),
            reach=living.reach(request.reach),
            limit=limit,
            by_document=request.group_by_document,
        )
        outcome = await self._searcher.search(look)
        return outgoing.search_response(outcome)

    async def Ask(self, request: pb.AskRequest, context: object) -> pb.AskResponse:
        """Answer a question."""
        return outgoing.ask_response(await self._answerer.ask(_ask(request)))

    async def AskStream(self, request: pb.AskStreamRequest, context: object) -> AsyncIterator[pb.AskStreamResponse]:
        """Answer a question sentence by sentence; the whole answer comes last."""
        outcome = await self._answerer.ask(_ask(request.ask))
        for piece in pieces(outcome.text):
            yield outgoing.text_piece(piece)
        yield outgoing.final_piece(outcome)


def _ask(request: pb.AskRequest) -> Ask:
    history = incoming.history(request.history)
    problem = history_problem(history)
    if problem:
        raise Rejected(problem)
    return Ask(
        crate_id=request.crate_id,
        question=request.question,
        mode=incoming.answer_mode(request.mode),
        retrieval_mode=incoming.retrieval_mode(request.retrieval_mode),
        history=history,
        lane_filter=incoming.lane_filter(request.filter),
        source_limit=request.source_limit,
        moment=_moment(request),
        explain=request.explain,
    )


def _moment(request: pb.SearchRequest | pb.AskRequest) -> Moment:
    try:
        return Moment(living.instant(request.as_of) if request.HasField("as_of") else None, request.at)
    except ValueError as error:
        raise Rejected(f"as_of can't be read ({error}): send an instant of the years 1 to 9999") from error
