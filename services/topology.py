"""The eight roles in pipeline order and every event between them, as data.

The bus derives subjects and consumers from these tables, the documentation its picture, the AsyncAPI document its
messages. Source: the service table of the architecture document.
"""

from __future__ import annotations

from dataclasses import dataclass

KNOWLEDGE = "KNOWLEDGE"
SIGNALS = "SIGNALS"
SUBJECT_ROOTS = {KNOWLEDGE: "affidavit.k", SIGNALS: "affidavit.s"}
SUBMIT_SUBJECT = "affidavit.submit"
# Of the prompts that make propositions; a generation fixes it.
PROMPT_VERSION = "1"
# How far long tasks are; outside of both streams, so that nothing of it is kept.
PROGRESS_SUBJECT = "affidavit.progress"


@dataclass(frozen=True, slots=True)
class EventType:
    """One kind of event.

    Attributes:
        name: Message name, past tense.
        service: Role that emits it and owns its message.
        stream: KNOWLEDGE for facts, SIGNALS for what follows from facts or from use.
        module: Python module of the message.
        version: Schema version that is written; the log may hold older ones, see services/kernel/upcasting.py.
    """

    name: str
    service: str
    stream: str
    module: str
    version: int = 1

    @property
    def type_uri(self) -> str:
        """CloudEvents type: the message's full protobuf name."""
        return f"{self.module.rsplit('.', 1)[0]}.{self.name}"


@dataclass(frozen=True, slots=True)
class Role:
    """One of the eight services.

    Attributes:
        name: Service name, also its folder, Postgres schema and subject token.
        consumes: Names of the events that it reads.
        serves: Full names of its gRPC services.
        stores: What it keeps, in words.
    """

    name: str
    consumes: tuple[str, ...]
    serves: tuple[str, ...]
    stores: str


def _events(service: str, stream: str, *names: str) -> tuple[EventType, ...]:
    module = f"affidavit.{service}.v1.{service}_events_pb2"
    return tuple(EventType(name, service, stream, module) for name in names)


EVENTS: tuple[EventType, ...] = (
    *_events(
        "ingest",
        KNOWLEDGE,
        "CrateConfigured",
        "JobConfigured",
        "DocumentIngested",
        "DocumentRetired",
        "DocumentErased",
        "RelationDeclared",
        "SubmissionUnchanged",
        "ClockAdvanced",
    ),
    EventType("TaskRetried", "ingest", KNOWLEDGE, "affidavit.event.v1.envelope_pb2"),
    EventType("TaskDropped", "ingest", KNOWLEDGE, "affidavit.event.v1.envelope_pb2"),
    *_events("chunker", KNOWLEDGE, "DocumentChunked"),
    *_events("proposition", KNOWLEDGE, "PropositionsEvaluated"),
    *_events("embedder", KNOWLEDGE, "RecordsEmbedded"),
    *_events("index", KNOWLEDGE, "GenerationStarted", "GenerationActivated", "GenerationFailed"),
    *_events("index", SIGNALS, "RevisionIndexed", "LivingStateChanged"),
    *_events("query", SIGNALS, "AnswerIssued"),
    *_events("citation", SIGNALS, "CitationRepaired"),
    *_events("receipt", SIGNALS, "CheckpointSigned", "ReceiptIssued", "AnswerAffected"),
)

# After it, nothing about its aggregate that came before needs to be done any more.
ERASURE = ("ingest", "DocumentErased")
# The newest one of a revision says which packs it stands on.
INGESTION = ("ingest", "DocumentIngested")

# Emitted by every role through the kernel: a fact for the pipeline's services, a signal for the others.
TASK_FAILED = "TaskFailed"
# Hands the event of a TaskFailed to its role again; every role of the pipeline follows it.
TASK_RETRIED = "TaskRetried"
TASK_FAILED_MODULE = "affidavit.event.v1.envelope_pb2"
PIPELINE = ("ingest", "chunker", "proposition", "embedder", "index")

