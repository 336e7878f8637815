"""One Qdrant Edge shard: the vectors of one generation of one crate. Blocking, for one thread."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import qdrant_edge as edge
from blake3 import blake3
from numpy import asarray

from services.index.adapters.edge_engine.conditions import (
    INDEXED_FIELDS,
    KINDS,
    LOOKUP_FIELDS,
    NOT_CURRENT,
    RANGE_FIELDS,
    Hidden,
    Search,
    any_of,
    editions,
    force_payload,
    is_,
    payload,
    revision_key,
    wanted,
)
from services.index.adapters.edge_engine.frames import Step, StoredForce, StoredRecord

_NEVER = 1 << 40
_HNSW_EF = 256
"""Recall at 10 of 0.987 and at 100 of 0.945 over 100,000 vectors of 48 latent dimensions, with or without oversampling."""

_TIE_ROOM = 16
_MOST_TIES = 512
_REWRITE_POINTS = 500
_HIT_FIELDS = ["document", "revision", "ordinal", "kind_form"]

_RECORD_FIELDS = ["document", "revision", "ordinal", "kind_form", "source_domain", *RANGE_FIELDS, "current_kind"]

Hit = tuple[str, int, int, float, str]
Stored = tuple[str, int, int, str, str, StoredForce]


class VectorShard:
    """Points with cosine distance, int8 quantisation once indexed, and exact scores always."""

    def __init__(self, folder: Path, shard: Any) -> None:
        self._folder = folder
        self._shard = shard

    @classmethod
    def create(cls, folder: Path, dimension: int) -> VectorShard:
        """Create an empty shard, durably."""
        folder.mkdir(parents=True)
        shard = edge.EdgeShard.create(str(folder), _config(dimension))
        for name in INDEXED_FIELDS:
            shard.update(edge.UpdateOperation.create_field_index(name, edge.KeywordIndexParams()))
        for name in RANGE_FIELDS:
            params = edge.IntegerIndexParams(lookup=False, range=True)
            shard.update(edge.UpdateOperation.create_field_index(name, params))
        for name in LOOKUP_FIELDS:
            params = edge.IntegerIndexParams(lookup=True, range=False)
            shard.update(edge.UpdateOperation.create_field_index(name, params))
        shard.flush()
        sync_tree(folder)
        return cls(folder, shard)

    @classmethod
    def load(cls, folder: Path, dimension: int) -> VectorShard:
        """Open a shard for serving; what its write-ahead log holds is applied again."""
        return cls(folder, edge.EdgeShard.load(str(folder), _config(dimension)))

    def apply(self, step: Step) -> None:
        """Add the step's records; with the last step, delete the other editions of what it replaces."""
        if step.moved is not None:
            self._move(step, *step.moved)
            return
        if step.records:
            self.upsert(
                [
                    edge.Point(
                        id=_point_id(step.document_id, step.edition, record),
                        vector=vector,
                        payload=payload(step.document_id, step.edition, record),
                    )
                    # A list: the engine takes numbers from an array one object at a time.
                    for record, vector in zip(step.records, step.vectors.tolist(), strict=True)
                ]
            )
        if step.last:
            whose = is_("document", step.document_id)
            if step.revision:
                whose = is_("revision_key", revision_key(step.document_id, step.revision))
            others = edge.Filter(must=[whose, any_of("kind", step.kinds)], must_not=[is_("edition", step.edition)])
            self._shard.update(edge.UpdateOperation.delete_points_by_filter(others))

    def _move(self, step: Step, form: str, force: StoredForce) -> None:
        """Say anew when a revision counts; its vectors stay, in whatever edition."""
        whose = is_("revision_key", revision_key(step.document_id, step.revision))
        for kind in KINDS:
            moved = force_payload(kind, form, force)
            chosen = edge.Filter(must=[whose, is_("kind", kind)])
            self._shard.update(edge.UpdateOperation.set_payload_by_filter(chosen, moved))

    def upsert(self, points: Sequence[Any]) -> None:
        """Add the engine's own points, or put them in the place of those with the same ids."""
        self._shard.update(edge.UpdateOperation.upsert_points(list(points)))

    def search(self, vector: Any, search: Search, hidden: Hidden) -> list[Hit]:
        """Rank points by cosine.

        Args:
            vector: float32[d].
            search: Filter and limit.
            hidden: Editions that aren't complete yet.

        Returns:
            Hits by falling score, then document id, revision and ordinal. Where more than 512 points share the score of
            the last one, which of them are shown is the engine's choice.
        """
        wanted_points = wanted(search, hidden)
        room = _TIE_ROOM
        while True:
            found = self._query(vector, wanted_points, search.limit + room)
            full = len(found) == search.limit + room
            if not full or found[-1].score < found[search.limit - 1].score or room >= _MOST_TIES:
                break
            room = min(room * 8, _MOST_TIES)
        return sorted(map(_hit, found), key=lambda hit: (-hit[3], *hit[:3]))[: search.limit]

    def count(self, kind: str | None, hidden: Hidden) -> int:
        """Count points, of one kind or of all."""
        must = [is_("kind", kind)] if kind else []
        request = edge.CountRequest(exact=True, filter=edge.Filter(must=must, must_not=editions(hidden)))
        return int(self._shard.count(request))

    def stored(self, after: str | None, limit: int, hidden: Hidden) -> tuple[list[Stored], str | None]:
        """Read points one by one, in the order of their ids.

        Args:
            after: Where the page before said to go on; None for the start.
            limit: Most points wanted.
            hidden: Editions that aren't complete yet.

        Returns:
            Document id, revision, ordinal, kind, BLAKE3 over vector, form and source domain, and force; and where to
            go on.
        """
        request = edge.ScrollRequest(
            offset=None if after is None else UUID(after),
            limit=limit,
            filter=edge.Filter(must_not=editions(hidden)),
            with_payload=_RECORD_FIELDS,
            with_vector=True,
        )
        found, following = self._shard.scroll(request)
        return [_stored(point) for point in found], None if following is None else str(following)

    def unindexed(self) -> int:
        """Number of points that searches still scan one by one."""
        info = self._shard.info()
        return max(0, int(info.points_count) - int(info.indexed_vectors_count))

    def points(self) -> int:
        """Number of points."""
        return int(self._shard.info().points_count)

    def flush(self) -> None:
        """Write everything to the segments and sync them; the write-ahead log starts anew."""
        self._shard.flush()

    def close(self) -> None:
        """Flush and let go of the files."""
        self._shard.close()

    def sync_log(self) -> None:
        """Sync the write-ahead log: what was applied survives a power cut. Needs no lock of the engine, so any thread may."""
        log = self._folder / "wal"
        for file in log.iterdir():
            # The log makes its next file ready in the background under another name; that one holds nothing yet.
            with contextlib.suppress(FileNotFoundError):
                _sync(file)
        _sync(log)

    def copy(self, target: Path) -> None:
        """Copy the flushed shard. It must not change meanwhile, but may be searched.

        The log comes along although it holds nothing: with a new one, operations would be numbered from 0 again, and the
        engine ignores an operation whose number is below that of the point's last one.
        """
        shutil.copytree(self._folder, target, copy_function=_copy_sparse)

    def _query(self, vector: Any, wanted: Any, limit: int) -> Any:
        return self._shard.query(
            edge.QueryRequest(
                limit=limit,
                query=edge.Query.Nearest(vector),
                filter=wanted,
                with_payload=_HIT_FIELDS,
                params=edge.SearchParams(
                    hnsw_ef=_HNSW_EF,
                    # Quantised scores choose the candidates, the stored vectors give the scores.
                    quantization=edge.QuantizationSearchParams(rescore=True),
                ),
            )
        )


