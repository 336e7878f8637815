"""What `doctor --packs` finds: packs that are damaged, gone, or left over, by what the tables refer to."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from services.cli.findings import Finding
from services.kernel.blobs import FolderBlobs, blob_names
from services.kernel.db import Session, answering, session
from services.kernel.errors import Failure
from services.kernel.packs import pack_id

# A pack lies there before the event that names it, and the event before the row.
_SETTLING_S = 600.0
_SOURCE, _LATER = "source", ("chunks", "vectors")
_OF_REVISIONS = (_SOURCE, *_LATER, "vectors-partial")
_RESTORE = "restore the pack from a backup"
_MEND = f"ingest that document again, or {_RESTORE}"
# Texts that come out empty stand for packs that don't exist: documents without chunks, crates without a secret.
_REVISIONS = """
select r.crate_id, r.document_id, r.revision, encode(r.source_pack, 'hex') source, d.source_id,
    d.revision = r.revision as newest, i.embedded_digest is not distinct from r.settings_digest as settled,
    encode(coalesce(i.chunks_pack, ''), 'hex') chunks, encode(coalesce(i.vectors_pack, ''), 'hex') vectors
from ingest.revisions r
join ingest.documents d using (crate_id, document_id)
left join "index".revisions i
    on (i.crate, i.document_id, i.revision) = (r.crate_id, r.document_id, r.revision)
"""
_SECRETS = "select crate_id, encode(secret_pack, 'hex') pack from ingest.crates"
_ANSWERS = """
select crate, encode(receipt_id, 'hex') receipt, encode(answer_pack, 'hex') pack from receipt.receipts
where answer_pack is not null
"""
_EVIDENCE = """
select crate, document_id, revision, encode(receipt_id, 'hex') receipt, encode(evidence_pack, 'hex') pack
from receipt.citations where evidence_pack is not null
"""


@dataclass(slots=True)
class _Needs:
    """What the tables refer to.

    Attributes:
        owners: By pack name, what it belongs to and what to do when it is lost.
        open: Revisions, by prefix, whose later steps are still under way.
    """

    owners: dict[str, tuple[str, str]] = field(default_factory=dict)
    open: set[str] = field(default_factory=set)

    def add(self, prefix: str, pack: str, owner: str, remedy: str) -> None:
        if pack:
            self.owners[f"{prefix}/{pack}"] = (owner, remedy)

    def spares(self, name: str) -> bool:
        """Whether nothing needs a pack that the tables don't name: it was replaced, or its document is gone."""
        prefix, step = name.rsplit("/", 2)[:2]
        if name in self.owners or step not in _OF_REVISIONS or prefix.count("/") != 2:
            return False
        return step == _SOURCE or prefix not in self.open


def of_packs(root: Path, dsn: str | None) -> Iterator[Finding]:
    """Compare the packs with their ids and with what the tables refer to.

    Args:
        root: The blobs folder.
        dsn: Postgres address; None while no node runs: then only damage can be told.

    Yields:
        Packs that are damaged or gone, and as warnings those that are left over.
    """
    try:
        needs = asyncio.run(_needs(dsn)) if dsn else None
    except Failure as error:
        yield Finding("packs", f"what packs are needed can't be told: {error.message}", "wait, then ask again")
        return
    if needs is None:
        yield Finding(
            "packs",
            "whether all packs are there, and which ones are needed no more, is told only while the node runs",
            "start it with `affidavit up`, then ask again",
            fatal=False,
        )
    blobs = FolderBlobs(root=root)
    try:
        for name in blob_names(root):
            yield from _of_pack(blobs.path(name), name, needs)
        if needs is not None and dsn:
            yield from _gone(blobs, needs, dsn)
    finally:
        blobs.close()


def _of_pack(path: Path, name: str, needs: _Needs | None) -> Iterator[Finding]:
    try:
        age_s = time.time() - path.stat().st_mtime
        sound = pack_id(path.read_bytes()).hex() == name.rsplit("/", 1)[-1]
    except FileNotFoundError:
        return
    if needs is not None and needs.spares(name):
        if age_s > _SETTLING_S or not sound:
            yield Finding(
                "leftover pack", f"nothing needs pack {name} any more", f"it may be deleted: `rm {path}`", fatal=False
            )
    elif not sound:
        crate, thing = name.split("/")[:2]
        owner, remedy = f"document {thing} of crate {crate}", _MEND
        if needs is not None:
            owner, remedy = needs.owners.get(name, (owner, remedy))
        yield Finding("pack", f"pack {name} isn't what was written: it belongs to {owner}", remedy)


def _gone(blobs: FolderBlobs, needs: _Needs, dsn: str) -> Iterator[Finding]:
    gone = [name for name in needs.owners if not blobs.path(name).exists()]
    if not gone:
        return
    try:
        # What was erased or replaced meanwhile is gone for good reasons.
        now = asyncio.run(_needs(dsn)).owners
    except Failure:
        now = needs.owners
    for name in gone:
        if name in now and not blobs.path(name).exists():
            owner, remedy = now[name]
            yield Finding("pack", f"pack {name} is gone: it belongs to {owner}", remedy)


async def _needs(dsn: str) -> _Needs:
    async with session(dsn) as connection:
        with answering():
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                return await _read(connection)


async def _read(connection: Session) -> _Needs:
    needs = _Needs()
    for row in await connection.fetch(_REVISIONS):
        _add_revision(needs, row)
    for row in await connection.fetch(_SECRETS):
        needs.add(f"{row['crate_id']}/crate/1/secret", row["pack"], f"crate {row['crate_id']}", _RESTORE)
    for row in await connection.fetch(_ANSWERS):
        owner = f"receipt {row['receipt']} of crate {row['crate']}"
        needs.add(f"{row['crate']}/{row['receipt']}/answer", row["pack"], owner, _RESTORE)
    for row in await connection.fetch(_EVIDENCE):
        owner = f"receipt {row['receipt']} of crate {row['crate']}"
        prefix = f"{row['crate']}/{row['document_id']}/{row['revision']}/evidence"
        needs.add(prefix, row["pack"], owner, _RESTORE)
    return needs


def _add_revision(needs: _Needs, row: Mapping[str, object]) -> None:
    document = f"{row['source_id']!r} ({row['document_id']})" if row["source_id"] else f"{row['document_id']}"
    owner = f"revision {row['revision']} of document {document} of crate {row['crate_id']}"
    prefix = f"{row['crate_id']}/{row['document_id']}/{row['revision']}"
    # Ingesting again makes the newest revision anew, and no earlier one.
    remedy = _MEND if row["newest"] else _RESTORE
    needs.add(f"{prefix}/{_SOURCE}", str(row[_SOURCE]), owner, remedy)
    if not row["settled"]:
        needs.open.add(prefix)
        return
    for step in _LATER:
        needs.add(f"{prefix}/{step}", str(row[step]), owner, remedy)
