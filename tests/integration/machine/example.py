"""One example: a fresh crate, what was done to it, and what must be found in it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from affidavit.ingest.v1 import ingest_service_pb2 as pb

from services.chunker.handlers import EVENTS as CHUNKER_EVENTS
from services.embedder.handlers import EVENTS as EMBEDDER_EVENTS
from services.index.domain.records import Kind
from services.index.handlers import PROJECTION_EVENTS
from services.kernel.bus import Bus
from tests.integration.machine.crashes import Crash
from tests.integration.machine.deliveries import Consumer, CrateLog, Stored
from tests.integration.machine.model import SMALL, WHOLE, WORDS, Model, Shown, body
from tests.integration.machine.system import Record, System

STEPS = {"chunker": CHUNKER_EVENTS, "embedder": EMBEDDER_EVENTS}
_MOST_DELIVERIES = 300


class Example:
    """A crate with its log, the consumers of its steps, and the model.

    Attributes:
        model: What the documents' owner knows.
        log: What KNOWLEDGE holds.
    """

    def __init__(self, *, system: System, reader: Bus, crate: str, folder: Path) -> None:
        self._system = system
        self._crate = crate
        self._copy = folder / "older-copy"
        self.model = Model()
        self.log = CrateLog(bus=reader, crate=crate)
        self.consumers = {role: Consumer(log=self.log, names=names) for role, names in STEPS.items()}

    async def open(self) -> None:
        """Create the crate and have the index start its generation."""
        created = await self._system.create(self._crate)
        await self.log.read(created - 1)
        index = self._system.running["index"]
        starting = Consumer(log=self.log, names=index.step.events)
        (configured,) = starting.pending()
        assert await starting.deliver(configured, bus=index.bus, step=index.step) == "ack"
        await self.log.read(0)
        await self.drain()

    async def close(self) -> None:
        """Leave nothing that the next example would meet."""
        for name, fuse in self._system.fuses.items():
            fuse.disarm()
            if name not in self._system.running:
                await self._system.start(name)
        await self._system.forget(self._crate)
        await asyncio.to_thread(shutil.rmtree, self._copy, ignore_errors=True)

    # ---- Commands ----

    async def put(self, name: str, text: str, *, small: bool) -> None:
        """Put a document, whatever it held."""
        wanted = self.model.outcome(name, text, small=small)
        reply = await self._system.put(self._crate, name, body(text), SMALL if small else WHOLE)
        assert reply.outcome == pb.PutOutcome.Value(f"PUT_OUTCOME_{wanted.upper()}"), (reply, wanted)
        held = self.model.put(name, reply.document_id, text, small=small)
        assert reply.revision == held.revision
        assert bool(await self.log.read(0)) == (wanted != "unchanged")

    async def end(self, name: str, state: str) -> None:
        """Retire or erase a document."""
        over = ("erased",) if state == "erased" else ("retired", "erased")
        changes = self.model.documents[name].state not in over
        act = self._system.erase if state == "erased" else self._system.retire
        assert await act(self._crate, name) == changes
        if changes:
            self.model.end(name, state)
        assert bool(await self.log.read(0)) == changes

    async def crash_put(self, name: str, text: str, *, small: bool, point: str) -> None:
        """Put a document and lose ingest meanwhile."""
        self._system.fuses["ingest"].arm(point)
        try:
            await self.put(name, text, small=small)
        except Crash:
            await self._again("ingest")
            assert bool(await self.log.read(0)) == (point == "after event")
            if point == "after event":
                self.model.put(name, self.log.facts[-1].aggregate, text, small=small)
        self._system.fuses["ingest"].disarm()

    async def crash_end(self, name: str, state: str, point: str) -> None:
        """Retire or erase a document and lose ingest meanwhile."""
        self._system.fuses["ingest"].arm(point)
        try:
            await self.end(name, state)
        except Crash:
            await self._again("ingest")
            assert bool(await self.log.read(0)) == (point == "after event")
            if point == "after event":
                self.model.end(name, state)
        self._system.fuses["ingest"].disarm()

    async def _again(self, role: str) -> None:
        await self._system.crash(role)
        await self._system.start(role)

    # ---- Steps ----

    def pending(self) -> list[tuple[str, Stored]]:
        """What the consumers may deliver."""
        return [(role, stored) for role, consumer in self.consumers.items() for stored in consumer.pending()]

    def past(self) -> list[tuple[str, Stored]]:
        """What they may deliver once more."""
        return [(role, stored) for role, consumer in self.consumers.items() for stored in consumer.past()]

    async def deliver(self, role: str, stored: Stored, *, anew: bool = False, forgetful: bool = False) -> str:
        """Hand an event to its step.

        Args:
            role: Whose step.
            stored: The event.
            anew: The consumer was lost and made again.
            forgetful: The dedup window has passed.

        Returns:
            How it was settled.
        """
        running = self._system.running[role]
        running.bus.forgetful = forgetful
        settled = await self.consumers[role].deliver(stored, bus=running.bus, step=running.step, anew=anew)
        running.bus.forgetful = False
        await self.log.read(0)
        return settled

    async def crash_step(self, role: str, stored: Stored, point: str, passage: int) -> None:
        """Hand an event to its step and lose the role meanwhile."""
        self._system.fuses[role].arm(point, passage)
        try:
            await self.deliver(role, stored)
        except Crash:
            await self._again(role)
            await self.log.read(0)
        self._system.fuses[role].disarm()

    # ---- The index ----

    async def ahead(self) -> list[Stored]:
        """What the index has still to apply."""
        position = await self._system.projection.position()
        return [stored for stored in self.log.named(PROJECTION_EVENTS) if stored.position > position]

    async def follow(self, count: int) -> None:
        """Have the index apply some events in one delivery."""
        batch = (await self.ahead())[:count]
        if batch:
            await self._system.apply(batch)

    async def crash_index(self, count: int, point: str, passage: int, *, loss: str, with_engine: bool) -> None:
        """Have the index apply some events and lose it meanwhile, or afterwards, and lanes with it."""
        self._system.fuses["index"].arm(point, passage)
        with_crash = False
        try:
            await self.follow(count)
        except Crash:
            with_crash = True
        if not with_crash and loss == "nothing":
            self._system.fuses["index"].disarm()
            return
        await self._system.crash("index", with_engine=with_engine)
        await self._lose(loss)
        await self._system.start("index")

    async def _lose(self, loss: str) -> None:
        if loss == "nothing":
            return
        await self._system.let_go(self._crate)
        folder = self._system.lane_folder(self._crate)
        if loss == "older copy":
            if self._copy.exists():
                shutil.rmtree(folder)
                shutil.move(self._copy, folder)
            else:
                shutil.copytree(folder, self._copy)
        else:
            shutil.rmtree(folder if loss == "both" else self._system.lane_folder(self._crate, loss))

    async def drain(self) -> None:
        """Deliver everything, oldest first, until nothing is left."""
        for _ in range(_MOST_DELIVERIES):
            pending = self.pending()
            if not pending:
                break
            await self.deliver(*min(pending, key=lambda each: each[1].position))
        assert not self.pending(), "the steps don't come to an end"
        await self.follow(len(self.log.events))

    # ---- What must hold ----

    async def check(self) -> None:
        """Both lanes show what the log says up to where the rows stand; lanes that are ahead show nothing else."""
        position = await self._system.projection.position()
        shown = self.model.shown(self.log.facts, position)
        # Their packs are gone while the rows don't know it yet: until they do, any of their revisions may be missing.
        going = {f.aggregate for f in self.log.facts if f.name == "DocumentErased" and f.position > position}
        ahead = await self._system.ahead(self._crate)
        for kind in Kind:
            wanted = [record for record in _records(shown, kind) if record[0] not in going]
            found = {
                "keyword": await self._system.by_words(self._crate, " ".join(WORDS), kind),
                "vector": await self._system.by_vector(self._crate, kind),
            }
            for lane, records in found.items():
                assert len(set(records)) == len(records), (lane, kind, records)
                staying = [record for record in records if record[0] not in going]
                if ahead:
                    # The batch that the crash cut off replaced documents that the rows don't know yet.
                    assert set(staying) <= set(wanted), (lane, kind, records, wanted)
                else:
                    assert staying == wanted, (lane, kind, records, wanted)

    async def check_settled(self) -> None:
        """When all is done, lanes show what the commands came to, and hold the history of it and nothing beside."""
        shown = self.model.wanted()
        assert self.model.shown(self.log.facts, self.log.events[-1].position) == shown
        assert [fact.message for fact in self.log.facts if fact.name == "TaskFailed"] == []
        told: dict[tuple[str, str], str] = {}
        for fact in self.log.facts:
            assert told.get((fact.service, fact.aggregate)) != fact.key, "a fact stands in the log twice in a row"
            told[fact.service, fact.aggregate] = fact.key
        await self.check()
        kept = self.model.kept(self.log.facts)
        gone = self.model.gone(self.log.facts)
        findable = {key: each for key, each in kept.items() if key not in gone}
        for kind in Kind:
            records = _kept_records(kept, kind)
            counts = await self._system.held(self._crate)
            assert (counts[f"keyword {kind}"], counts[f"vector {kind}"]) == (len(records), len(records))
            found = _kept_records(findable, kind)
            assert await self._system.by_words(self._crate, " ".join(WORDS), kind, every=True) == found
            assert await self._system.by_vector(self._crate, kind, every=True) == found
        for word in WORDS:
            about = {document: each for document, each in shown.items() if each.text == word}
            assert await self._system.by_words(self._crate, word, Kind.CHUNK) == _records(about, Kind.CHUNK)
        keys = _records(shown, Kind.CHUNK)
        assert await self._system.texts(self._crate, keys) == [shown[key[0]].chunks[key[2]] for key in keys]
        for held in self.model.documents.values():
            if held.state == "erased":
                # Behind the revision lies at most what a put left that didn't live to be recorded.
                assert [n for n in self._system.revisions_kept(held.document_id) if n <= held.revision] == []


def _kept_records(kept: dict[tuple[str, int], Shown], kind: Kind) -> list[Record]:
    """The records of some revisions."""
    return sorted(record for (document, _), each in kept.items() for record in _records({document: each}, kind))


def _records(shown: dict[str, Shown], kind: Kind) -> list[Record]:
    """The records of some documents."""
    return sorted(
        (document, each.revision, ordinal)
        for document, each in shown.items()
        for ordinal in range(len(each.chunks) if kind is Kind.CHUNK else 1)
    )
