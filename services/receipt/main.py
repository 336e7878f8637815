"""Composition of the receipt role."""

from __future__ import annotations

from pathlib import Path

from affidavit.receipt.v1 import receipt_service_pb2_grpc as pb_grpc

from services import topology
from services.kernel.blobs import blob_names
from services.kernel.bus import LogReader
from services.kernel.db import Database
from services.kernel.errors import Rejected
from services.kernel.ids import utc_now
from services.kernel.projections import Projection
from services.kernel.replay import ReplayContext, Replica
from services.kernel.rpc import Servicer
from services.kernel.runner import Context, Role
from services.kernel.settings import NodeSettings
from services.receipt.adapters.disclosures_packs import PackedDisclosures
from services.receipt.adapters.entropy_os import OsEntropy
from services.receipt.adapters.history_nats import any_receipt_issued
from services.receipt.adapters.signer_file import KeyFolder, KeyState
from services.receipt.adapters.tables_postgres import ERASURES, MIGRATIONS, RECEIPTS, TABLES, PostgresTables
from services.receipt.archive import Archive
from services.receipt.codec.messages import ERASURE_EVENTS, RECEIPT_EVENTS
from services.receipt.handlers import Follower
from services.receipt.issuing import Issuer, Sweeper
from services.receipt.ports import Signer
from services.receipt.servicer import ReceiptServicer
from services.receipt.settings import ReceiptSettings

_SEED_BYTES = 32
_STREAMS = {RECEIPTS: topology.SIGNALS, ERASURES: topology.KNOWLEDGE}


async def wire(context: Context) -> Role:
    """Pick the adapters and connect the parts.

    Args:
        context: What the role is wired from.

    Returns:
        The role. It starts without its key as well: receipts can then be read and verified, none can be issued.

    Raises:
        Failure: When a dependency is missing.
    """
    settings = ReceiptSettings(data_dir=context.settings.data_dir)
    tables = _tables(await context.database(MIGRATIONS), context.bus)
    store = PackedDisclosures(packs=context.packs)
    entropy = OsEntropy()
    signer = await _signer(context, settings, entropy)
    issuer = Issuer(log=context.bus, tables=tables, store=store, signer=signer, entropy=entropy, clock=utc_now)
    archive = Archive(
        log=context.bus,
        tables=tables,
        store=store,
        signer=signer,
        applied=lambda position, timeout_s: context.applied(RECEIPTS, position, timeout_s),
        erased=lambda: tables.position(ERASURES),
    )
    sweeper = Sweeper(tables=tables, store=store, caught_up=lambda: context.caught_up(RECEIPTS), clock=utc_now)

    async def key_at_hand() -> str:
        return KeyFolder(path=settings.keys).report().problem or signer.problem

    return Role(
        name="receipt",
        servicers=(
            Servicer(
                "affidavit.receipt.v1.ReceiptService",
                pb_grpc.add_ReceiptServiceServicer_to_server,
                ReceiptServicer(issuer=issuer, archive=archive),
            ),
        ),
        projections=_projections(tables, Follower(tables=tables, store=store)),
        background=(sweeper.run,),
        checks={"signing key": key_at_hand},
    )


async def replica(context: ReplayContext) -> Replica:
    """Put the projections together once more, into other tables.

    Args:
        context: What a replay offers.

    Returns:
        The projections, and what is compared.
    """
    tables = _tables(await context.database(MIGRATIONS), context.log)
    follower = Follower(tables=tables, store=PackedDisclosures(packs=context.packs))
    return Replica(name="receipt", projections=_projections(tables, follower), tables=TABLES)


def _tables(database: Database, log: LogReader) -> PostgresTables:
    return PostgresTables(
        database=database, incarnations={name: log.incarnation(stream) for name, stream in _STREAMS.items()}
    )


def _projections(tables: PostgresTables, follower: Follower) -> tuple[Projection, ...]:
    return (
        Projection(
            name=RECEIPTS,
            events=RECEIPT_EVENTS,
            stream=topology.SIGNALS,
            apply=follower.receipts,
            position=lambda: tables.position(RECEIPTS),
        ),
        Projection(
            name=ERASURES,
            events=ERASURE_EVENTS,
            stream=topology.KNOWLEDGE,
            apply=follower.erasures,
            position=lambda: tables.position(ERASURES),
        ),
    )


async def _signer(context: Context, settings: ReceiptSettings, entropy: OsEntropy) -> Signer:
    folder = KeyFolder(path=settings.keys)
    if folder.report().state is KeyState.ABSENT and not await any_receipt_issued(context.bus):
        return folder.create(issuer=settings.receipt_issuer, seed=entropy.draw(_SEED_BYTES))
    signer = folder.open()
    if settings.receipt_issuer and signer.issuer not in ("", settings.receipt_issuer):
        raise Rejected(
            f"receipt_issuer is {settings.receipt_issuer!r}, but the key in {settings.keys} signs for "
            f"{signer.issuer!r}: an issuer can't be renamed, take the setting back"
        )
    return signer


def check_key(data_dir: Path) -> str:
    """Look for what is wrong with the signing key, without a running node.

    Args:
        data_dir: Data folder.

    Returns:
        What is wrong and what to do, or "".
    """
    settings = ReceiptSettings(data_dir=data_dir)
    report = KeyFolder(path=settings.keys).report()
    names = blob_names(NodeSettings(data_dir=data_dir).blobs)
    if report.state is KeyState.ABSENT and any("/answer/" in name for name in names):
        return f"{settings.keys} is empty, but receipts were issued: restore it from a backup"
    return report.problem
