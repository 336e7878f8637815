"""The four roles that make a document searchable, on real servers, wired by their own composition roots."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import numpy as np
import pytest
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import living_pb2 as living_pb
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from affidavit.ingest.v1.settings_pb2 import ChunkSettings

import services.chunker.main
import services.embedder.main
import services.index.main
import services.ingest.main
from services.embedder.adapters.model_constant import DIMENSION, HASH_ID, HashModel
from services.embedder.domain.models import Purpose
from services.embedder.domain.texts import ChunkText, embedded_texts
from services.index.adapters.keyword_lane_tantivy import TantivyKeywordLanes
from services.index.adapters.vector_engine_process import VectorEngineProcess
from services.index.adapters.vector_lane_edge import EdgeVectorLanes
from services.index.domain.records import Kind
from services.kernel.blobs import FolderBlobs
from services.kernel.projections import Projection, ProjectionRunner
from services.kernel.runner import Context, Role
from services.kernel.settings import NodeSettings
from services.kernel.steps import Step
from tests.conftest import admit_everybody
from tests.integration.machine.crashes import CrashingBus, CrashingPacks, Fuse, crash_in_index
from tests.integration.machine.deliveries import Stored
from tests.integration.machine.model import SMALL, SMALL_SIZE
from tests.integration.whole_node import eventually

ROLES = ("ingest", "chunker", "embedder", "index")
_WIRES = {
    "ingest": services.ingest.main.wire,
    "chunker": services.chunker.main.wire,
    "embedder": services.embedder.main.wire,
    "index": services.index.main.wire,
}
GENERATION = 1
KINDS = {Kind.CHUNK: index_pb.RECORD_KIND_CHUNK, Kind.DOCUMENT: index_pb.RECORD_KIND_DOCUMENT}
_MOST = 100
_REACHES = {False: living_pb.REACH_CURRENT, True: living_pb.REACH_EVERY}
_SETTINGS = {
    "AFFIDAVIT_EMBEDDER_MODEL": HASH_ID,
    "AFFIDAVIT_INDEX_SPACING_S": "0",
    # So small that what is handed over at once is often written in parts.
    "AFFIDAVIT_INDEX_BATCH_RECORDS": "4",
}
_FORGET = """
delete from index.documents; delete from index.revisions; delete from index.chunks; delete from index.generations;
delete from index.outbox;
"""

Record = tuple[str, int, int]


@dataclass
class Running:
    """A role that runs."""

    context: Context
    role: Role
    bus: CrashingBus
    packs: CrashingPacks
    projections: list[ProjectionRunner] = field(default_factory=list)

    @property
    def servicer(self) -> Any:
        return self.role.servicers[0].servicer

    @property
    def step(self) -> Step:
        return self.role.steps[0]


class SharedEngine(VectorEngineProcess):
    """An engine that outlives the index that uses it, since starting one costs more than a whole example."""

    async def stop(self) -> None:
        """Run on."""

    async def kill(self) -> None:
        """Die without a word; the next call starts it again."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def end(self) -> None:
        """Stop for good."""
        await super().stop()