def build_index(folder: Path, dimension: int) -> None:
    """Index, merge and vacuum a shard that nobody serves, and sync it. Takes minutes on large shards.

    Args:
        folder: A closed shard.
        dimension: Components of its vectors.
    """
    shard = edge.EdgeShard.load(str(folder), _config(dimension, indexing_threshold=1))
    shard.optimize()
    shard.flush()
    shard.close()
    sync_tree(folder)


def rewrite(source: Path, folder: Path, dimension: int) -> None:
    """Write the points of a shard that nobody serves into a new one, and index that: nothing of deleted points comes along.

    A vacuum would do for the segments, but the write-ahead log's files keep what was deleted.

    Args:
        source: A closed shard; it is deleted.
        folder: Of the new shard.
        dimension: Components of its vectors.
    """
    old = edge.EdgeShard.load(str(source), _config(dimension))
    fresh = VectorShard.create(folder, dimension)
    offset: Any = None
    records: Any
    while True:
        request = edge.ScrollRequest(offset=offset, limit=_REWRITE_POINTS, with_payload=True, with_vector=True)
        records, offset = old.scroll(request)
        points = [edge.Point(id=record.id, vector=record.vector, payload=record.payload) for record in records]
        if points:
            fresh.upsert(points)
        if offset is None:
            break
    fresh.close()
    old.close()
    shutil.rmtree(source)
    build_index(folder, dimension)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder below a folder, and the folder itself."""
    for path, _, names in os.walk(folder):
        for name in names:
            _sync(Path(path) / name)
        _sync(Path(path))


def _config(dimension: int, *, indexing_threshold: int = _NEVER) -> Any:
    return edge.EdgeConfig(
        vectors=edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine),
        # One thread: indexing must leave the machine to those who wait for an answer.
        hnsw_config=edge.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10_000, max_indexing_threads=1),
        quantization_config=edge.ScalarQuantizationConfig(
            type=edge.ScalarType.Int8, quantile=0.99, memory=edge.Memory.Pinned
        ),
        optimizers=edge.EdgeOptimizersConfig(
            default_segment_number=1,
            indexing_threshold=indexing_threshold,
            deleted_threshold=0.1,
            vacuum_min_vector_number=100,
        ),
        max_search_threads=1,
    )


def _point_id(document_id: str, edition: int, record: StoredRecord) -> UUID:
    name = f"{document_id}/{edition}/{record[0]}/{record[2]}/{record[1]}"
    return UUID(bytes=blake3(name.encode()).digest(16))


def _hit(point: Any) -> Hit:
    told = point.payload
    score = min(1.0, max(-1.0, float(point.score)))
    form = told["kind_form"].rpartition("/")[2]
    return told["document"], told["revision"], told["ordinal"], score, form


def _stored(point: Any) -> Stored:
    told = point.payload
    hasher = blake3(asarray(point.vector, dtype="<f4").tobytes())
    hasher.update(f"{told['kind_form']}/{told['source_domain']}".encode())
    kind = told["kind_form"].partition("/")[0]
    start, end, known, position = (int(told[name]) for name in RANGE_FIELDS)
    force = start, end, known, position, int(told["current_kind"] != NOT_CURRENT)
    return told["document"], told["revision"], told["ordinal"], kind, hasher.hexdigest(), force


def _copy_sparse(source: str, target: str) -> None:
    # Log files are 32 MB of which little is written; their holes stay holes.
    with Path(source).open("rb") as read, Path(target).open("wb") as write:
        size = os.fstat(read.fileno()).st_size
        write.truncate(size)
        start = 0
        while start < size:
            try:
                start = os.lseek(read.fileno(), start, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    return
                raise
            end = os.lseek(read.fileno(), start, os.SEEK_HOLE)
            write.seek(start)
            while start < end:
                sent = os.sendfile(write.fileno(), read.fileno(), start, end - start)
                start += sent
                write.seek(start)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
