"""The parts of an issuer beside a running node, and ways to make one of them die."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from services import topology
from services.kernel.ids import utc_now
from services.receipt.adapters.disclosures_packs import PackedDisclosures
from services.receipt.adapters.entropy_os import OsEntropy
from services.receipt.adapters.signer_file import KeyFolder
from services.receipt.adapters.tables_postgres import ERASURES, RECEIPTS, PostgresTables
from services.receipt.archive import Archive
from services.receipt.issuing import Issuer, Sweeper
from tests.integration.receipt.receipt_world import World


class Killed(Exception):  # noqa: N818  (stands for the end of a process)
    """The process died here."""


class Dying:
    """Passes calls on, and dies before or after the first call of one method."""

    def __init__(self, inner: Any, *, method: str, when: str) -> None:
        self._inner = inner
        self._method = method
        self._when = when

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name != self._method:
            return found

        async def die(*args: Any, **kwargs: Any) -> Any:
            if self._when == "after":
                await found(*args, **kwargs)
            raise Killed

        return die


class Parts:
    """The parts of an issuer, made by hand beside the running node."""

    def __init__(self, world: World) -> None:
        database = world.context._databases[0]
        bus = world.context.bus
        streams = {RECEIPTS: topology.SIGNALS, ERASURES: topology.KNOWLEDGE}
        incarnations = {name: bus.incarnation(stream) for name, stream in streams.items()}
        self.log: Any = bus
        self.tables: Any = PostgresTables(database=database, incarnations=incarnations)
        self.store: Any = PackedDisclosures(packs=world.context.packs)
        self.signer = KeyFolder(path=world.settings.data_dir / "keys").open()

    def issuer(self) -> Issuer:
        return Issuer(
            log=self.log,
            tables=self.tables,
            store=self.store,
            signer=self.signer,
            entropy=OsEntropy(),
            clock=utc_now,
        )

    def sweeper(self, *, later: timedelta = timedelta(hours=1), caught_up: bool = True) -> Sweeper:
        return Sweeper(
            tables=self.tables,
            store=self.store,
            caught_up=lambda: caught_up,
            clock=lambda: datetime.now(UTC) + later,
        )

    def archive(self) -> Archive:
        async def applied(_position: int, _timeout_s: float) -> bool:
            return True

        return Archive(
            log=self.log,
            tables=self.tables,
            store=self.store,
            signer=self.signer,
            applied=applied,
            erased=lambda: self.tables.position("erasures"),
        )
