"""What ought to be searchable: once told by the commands alone, once by a prefix of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from affidavit.embedder.v1.embedder_events_pb2 import RecordsEmbedded
from affidavit.ingest.v1.ingest_events_pb2 import DocumentErased, DocumentIngested, DocumentRetired

from services.kernel.envelope import Event

WHOLE, SMALL = "", "small"
SMALL_SIZE = 50
# Each paragraph fills a small chunk, so that not one word more fits in; all of a text fits into a whole one.
TEXTS: dict[str, tuple[str, ...]] = {
    "anchor": ("The anchor weighs eleven tons, says the yard.", "Anchorage dues cover one anchor and its chain."),
    "beacon": ("A beacon stands on the northern mole of it.",),
    "cargo": (
        "No cargo is stowed before the mate says yes.",
        "Wherever cargo is wet, it goes aft at once.",
        "Everywhere cargo is weighed by two people.",
    ),
    "empty": (),
}
WORDS = tuple(TEXTS)


def body(text: str) -> bytes:
    """A document of that text."""
    return "\n\n".join(TEXTS[text]).encode()


def chunks(text: str, *, small: bool) -> tuple[str, ...]:
    """The chunks that it is cut into."""
    paragraphs = TEXTS[text]
    return paragraphs if small or not paragraphs else ("\n\n".join(paragraphs),)


@dataclass(frozen=True, slots=True)
class Shown:
    """What searches find of a document."""

    revision: int
    text: str
    small: bool

    @property
    def chunks(self) -> tuple[str, ...]:
        return chunks(self.text, small=self.small)


@dataclass(slots=True)
class Document:
    """A document as its owner knows it."""

    document_id: str = ""
    revision: int = 0
    text: str = ""
    small: bool = False
    state: str = ""


@dataclass(slots=True)
class Model:
    """All documents of a crate."""

    documents: dict[str, Document] = field(default_factory=dict)
    texts: dict[tuple[str, int], str] = field(default_factory=dict)

    def outcome(self, name: str, text: str, *, small: bool) -> str:
        """What a put must come to."""
        held = self.documents.get(name)
        if held is None:
            return "created"
        if held.state != "in force" or held.text != text:
            return "replaced"
        return "unchanged" if held.small == small else "rechunked"

    def put(self, name: str, document_id: str, text: str, *, small: bool) -> Document:
        """A put was recorded."""
        outcome = self.outcome(name, text, small=small)
        held = self.documents.setdefault(name, Document())
        held.document_id = document_id
        if outcome in ("created", "replaced"):
            held.revision += 1
        held.text, held.small, held.state = text, small, "in force"
        self.texts[document_id, held.revision] = text
        return held

    def end(self, name: str, state: str) -> None:
        """A document was retired or erased."""
        self.documents[name].state = state

    def wanted(self) -> dict[str, Shown]:
        """What is searchable once everything was handled: what the commands came to, whatever the log says."""
        return {
            held.document_id: Shown(held.revision, held.text, held.small)
            for held in self.documents.values()
            if held.state == "in force" and TEXTS[held.text]
        }

    def shown(self, log: Sequence[Event], position: int) -> dict[str, Shown]:
        """What is searchable when the index has applied the log up to a position.

        A revision with its vectors, if at that point of the log it was the newest that was asked for, cut as was asked
        for last, of a document in force; it stays until the next one that is, or until the document ends.
        """
        asked: dict[str, DocumentIngested] = {}
        found: dict[str, Shown] = {}
        for event in log:
            message = event.message
            if event.position > position:
                break
            if isinstance(message, DocumentIngested):
                asked[message.document_id] = message
            elif isinstance(message, DocumentRetired | DocumentErased):
                asked.pop(message.document_id, None)
                found.pop(message.document_id, None)
            elif isinstance(message, RecordsEmbedded):
                wanted = asked.get(message.document_id)
                if wanted and (wanted.revision, wanted.settings_digest) == (message.revision, message.settings_digest):
                    text = self.texts[message.document_id, message.revision]
                    found[message.document_id] = Shown(message.revision, text, wanted.chunking.size_chars == SMALL_SIZE)
        return {document: shown for document, shown in found.items() if shown.chunks}

    def kept(self, log: Sequence[Event]) -> dict[tuple[str, int], Shown]:
        """What the lanes hold by document and revision once the index has applied the whole log.

        Every revision with its vectors, cut as was asked for last while it was the newest, of a document that isn't erased.
        """
        asked: dict[tuple[str, int], DocumentIngested] = {}
        newest: dict[str, int] = {}
        found: dict[tuple[str, int], Shown] = {}
        for event in log:
            message = event.message
            if isinstance(message, DocumentIngested):
                if message.revision >= newest.get(message.document_id, 1):
                    newest[message.document_id] = message.revision
                    asked[message.document_id, message.revision] = message
            elif isinstance(message, DocumentErased):
                newest[message.document_id] = max(newest.get(message.document_id, 0), message.revision) + 1
                for rows in (asked, found):
                    for key in [key for key in rows if key[0] == message.document_id]:
                        del rows[key]
            elif isinstance(message, RecordsEmbedded):
                key = (message.document_id, message.revision)
                if key in asked and asked[key].settings_digest == message.settings_digest:
                    small = asked[key].chunking.size_chars == SMALL_SIZE
                    found[key] = Shown(message.revision, self.texts[key], small)
        return {key: shown for key, shown in found.items() if shown.chunks}

    def gone(self, log: Sequence[Event]) -> set[tuple[str, int]]:
        """Revisions whose document was retired after they came: the lanes hold them, and no search finds them now."""
        known: set[tuple[str, int]] = set()
        gone: set[tuple[str, int]] = set()
        for message in (event.message for event in log):
            if isinstance(message, DocumentIngested):
                known.add((message.document_id, message.revision))
            elif isinstance(message, DocumentRetired):
                gone |= {key for key in known if key[0] == message.document_id}
        return gone