class System:
    """Roles, servers and the crate of the running example."""

    def __init__(self, *, settings: NodeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = settings
        self.fuses = {name: Fuse() for name in ROLES}
        self.running: dict[str, Running] = {}
        self._blobs = FolderBlobs(root=settings.blobs)
        self._tables: asyncpg.Connection
        lanes = settings.data_dir / "lanes"
        self.engine = SharedEngine(root=lanes, runtime_dir=settings.data_dir / "run")
        monkeypatch.setattr(services.index.main, "VectorEngineProcess", lambda **_: self.engine)
        crash_in_index(monkeypatch, self.fuses["index"])
        for name, value in _SETTINGS.items():
            monkeypatch.setenv(name, value)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[System]:
        """Run all roles; the embedder also answers what the index asks it about models."""
        self._tables = await asyncpg.connect(self.settings.postgres_dsn)
        await self.engine.start()
        for name in ROLES:
            await self.start(name)
        server = grpc.aio.server()
        models = await self._wired("embedder")
        models.role.servicers[0].add(models.servicer, server)
        server.add_insecure_port(self.settings.listen)
        await server.start()
        try:
            yield self
        finally:
            await server.stop(None)
            await _close(models)
            for name in ROLES:
                await self.stop(name)
            await self.engine.end()
            await self._tables.close()
            self._blobs.close()

    # ---- Roles ----

    async def _wired(self, name: str) -> Running:
        bus = await CrashingBus.connect(self.settings.nats_url, role=name)
        assert isinstance(bus, CrashingBus)
        packs = CrashingPacks(blobs=self._blobs)
        bus.fuse = packs.fuse = self.fuses[name]
        context = Context(settings=self.settings, role=name, bus=bus, packs=packs, admit=admit_everybody)
        return Running(context, await _WIRES[name](context), bus, packs)

    async def start(self, name: str) -> None:
        """Wire a role anew."""
        running = self.running[name] = await self._wired(name)
        if name == "ingest":
            runners = [ProjectionRunner(bus=running.bus, projection=each) for each in running.role.projections]
            running.context.adopt(runners)
            running.projections = runners
            for runner in runners:
                await runner.start()
            # What was lost with its reply may be in the log: the next command shall find it.
            await eventually(lambda: all(runner.progress.caught_up for runner in runners))
        elif name == "index":
            # What compares the lanes with the rows and opens the gate; the test plays the projection itself.
            await running.role.background[0]()

    async def stop(self, name: str) -> None:
        """End a role in good order."""
        running = self.running.pop(name)
        for close in running.role.close:
            await close()
        await _close(running)

    async def crash(self, name: str, *, with_engine: bool = False) -> None:
        """Drop a role where it stands: nothing is flushed, nothing is said."""
        self.fuses[name].disarm()
        running = self.running.pop(name)
        if name == "index":
            await self.fuses[name].landed()
            for lane in self._keyword(running)._lanes.values():
                for index in lane._indexes.values():
                    index.release_writer()
                lane._closed = True
            if with_engine:
                await self.engine.kill()
        await _close(running)

    def _keyword(self, running: Running) -> TantivyKeywordLanes:
        lanes = running.role.close[0].__self__  # type: ignore[attr-defined]  # a bound method
        assert isinstance(lanes, TantivyKeywordLanes)
        return lanes

    def _vector(self, running: Running) -> EdgeVectorLanes:
        lanes = running.role.close[1].__self__  # type: ignore[attr-defined]  # a bound method
        assert isinstance(lanes, EdgeVectorLanes)
        return lanes

    # ---- Crates ----

    async def forget(self, crate: str) -> None:
        """Take an example's crate out of the index, so that a start doesn't look at it again."""
        index = self.running["index"]
        keyword, vector = self._keyword(index), self._vector(index)
        for lanes in (keyword._lanes, vector._lanes):
            for lane in lanes.values():
                await lane.close()
            lanes.clear()
        keyword._writers.clear()
        await self._tables.execute(_FORGET)
        await asyncio.to_thread(shutil.rmtree, self.settings.data_dir / "lanes" / crate, ignore_errors=True)

    def lane_folder(self, crate: str, lane: str = "") -> Path:
        """Folder of a lane, or of both."""
        return self.settings.data_dir / "lanes" / crate / str(GENERATION) / lane

    async def let_go(self, crate: str) -> None:
        """Have the engine close its shard, so that its files may be moved while no index runs."""
        header = {"op": "close", "crate": crate, "generation": GENERATION, "dimension": DIMENSION}
        await self.engine.run(lambda connection: connection.call(header))

    def revisions_kept(self, document_id: str) -> list[int]:
        """Revisions that packs are kept of."""
        return [int(path.name.split(",")[1]) for path in self.settings.blobs.rglob(f"{document_id},*")]

    # ---- What clients do ----

    async def create(self, crate: str) -> int:
        """Create a crate with a second job; returns the position of its first event."""
        ingest = self.running["ingest"].servicer
        created = await ingest.CreateCrate(pb.CreateCrateRequest(crate_id=crate), None)
        job = pb.Job(job_id=SMALL, chunking=ChunkSettings(size_chars=SMALL_SIZE, overlap_chars=0))
        await ingest.PutJob(pb.PutJobRequest(crate_id=crate, job=job), None)
        return int(created.position)

    async def put(self, crate: str, name: str, body: bytes, job: str) -> pb.PutDocumentResponse:
        """Put a document."""
        header = pb.DocumentHeader(source_id=name, media_type="text/plain", job_id=job)
        request = pb.PutDocumentRequest(crate_id=crate, header=header, body=body)
        reply = await self.running["ingest"].servicer.PutDocument(request, None)
        assert isinstance(reply, pb.PutDocumentResponse)
        return reply

    async def retire(self, crate: str, name: str) -> bool:
        """Retire a document; False when nothing was recorded."""
        request = pb.RetireDocumentRequest(crate_id=crate, source_id=name)
        return not (await self.running["ingest"].servicer.RetireDocument(request, None)).unchanged

    async def erase(self, crate: str, name: str) -> bool:
        """Erase a document; False when nothing was recorded."""
        request = pb.EraseDocumentRequest(crate_id=crate, source_id=name)
        return not (await self.running["ingest"].servicer.EraseDocument(request, None)).unchanged

    # ---- The index ----

    @property
    def projection(self) -> Projection:
        """What the index follows the log with."""
        (found,) = self.running["index"].role.projections
        return found

    async def apply(self, batch: Sequence[Stored]) -> None:
        """Hand events to the index as one delivery of its projection."""
        await self.projection.apply([stored.event() for stored in batch])

    async def ahead(self, crate: str) -> bool:
        """Whether a lane has applied more of the log than the rows have."""
        index = self.running["index"]
        keyword = await self._keyword(index).open(crate, GENERATION)
        vector = await self._vector(index).open(crate, GENERATION, DIMENSION)
        return max(await keyword.position(), await vector.position()) > await self.projection.position()

    async def held(self, crate: str) -> dict[str, int]:
        """Records that lie in each lane, whether or not a search may show them."""
        index = self.running["index"]
        keyword = await self._keyword(index).open(crate, GENERATION)
        vector = await self._vector(index).open(crate, GENERATION, DIMENSION)
        return {
            f"{name} {kind}": await lane.count(kind)
            for name, lane in (("keyword", keyword), ("vector", vector))
            for kind in Kind
        }

    async def by_words(self, crate: str, words: str, kind: Kind, *, every: bool = False) -> list[Record]:
        """Records that the keyword lane finds, of current revisions or of every one."""
        lane_filter = index_pb.LaneFilter(kind=KINDS[kind])
        request = index_pb.SearchKeywordRequest(
            crate_id=crate, query=words, limit=_MOST, filter=lane_filter, reach=_REACHES[every]
        )
        return _records(await self.running["index"].servicer.SearchKeyword(request, None))

    async def by_vector(self, crate: str, kind: Kind, *, every: bool = False) -> list[Record]:
        """Records that the vector lane finds, of current revisions or of every one: all, whatever they are about."""
        lane_filter = index_pb.LaneFilter(kind=KINDS[kind])
        return _records(await self._nearest(crate, np.ones(DIMENSION), _MOST, lane_filter, every=every))

    async def _nearest(
        self, crate: str, vector: Any, limit: int, lane_filter: index_pb.LaneFilter, *, every: bool = False
    ) -> Any:
        request = index_pb.SearchVectorRequest(
            crate_id=crate,
            vector=vector.astype("<f4").tobytes(),
            model_id=HASH_ID,
            limit=limit,
            filter=lane_filter,
            reach=_REACHES[every],
        )
        return await self.running["index"].servicer.SearchVector(request, None)

    async def texts(self, crate: str, keys: Sequence[Record]) -> list[str]:
        """Texts of chunks; each is also the nearest to its own vector."""
        if not keys:
            return []
        chosen = [index_pb.ChunkKey(document_id=key[0], revision=key[1], ordinal=key[2]) for key in keys]
        request = index_pb.FetchChunksRequest(crate_id=crate, keys=chosen)
        found = (await self.running["index"].servicer.FetchChunks(request, None)).chunks
        model = HashModel()
        for each in found:
            chunk = ChunkText(each.chunk.text, tuple(each.chunk.heading_path))
            (text,) = embedded_texts(each.title, [chunk], model.fits)
            (vector,) = await model.embed([text.text], Purpose.DOCUMENT)
            only = index_pb.LaneFilter(document_ids=[each.key.document_id])
            (hit,) = (await self._nearest(crate, vector, 1, only)).hits
            assert (hit.ordinal, round(hit.score, 3)) == (each.key.ordinal, 1.0)
        return [each.chunk.text.strip() for each in found]


async def _close(running: Running) -> None:
    for runner in running.projections:
        await _cut_off(runner)
    await running.context.close()


async def _cut_off(runner: ProjectionRunner) -> None:
    """Stop a projection without the patience of `runner.stop`, which asks again after seconds only."""
    task = runner._task
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.05)


def _records(reply: Any) -> list[Record]:
    return sorted((hit.document_id, hit.revision, hit.ordinal) for hit in reply.hits)
