"""Requests about living states, histories, relations and version series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

import grpc
from affidavit.index.v1 import index_service_pb2 as pb
from affidavit.index.v1 import living_pb2 as living_pb

from services.index.codec import living as codec
from services.index.domain import requests
from services.index.domain.living.changes import Known, Report
from services.index.domain.living.graph import Graph
from services.index.domain.living.values import TYPES, RevisionFacts
from services.index.domain.living.versions import order
from services.index.domain.living.walk import Bounds, Reached, walk
from services.index.living import Living
from services.kernel.errors import NotFound, Rejected

MAX_STARTS = 64
MAX_DEPTH = 4
MAX_FAN_OUT = 100
DEFAULT_FAN_OUT = 20
_MOST_REVISIONS = 10_000
_PAGE = 1_000
_ROUNDS = 20

_LAST = (1 << 31) - 1
_V = TypeVar("_V")
_R = TypeVar("_R")
Call = grpc.aio.ServicerContext[Any, Any]


class LivingReader(Protocol):
    """What requests read from the tables; every answer is one snapshot."""

    async def find(self, crate_id: str, source_id: str) -> str:
        """The document that has a source id; empty for none."""

    async def states(  # noqa: PLR0917  (one query)
        self,
        crate_id: str,
        at: int,
        effective_by: datetime | None,
        document_ids: Sequence[str] | None,
        after: tuple[str, int],
        limit: int,
        *,
        every: bool,
    ) -> tuple[int, tuple[Report, ...]]:
        """Read timelines as known at a position, by document id and revision.

        Args:
            crate_id: Crate.
            at: KNOWLEDGE position; 0: everything known.
            effective_by: Only revisions that are effective by then; None: any.
            document_ids: Only these; None: all.
            after: Document id and revision to begin after.
            limit: Most wanted.
            every: Every revision; else the newest of each document.

        Returns:
            The position that was applied, and the timelines.
        """

    async def history(self, crate_id: str, document_id: str) -> tuple[Known, ...]:
        """All timelines of a document, by the position that brought them."""


class LivingAnswers:
    """Answers requests about living states.

    Args:
        living: Relations and series.
        reader: Timelines.
        now: The clock; requests that name no instant mean this one.
    """

    def __init__(
        self, *, living: Living, reader: LivingReader, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._living = living
        self._reader = reader
        self._now = now

    async def state(self, request: pb.GetStateRequest) -> pb.GetStateResponse:
        """See IndexService.GetState."""
        as_of = self._moment(request)
        document_id = await self._document(request.crate_id, request.document_id, request.source_id)
        position, found = await self._reader.states(
            request.crate_id, request.at, None, [document_id], ("", 0), _MOST_REVISIONS, every=True
        )
        _check_at(request.at, position)
        if not found:
            raise NotFound(
                f"document {document_id[:64]!r} of crate {request.crate_id} wasn't known {_then(request.at)}"
            )
        wanted = [one for one in found if request.revision in (0, one.known.revision)]
        if not wanted:
            raise NotFound(
                f"document {document_id} of crate {request.crate_id} had no revision {request.revision} "
                f"{_then(request.at)}: it had {', '.join(str(one.known.revision) for one in found)}"
            )
        told = [message for one in wanted if (message := codec.report(one, as_of))]
        if not told:
            first = min(one.known.timeline.effective_at for one in wanted if one.known.timeline)
            raise NotFound(
                f"document {document_id} of crate {request.crate_id} is effective from {first.isoformat()} on, after "
                f"{as_of.isoformat()}: ask for a later moment"
            )
        message = told[-1]
        name = living_pb.LivingState.Name(message.state).removeprefix("LIVING_STATE_").lower()
        return pb.GetStateResponse(state=name, report=message, position=position)

    async def states(self, request: pb.ListStatesRequest) -> pb.ListStatesResponse:
        """See IndexService.ListStates."""
        as_of = self._moment(request.moment)
        wanted = _told(codec.states, request.states)
        size = request.page_size or requests.DEFAULT_PAGE_SIZE
        ids = tuple(dict.fromkeys(request.document_ids)) or None
        _check("page_size", size, requests.MAX_LIMIT)
        if ids is not None:
            _check("the number of document_ids", len(ids), requests.MAX_LIMIT)
            size = _MOST_REVISIONS
        after = _token(request.page_token)
        found: list[living_pb.StateReport] = []
        more = True
        position = 0
        for _ in range(_ROUNDS):
            limit = _MOST_REVISIONS if ids is not None else _PAGE if wanted else min(_PAGE, size + 1 - len(found))
            position, page = await self._reader.states(
                request.crate_id, request.moment.at, as_of, ids, after, limit, every=request.every_revision
            )
            _check_at(request.moment.at, position)
            more = len(page) == limit
            for one in page:
                message = codec.report(one, as_of)
                if message is not None and (not wanted or codec.states([message.state]) <= wanted):
                    if len(found) == size:
                        return self._page(found, position, after)
                    found.append(message)
                after = (one.known.document_id, _LAST if not request.every_revision else one.known.revision)
            if not more:
                break
        return self._page(found, position, after if more else None)

    @staticmethod
    def _page(
        found: list[living_pb.StateReport], position: int, after: tuple[str, int] | None
    ) -> pb.ListStatesResponse:
        token = f"{after[0]}.{after[1]}" if after else ""
        return pb.ListStatesResponse(states=found, next_page_token=token, position=position)

    async def history(self, request: pb.ListHistoryRequest) -> pb.ListHistoryResponse:
        """See IndexService.ListHistory."""
        document_id = await self._document(request.crate_id, request.document_id, request.source_id)
        found = await self._reader.history(request.crate_id, document_id)
        if not found:
            raise NotFound(
                f"document {document_id[:64]!r} of crate {request.crate_id} isn't known: see `affidavit documents`"
            )
        entries = []
        for known in found:
            entry = pb.HistoryEntry(
                position=known.known_from,
                revision=known.revision,
                timeline=codec.timeline_reports(known),
                erased=known.timeline is None,
            )
            entry.recorded_at.FromDatetime(known.recorded_at)
            entries.append(entry)
        return pb.ListHistoryResponse(entries=entries)

    async def neighbours(self, request: pb.ListNeighboursRequest) -> pb.ListNeighboursResponse:
        """See IndexService.ListNeighbours."""
        starts = tuple(dict.fromkeys(one for one in (request.document_id, *request.document_ids) if one))
        _check("the number of documents", len(starts), MAX_STARTS)
        _check("depth", request.depth or 1, MAX_DEPTH)
        _check("fan_out", request.fan_out or DEFAULT_FAN_OUT, MAX_FAN_OUT)
        unknown = sorted(set(request.types) - set(TYPES))
        if unknown:
            raise Rejected(f"types holds {unknown[0][:64]!r}: give {', '.join(TYPES)}")
        bounds = Bounds(
            depth=request.depth or 1,
            fan_out=request.fan_out or DEFAULT_FAN_OUT,
            types=frozenset(request.types),
            as_of=self._moment(request.moment),
            at=request.moment.at,
        )
        position = await self._position(request.crate_id, request.moment.at)

        def ask(graph: Graph) -> tuple[bool, Reached, dict[str, RevisionFacts]]:
            reached = walk(graph, starts, bounds)
            ends = {end for edge in reached.edges for end in (edge.source, edge.target)}
            named = {end: graph.nodes[end].latest.facts for end in ends if end in graph.nodes}
            return any(one in graph.nodes for one in starts), reached, named

        known, reached, named = await self._living.read(request.crate_id, ask)
        if not known:
            raise NotFound(
                f"document {starts[0][:64]!r} of crate {request.crate_id} isn't known: see `affidavit documents`"
            )
        relations = [codec.relation(edge, named) for edge in reached.edges]
        return pb.ListNeighboursResponse(document_ids=reached.documents, relations=relations, position=position)

    async def families(self, request: pb.ListFamiliesRequest) -> pb.ListFamiliesResponse:
        """See IndexService.ListFamilies."""
        as_of, at = self._moment(request.moment), request.moment.at
        _check("the number of document_ids and families", len(request.document_ids) + len(request.families), MAX_STARTS)
        names = dict.fromkeys(name.casefold() for name in request.families)
        if request.document_ids:
            _, own = await self._reports(request.crate_id, at, as_of, request.document_ids)
            names |= dict.fromkeys(one.family.casefold() for one in own if one.family)
        ids = await self._living.read(
            request.crate_id, lambda graph: {one for name in names for one in graph.family(name)}
        )
        position, found = await self._reports(request.crate_id, at, as_of, ids)
        families = []
        for name in names:
            members = [one for one in found if one.family.casefold() == name]
            if members:
                members.sort(key=lambda one: (order(one.version), one.effective_at.ToNanoseconds(), one.document_id))
                families.append(pb.Family(family=members[-1].family, members=members))
        return pb.ListFamiliesResponse(families=families, position=position)

    async def reports(
        self, crate_id: str, as_of: datetime, at: int, document_ids: Iterable[str]
    ) -> dict[tuple[str, int], living_pb.StateReport]:
        """States of every effective revision of some documents, for those who show chunks of them."""
        _, found = await self._reports(crate_id, at, as_of, document_ids, every=True)
        return {(one.document_id, one.revision): one for one in found}

    async def _reports(
        self, crate_id: str, at: int, as_of: datetime, document_ids: Iterable[str], *, every: bool = False
    ) -> tuple[int, list[living_pb.StateReport]]:
        position, found = await self._reader.states(
            crate_id, at, as_of, sorted(set(document_ids)), ("", 0), _MOST_REVISIONS, every=every
        )
        _check_at(at, position)
        return position, [message for one in found if (message := codec.report(one, as_of))]

    async def _position(self, crate_id: str, at: int) -> int:
        position, _ = await self._reader.states(crate_id, 0, None, [], ("", 0), 1, every=False)
        _check_at(at, position)
        return position

    async def _document(self, crate_id: str, document_id: str, source_id: str) -> str:
        if not (document_id or source_id):
            raise Rejected("neither document_id nor source_id is given: give one of them")
        found = await self._reader.find(crate_id, source_id) if source_id else document_id
        if found and document_id and found != document_id:
            raise Rejected(
                f"source_id {source_id[:80]!r} is not the name of document {document_id[:64]}: give one of them"
            )
        if not found:
            raise NotFound(
                f"no document of crate {crate_id} has the source id {source_id[:80]!r}: see `affidavit documents`"
            )
        return found

    def _moment(self, request: pb.GetStateRequest | living_pb.Moment) -> datetime:
        return _told(lambda message: codec.moment(message, self._now()), request.as_of)


class LivingStateRpcs:
    """The part of affidavit.index.v1.IndexService that is about living states."""

    _states: LivingAnswers

    async def GetState(self, request: pb.GetStateRequest, context: Call) -> pb.GetStateResponse:  # noqa: ARG002, N802  (gRPC's names)
        """Tell the living state of a document at a moment."""
        return await self._states.state(request)

    async def ListStates(self, request: pb.ListStatesRequest, context: Call) -> pb.ListStatesResponse:  # noqa: ARG002, N802  (gRPC's names)
        """List the states of many documents, or of a whole crate, at a moment."""
        return await self._states.states(request)

    async def ListHistory(self, request: pb.ListHistoryRequest, context: Call) -> pb.ListHistoryResponse:  # noqa: ARG002, N802  (gRPC's names)
        """Tell how a document's states came to be known."""
        return await self._states.history(request)

    async def ListNeighbours(self, request: pb.ListNeighboursRequest, context: Call) -> pb.ListNeighboursResponse:  # noqa: ARG002, N802  (gRPC's names)
        """Walk along relations."""
        return await self._states.neighbours(request)

    async def ListFamilies(self, request: pb.ListFamiliesRequest, context: Call) -> pb.ListFamiliesResponse:  # noqa: ARG002, N802  (gRPC's names)
        """List version series in order."""
        return await self._states.families(request)


def _told(read: Callable[[_V], _R], value: _V) -> _R:
    try:
        return read(value)
    except ValueError as error:
        raise Rejected(str(error)) from error


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise Rejected(f"{name} is {value}: give 1 to {most:,}")


def _check_at(at: int, position: int) -> None:
    if at > position:
        raise Rejected(f"at is {at:,}, but only {position:,} is applied: give a position up to that, or wait for it")


def _then(at: int) -> str:
    return f"at position {at:,}" if at else "so far: see `affidavit documents`"


def _token(token: str) -> tuple[str, int]:
    if not token:
        return "", 0
    document_id, dot, revision = token.rpartition(".")
    if not (dot and document_id and revision.isascii() and revision.isdigit() and len(revision) <= 10):
        raise Rejected(f"page_token {token[:64]!r} is none of ours: give the last reply's next_page_token")
    return document_id, int(revision)
