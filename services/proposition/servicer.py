"""Edge 2: gRPC."""

from __future__ import annotations

from affidavit.proposition.v1 import proposition_events_pb2 as events_pb
from affidavit.proposition.v1 import proposition_service_pb2 as pb
from affidavit.proposition.v1 import proposition_service_pb2_grpc as pb_grpc

from services.kernel.bus import LogReader
from services.kernel.erasures import erased_at
from services.kernel.errors import NotFound, Rejected
from services.kernel.rpc import Call
from services.proposition import codec
from services.proposition.domain.evaluation import Evaluation, Revision
from services.proposition.domain.paging import DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, PageStart, parse_token
from services.proposition.ports import Evaluations

_SERVICE = "proposition"
# Of one page; a chunk alone may be larger.
_MAX_PAGE_CHARS = 4 << 20


class PropositionServicer(pb_grpc.PropositionServiceServicer):
    """Serves affidavit.proposition.v1.PropositionService."""

    def __init__(self, *, log: LogReader, evaluations: Evaluations) -> None:
        self._log = log
        self._evaluations = evaluations

    async def ListPropositions(self, request: pb.ListPropositionsRequest, context: Call) -> pb.ListPropositionsResponse:
        """List what became of a document's chunks, page by page.

        Raises:
            Rejected: When the document isn't named, or page size or token can't be used.
            NotFound: When there is no such document, evaluation or chunk.
            Corrupt: When the evaluations aren't what was written.
            Unavailable: When log or packs don't answer.
        """
        size = request.page_size or DEFAULT_PAGE_SIZE
        if not 1 <= size <= MAX_PAGE_SIZE:
            raise Rejected(f"page_size is {size}: give 1 to {MAX_PAGE_SIZE}, or leave it out for {DEFAULT_PAGE_SIZE}")
        start = _start(request)
        evaluated = await self._evaluated(request, start)
        found = await self._read(request, evaluated)
        if request.HasField("chunk_ordinal"):
            ordinal = request.chunk_ordinal
            if ordinal >= evaluated.chunk_count:
                raise NotFound(
                    f"chunk {ordinal} does not exist: revision {evaluated.revision} of document {request.document_id} "
                    f"has {evaluated.chunk_count} chunks, counted from 0"
                )
            return codec.list_response(evaluated, found[ordinal : ordinal + 1], "")
        end = _end(found, start.ordinal, size)
        more = end < len(found)
        token = PageStart(evaluated.revision, evaluated.generation, end).token if more else ""
        return codec.list_response(evaluated, found[start.ordinal : end], token)

    async def _evaluated(
        self, request: pb.ListPropositionsRequest, start: PageStart
    ) -> events_pb.PropositionsEvaluated:
        """The fact that is listed: of the newest revision, its last one."""
        crate_id, document_id = request.crate_id, request.document_id
        if not document_id:
            raise Rejected("document_id is empty: name the document whose propositions are listed")
        erased = await erased_at(self._log, crate_id, document_id)
        found: events_pb.PropositionsEvaluated | None = None
        async for fact in self._log.facts(
            crate=crate_id, service=_SERVICE, aggregate=document_id, name="PropositionsEvaluated"
        ):
            message = fact.message
            if (
                fact.position > erased
                and isinstance(message, events_pb.PropositionsEvaluated)
                and start.revision in (0, message.revision)
                and start.generation in (0, message.generation)
                and (found is None or message.revision >= found.revision)
            ):
                found = message
        if found is None:
            wanted = f"revision {start.revision} of document" if start.revision else "document"
            raise NotFound(
                f"{wanted} {document_id} of crate {crate_id} has no propositions: see `affidavit failures list` and the "
                "document's status; crates with retrieval_strategy standard have none"
            )
        return found

    async def _read(
        self, request: pb.ListPropositionsRequest, evaluated: events_pb.PropositionsEvaluated
    ) -> tuple[Evaluation, ...]:
        at = codec.pack_of(evaluated)
        if at is None:
            return ()
        revision = Revision(request.crate_id, request.document_id, at.revision)
        return await self._evaluations.read(revision, at.pack_id)


def _start(request: pb.ListPropositionsRequest) -> PageStart:
    if not request.page_token:
        return PageStart(request.revision, request.generation, 0)
    if request.HasField("chunk_ordinal"):
        raise Rejected("page_token and chunk_ordinal don't go together: leave one of them out")
    try:
        start = parse_token(request.page_token)
    except ValueError as error:
        raise Rejected(
            f"page_token {request.page_token[:64]!r} is none of ours: give the last reply's next_page_token"
        ) from error
    if request.revision not in (0, start.revision) or request.generation not in (0, start.generation):
        raise Rejected(
            f"page_token goes on with revision {start.revision} of generation {start.generation}: name the same ones, "
            "or leave page_token out"
        )
    return start


def _end(found: tuple[Evaluation, ...], first: int, size: int) -> int:
    """One behind the last chunk of a page: at least one chunk, and not too much text."""
    chars, end = 0, first
    while end < min(len(found), first + size):
        chars += sum(len(statement.text) for statement in found[end].statements)
        if end > first and chars > _MAX_PAGE_CHARS:
            break
        end += 1
    return end
