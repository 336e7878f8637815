"""Edge 2: gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1 import ingest_service_pb2_grpc as pb_grpc

from services.ingest.codec import configuration, replies, requests
from services.ingest.commands.crates import Crates
from services.ingest.commands.documents import Documents
from services.ingest.commands.failures import Failures
from services.ingest.commands.outcomes import outcomes
from services.ingest.commands.relations import Relations
from services.ingest.domain.headers import Header
from services.ingest.domain.relations import RelationOutcome
from services.ingest.domain.values import DocumentView, SourceAddress, UnderWay
from services.ingest.ports import Sources, Tables
from services.kernel.errors import Corrupt, NotFound, Rejected, Unavailable
from services.kernel.scrub import Scrubber
from services.kernel.turns import FairTurns

MAX_PUT_BYTES: Final = 1024 * 1024
MAX_PIECE_BYTES: Final = 1024 * 1024
MAX_UPLOAD_BYTES: Final = 256 * 1024 * 1024
PIECE_BYTES: Final = 256 * 1024
POLL_S: Final = 0.2


class IngestServicer(pb_grpc.IngestServiceServicer):
    """Crates, jobs, documents and their progress; see the contract."""

    def __init__(
        self,
        *,
        crates: Crates,
        documents: Documents,
        relations: Relations,
        failures: Failures,
        tables: Tables,
        sources: Sources,
        scrubber: Scrubber,
        under_way: Callable[[str], Sequence[UnderWay]],
        uploads_in_flight: int,
    ) -> None:
        """Keep what the calls need.

        Args:
            crates: Commands on crates.
            documents: Commands on documents.
            relations: Commands on relations.
            failures: Commands on failures.
            tables: Projected rows.
            sources: Packs.
            scrubber: Rewrites what erasures left on disk.
            under_way: What is told of a crate's documents that are being embedded.
            uploads_in_flight: Uploads in work at once, each of which holds its body in memory.
        """
        self._crates = crates
        self._documents = documents
        self._relations = relations
        self._failures = failures
        self._tables = tables
        self._sources = sources
        self._scrubber = scrubber
        self._under_way = under_way
        # A crate that sends slowly holds up itself.
        self._uploads = FairTurns(total=uploads_in_flight, per_crate=max(1, uploads_in_flight // 2))

    async def CreateCrate(self, request: pb.CreateCrateRequest, context: object) -> pb.CreateCrateResponse:
        """Create a crate."""
        with outcomes():
            patch = configuration.settings_patch(request.settings)
            wanted = configuration.providers(request.providers)
        position = await self._crates.create(request.crate_id, patch, wanted)
        return pb.CreateCrateResponse(crate=await self._crate(request.crate_id), position=position)

    async def GetCrate(self, request: pb.GetCrateRequest, context: object) -> pb.GetCrateResponse:
        """Read a crate."""
        return pb.GetCrateResponse(crate=await self._crate(request.crate_id))

    async def ListCrates(self, request: pb.ListCratesRequest, context: object) -> pb.ListCratesResponse:
        """List all crates."""
        return pb.ListCratesResponse(crates=[replies.crate(view) for view in await self._tables.crates()])

    async def ConfigureCrate(self, request: pb.ConfigureCrateRequest, context: object) -> pb.ConfigureCrateResponse:
        """Change settings of a crate."""
        with outcomes():
            patch = configuration.settings_patch(request.settings)
        position = await self._crates.configure(request.crate_id, patch)
        return pb.ConfigureCrateResponse(crate=await self._crate(request.crate_id), position=position)

    async def PutProvider(self, request: pb.PutProviderRequest, context: object) -> pb.PutProviderResponse:
        """Set the provider of a role."""
        with outcomes():
            wanted = configuration.provider(request.provider)
        position = await self._crates.put_provider(request.crate_id, wanted)
        return pb.PutProviderResponse(crate=await self._crate(request.crate_id), position=position)

    async def PutDocument(self, request: pb.PutDocumentRequest, context: object) -> pb.PutDocumentResponse:
        """Record a document of up to 1 MiB."""
        if len(request.body) > MAX_PUT_BYTES:
            raise Rejected(
                f"the body of {request.header.source_id[:80]!r} has {len(request.body)} bytes: PutDocument takes at "
                f"most {MAX_PUT_BYTES}, send it with UploadDocument"
            )
        return await self._put(request.crate_id, _header(request.header), request.body)

    async def UploadDocument(
        self, pieces: AsyncIterator[pb.UploadDocumentRequest], context: object
    ) -> pb.UploadDocumentResponse:
        """Record a document that comes in pieces."""
        first = await anext(aiter(pieces), None)
        if first is None:
            raise Rejected("the upload is empty: send a header, then the body in pieces")
        async with self._uploads.of(first.crate_id):
            body = await _receive(first, pieces)
            result = await self._put(first.crate_id, _header(first.header), body)
        return pb.UploadDocumentResponse(result=result)

    async def GetDocument(self, request: pb.GetDocumentRequest, context: object) -> pb.GetDocumentResponse:
        """Read a document with all its revisions."""
        view = await self._view(request.crate_id, request.document_id, request.source_id)
        return pb.GetDocumentResponse(document=replies.document(view))

    async def ListDocuments(self, request: pb.ListDocumentsRequest, context: object) -> pb.ListDocumentsResponse:
        """List documents by source id, each with its current revision."""
        with outcomes():
            page = requests.page(request.page_size, request.page_token, width=2)
            statuses = requests.statuses(request)
            job_id = requests.job_filter(request.job_id)
        await self._check_named(request.crate_id, job_id)
        views, after = await self._tables.documents(request.crate_id, page, statuses, job_id)
        return pb.ListDocumentsResponse(
            documents=[replies.document(view) for view in views], next_page_token=requests.page_token(after)
        )

    async def ReadDocument(
        self, request: pb.ReadDocumentRequest, context: object
    ) -> AsyncIterator[pb.ReadDocumentResponse]:
        """Read the original bytes of a revision."""
        view = await self._view(request.crate_id, request.document_id, "")
        wanted = request.revision or view.revision
        found = [revision for revision in view.revisions if revision.revision == wanted]
        if not found:
            raise NotFound(
                f"document {view.document_id} has no revision {wanted} that can be read: it has {view.revision} "
                f"and is {view.status}"
            )
        address = SourceAddress(request.crate_id, view.document_id, wanted)
        try:
            body = await self._sources.raw(address, found[0].source)
        except (NotFound, Corrupt) as error:
            await self._failures.report(request.crate_id, view, found[0], error)
            raise
        for start in range(0, max(len(body), 1), PIECE_BYTES):
            yield pb.ReadDocumentResponse(body=body[start : start + PIECE_BYTES])

    async def RetireDocument(self, request: pb.RetireDocumentRequest, context: object) -> pb.RetireDocumentResponse:
        """Put a document out of force."""
        document_id = await self._identify(request.crate_id, request.document_id, request.source_id)
        name = request.source_id or request.document_id
        result = await self._documents.retire(request.crate_id, document_id, name)
        return pb.RetireDocumentResponse(document_id=document_id, position=result.position, unchanged=result.unchanged)

    async def EraseDocument(self, request: pb.EraseDocumentRequest, context: object) -> pb.EraseDocumentResponse:
        """Delete all content of a document for good."""
        document_id = await self._identify(request.crate_id, request.document_id, request.source_id)
        name = request.source_id or request.document_id
        result = await self._documents.erase(request.crate_id, document_id, name)
        return pb.EraseDocumentResponse(document_id=document_id, position=result.position, unchanged=result.unchanged)

    async def GetErasure(self, request: pb.GetErasureRequest, context: object) -> pb.GetErasureResponse:
        """Tell whether an erased document's content is off the disk."""
        found = await self._scrubber.standing(request.crate_id, request.document_id, request.position)
        return pb.GetErasureResponse(gone=found.gone, waiting=found.waiting, problem=found.problem)

    async def DeclareRelation(self, request: pb.DeclareRelationRequest, context: object) -> pb.DeclareRelationResponse:
        """Record a statement about a relation."""
        with outcomes():
            statement = requests.statement(request)
        result = await self._relations.declare(request.crate_id, statement)
        return pb.DeclareRelationResponse(
            position=result.position,
            unchanged=result.outcome == RelationOutcome.UNCHANGED,
            source_document_id=result.source,
            target_document_id=result.target,
        )

    async def PutJob(self, request: pb.PutJobRequest, context: object) -> pb.PutJobResponse:
        """Create a job or change its chunk settings."""
        patch = configuration.chunk_patch(request.job.chunking)
        job, notices = await self._crates.put_job(request.crate_id, request.job.job_id, patch)
        for row in await self._tables.jobs(request.crate_id):
            if row.job_id == job.job_id:
                job = row
        return pb.PutJobResponse(job=replies.job(job), notices=notices)

    async def ListJobs(self, request: pb.ListJobsRequest, context: object) -> pb.ListJobsResponse:
        """List the jobs of a crate."""
        return pb.ListJobsResponse(jobs=[replies.job(row) for row in await self._tables.jobs(request.crate_id)])

    async def WatchProgress(
        self, request: pb.WatchProgressRequest, context: object
    ) -> AsyncIterator[pb.WatchProgressResponse]:
        """Send the counts whenever they change, until nothing of the selection is pending."""
        with outcomes():
            selection = requests.selection(request)
        await self._check_named(request.crate_id, selection.job_id, selection.document_ids)
        sent = None
        clock = asyncio.get_running_loop().time
        while True:
            started = clock()
            counts = await self._tables.counts(selection, self._under_way(request.crate_id))
            if counts != sent:
                yield replies.progress(counts)
                sent = counts
            if not counts.pending:
                return
            # Counting a large crate may take a while; watching it must not become the main work.
            await asyncio.sleep(max(POLL_S, 5 * (clock() - started)))

    async def ListFailures(self, request: pb.ListFailuresRequest, context: object) -> pb.ListFailuresResponse:
        """List failures, newest first."""
        with outcomes():
            page = requests.failures_page(request)
        views, after = await self._tables.failures(request.crate_id, page, open_only=request.open_only)
        return pb.ListFailuresResponse(
            failures=[replies.failure(view) for view in views], next_page_token=requests.page_token(after)
        )

    async def RetryFailure(self, request: pb.RetryFailureRequest, context: object) -> pb.RetryFailureResponse:
        """Hand a task that was given up to its role again."""
        result = await self._failures.retry(request.crate_id, request.failure_id)
        return pb.RetryFailureResponse(position=result.position, unchanged=result.unchanged)

    async def DropFailure(self, request: pb.DropFailureRequest, context: object) -> pb.DropFailureResponse:
        """Say that a task isn't wanted any more."""
        result = await self._failures.drop(request.crate_id, request.failure_id)
        return pb.DropFailureResponse(position=result.position, unchanged=result.unchanged)

    async def _check_named(self, crate_id: str, job_id: str, document_ids: Sequence[str] = ()) -> None:
        missing = await self._tables.missing(crate_id, job_id, document_ids)
        if missing:
            raise NotFound(f"{missing} does not exist in crate {crate_id}: leave it out, or correct its name")

    async def _put(self, crate_id: str, header: Header, body: bytes) -> pb.PutDocumentResponse:
        return replies.put(await self._documents.put(crate_id, header, body))

    async def _crate(self, crate_id: str) -> pb.Crate:
        view = await self._tables.crate(crate_id)
        if view is None:
            raise Unavailable(f"crate {crate_id} isn't in the tables yet: they follow the log, try again in a moment")
        return replies.crate(view)

    async def _identify(self, crate_id: str, document_id: str, source_id: str) -> str:
        if bool(document_id) == bool(source_id):
            raise Rejected("name the document by document_id or by source_id, by one of the two")
        if source_id:
            return await self._documents.identify(crate_id, source_id)
        with outcomes():
            return requests.document_id(document_id)

    async def _view(self, crate_id: str, document_id: str, source_id: str) -> DocumentView:
        found = await self._identify(crate_id, document_id, source_id)
        view = await self._tables.document(crate_id, found)
        if view is None:
            raise NotFound(f"document {(source_id or document_id)[:80]!r} does not exist in crate {crate_id}")
        return view


def _header(message: pb.DocumentHeader) -> Header:
    with outcomes():
        return requests.header(message)


async def _receive(first: pb.UploadDocumentRequest, pieces: AsyncIterator[pb.UploadDocumentRequest]) -> bytes:
    if first.WhichOneof("part") != "header":
        raise Rejected("the first message of an upload must be its header: send it before the body")
    body = bytearray()
    async for piece in pieces:
        if piece.WhichOneof("part") != "body":
            raise Rejected("an upload has one header: send only pieces of the body after it")
        if len(piece.body) > MAX_PIECE_BYTES:
            raise Rejected(f"a piece of {len(piece.body)} bytes is too large: at most {MAX_PIECE_BYTES} each")
        body += piece.body
        if len(body) > MAX_UPLOAD_BYTES:
            raise Rejected(
                f"the body of {first.header.source_id[:80]!r} is over {MAX_UPLOAD_BYTES} bytes: split the document"
            )
    return bytes(body)