ROLES: tuple[Role, ...] = (
    Role(
        "ingest",
        (
            "CrateConfigured",
            "JobConfigured",
            "DocumentIngested",
            "DocumentRetired",
            "DocumentErased",
            "RelationDeclared",
            "SubmissionUnchanged",
            "DocumentChunked",
            "RecordsEmbedded",
            "RevisionIndexed",
            "TaskFailed",
            "TaskRetried",
            "TaskDropped",
        ),
        ("affidavit.ingest.v1.IngestService",),
        "crates, settings, providers, jobs, documents, failures",
    ),
    Role(
        "chunker",
        ("DocumentIngested", "DocumentErased", "TaskRetried"),
        ("affidavit.chunker.v1.ChunkerService",),
        "nothing",
    ),
    Role(
        "proposition",
        ("DocumentChunked", "DocumentErased", "TaskRetried"),
        ("affidavit.proposition.v1.PropositionService",),
        "evaluations",
    ),
    Role(
        "embedder",
        ("DocumentChunked", "PropositionsEvaluated", "DocumentErased", "TaskRetried"),
        ("affidavit.embedder.v1.EmbedderService",),
        "nothing",
    ),
    Role(
        "index",
        (
            "CrateConfigured",
            "DocumentIngested",
            "DocumentRetired",
            "DocumentErased",
            "RecordsEmbedded",
            "GenerationStarted",
            "GenerationActivated",
            "GenerationFailed",
            "TaskRetried",
            "RelationDeclared",
            "ClockAdvanced",
        ),
        ("affidavit.index.v1.IndexService",),
        "both lanes, generations, chunks, relations, living states",
    ),
    Role("query", (), ("affidavit.query.v1.QueryService",), "nothing"),
    Role("citation", (), ("affidavit.citation.v1.CitationService",), "nothing"),
    Role(
        "receipt",
        ("ReceiptIssued", "DocumentErased"),
        ("affidavit.receipt.v1.ReceiptService",),
        "keys, chains, disclosures",
    ),
)

ROLE_NAMES = tuple(role.name for role in ROLES)


def role(name: str) -> Role:
    """Find a role.

    Args:
        name: One of `ROLE_NAMES`.

    Returns:
        The role.

    Raises:
        KeyError: When there is no such role; the message lists those that exist.
    """
    for candidate in ROLES:
        if candidate.name == name:
            return candidate
    raise KeyError(f"there is no role {name!r}: choose from {', '.join(ROLE_NAMES)}")


def task_failed(service: str) -> EventType:
    """TaskFailed as the given role emits it."""
    stream = KNOWLEDGE if service in PIPELINE else SIGNALS
    return EventType(TASK_FAILED, service, stream, TASK_FAILED_MODULE)


_READS = (
    "Get",
    "List",
    "Read",
    "Watch",
    "Search",
    "Fetch",
    "Ask",
    "Preview",
    "Embed",
    "Rerank",
    "Repair",
    "Verify",
    "Prove",
)
_WRITES = ("Put", "Upload", "Retire", "Declare", "Issue", "Retry", "Drop")
_OWNS = ("Create", "Configure", "Erase", "Rebuild", "Replay")
_OWNER_RPCS = ("PutProvider",)


def rpc_grant(method: str) -> str:
    """Role that a caller needs on the crate.

    Args:
        method: Full RPC name, "/package.Service/Method".

    Returns:
        "reader", "writer" or "owner".

    Raises:
        KeyError: When the method's verb is in no list: a new RPC must be given a grant before it can be called.
    """
    name = method.rsplit("/", 1)[-1]
    if name in _OWNER_RPCS or name.startswith(_OWNS):
        return "owner"
    if name.startswith(_WRITES):
        return "writer"
    if name.startswith(_READS):
        return "reader"
    raise KeyError(f"{method} has no grant: add its verb to services/topology.py")
