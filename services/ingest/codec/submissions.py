"""Publishers' events, CloudEvents 1.0 in structured JSON -> submissions; replies -> JSON.

Source: CloudEvents JSON event format 1.0.2. Extension attributes that have no meaning here are the document's metadata.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from services.ingest.codec.cloudevents import content_type, moment, parse, required, text
from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Refused
from services.ingest.domain.relations import End, RelationResult, Statement

MAX_BODY_BYTES: Final = 512 * 1024
_CONTEXT: Final = frozenset(
    {
        "specversion",
        "id",
        "source",
        "type",
        "subject",
        "time",
        "data",
        "data_base64",
        "datacontenttype",
        "dataschema",
        "traceparent",
        "tracestate",
    }
)
_HEADER: Final = {"uri": "uri", "title": "title", "jobid": "job_id", "sourcedomain": "source_domain"}
# The attribute's other name: as metadata, a job that there isn't would go unnoticed.
_JOB: Final = "job"
_EFFECTIVE: Final = "effectiveat"
DUPLICATE: Final = "duplicate"
_REPEATED: Final = "an event of this source and id was carried out before: what this one holds was not used"
# What `data` of a relation may hold; the source is the event's subject, or `source_document_id`.
_RELATION: Final = (
    "type",
    "target",
    "target_document_id",
    "source_document_id",
    "confidence",
    "effective_at",
    "withdrawn",
)


class SubmissionKind(StrEnum):
    """What a publisher asks for."""

    PUT = "dev.affidavit.document.put"
    RETIRE = "dev.affidavit.document.retire"
    ERASE = "dev.affidavit.document.erase"
    RELATE = "dev.affidavit.relation.declare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One event of a publisher.

    Attributes:
        kind: What it asks for.
        source: Who sends it; with `event_id` it names the event.
        event_id: Unique for its source.
        header: What it says about the document; for a retire or an erase only the source id.
        body: Original bytes; empty for a retire or an erase.
        sent_at: The publisher's time; None when the event has none.
        statement: What it states about a relation; None for a document.
    """

    kind: SubmissionKind
    source: str
    event_id: str
    header: Header
    body: bytes = b""
    sent_at: datetime | None = None
    statement: Statement | None = None


def submission(payload: bytes) -> Submission:
    """Read a publisher's event.

    Args:
        payload: CloudEvents JSON.

    Returns:
        The submission; its header is checked later.

    Raises:
        Refused: When it isn't one; the message names the attribute and what belongs there.
    """
    event = parse(payload)
    kind_name = required(event, "type")
    try:
        kind = SubmissionKind(kind_name)
    except ValueError as error:
        raise Refused(f"type {kind_name[:80]!r} is unknown: use one of {', '.join(SubmissionKind)}") from error
    source, event_id = required(event, "source"), required(event, "id")
    sent_at = moment(event, "time")
    if kind is SubmissionKind.RELATE:
        return Submission(
            kind=kind,
            source=source,
            event_id=event_id,
            header=Header(source_id=text(event, "subject")),
            sent_at=sent_at,
            statement=_statement(event),
        )
    subject = required(event, "subject")
    if kind is not SubmissionKind.PUT:
        header = Header(source_id=subject)
        return Submission(kind=kind, source=source, event_id=event_id, header=header, sent_at=sent_at)
    media_type, charset = content_type(text(event, "datacontenttype"))
    body = _body(event, media_type)
    if len(body) > MAX_BODY_BYTES:
        raise Refused(
            f"the body of {subject[:80]!r} has {len(body)} bytes: events hold at most {MAX_BODY_BYTES}, "
            "send it with UploadDocument"
        )
    header = Header(
        source_id=subject,
        media_type=media_type,
        # Text in JSON is Unicode, whatever the content type says of a charset.
        charset=charset if "data_base64" in event else "utf-8",
        metadata=_metadata(event),
        effective_at=moment(event, _EFFECTIVE),
        **{field: text(event, name) for name, field in _HEADER.items()} | {"job_id": _job(event)},
    )
    return Submission(kind=kind, source=source, event_id=event_id, header=header, body=body, sent_at=sent_at)


def _statement(event: dict[str, Any]) -> Statement:
    data = event.get("data")
    if not isinstance(data, dict) or "data_base64" in event:
        raise Refused(f"data must be a JSON object with some of {', '.join(_RELATION)}")
    unknown = sorted(data.keys() - set(_RELATION))
    if unknown:
        raise Refused(f"data has {unknown[0][:80]!r}, which a relation doesn't have: use {', '.join(_RELATION)}")
    misplaced = sorted(event.keys() & ({*_RELATION, _EFFECTIVE} - _CONTEXT))
    if misplaced:
        raise Refused(
            f"{misplaced[0]} is no attribute of a relation's event: put it into data, as one of {', '.join(_RELATION)}"
        )
    confidence = data.get("confidence")
    if confidence is not None and (isinstance(confidence, bool) or not isinstance(confidence, int | float)):
        raise Refused("confidence must be a number from 0 to 1")
    withdrawn = data.get("withdrawn", False)
    if not isinstance(withdrawn, bool):
        raise Refused("withdrawn must be true or false")
    return Statement(
        source=End(document_id=text(data, "source_document_id"), source_id=text(event, "subject")),
        type=required(data, "type"),
        target=End(document_id=text(data, "target_document_id"), source_id=text(data, "target")),
        confidence=None if confidence is None else _number(confidence),
        effective_at=moment(data, "effective_at"),
        withdrawn=withdrawn,
    )


def _number(value: float) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise Refused("confidence must be a number from 0 to 1") from error


def reply(
    *,
    position: int,
    revision: int,
    outcome: str,
    document_id: str,
    notices: tuple[str, ...] = (),
    repeats: bool = False,
) -> bytes:
    """Write what a submission came to.

    Args:
        position: KNOWLEDGE position of the fact that holds.
        revision: Revision of the document.
        outcome: In a word.
        document_id: Document.
        notices: What the publisher should know.
        repeats: True when an event of that source and id was carried out before: position, revision and outcome are
            what it came to then, and nothing was done now.

    Returns:
        JSON.
    """
    answer: dict[str, object] = {
        "position": position,
        "revision": revision,
        "outcome": DUPLICATE if repeats else outcome,
        "document_id": document_id,
        "notices": list(notices),
    }
    if repeats:
        answer["first_outcome"] = outcome
        answer["notices"] = [_REPEATED]
    return json.dumps(answer).encode()


def relation_reply(result: RelationResult, notices: tuple[str, ...] = ()) -> bytes:
    """Write what a statement about a relation came to.

    Args:
        result: Of the command; one that repeats an earlier event tells what that came to.
        notices: What the publisher should know.

    Returns:
        JSON.
    """
    answer: dict[str, object] = {
        "position": result.position,
        "outcome": DUPLICATE if result.repeats else result.outcome,
        "source_document_id": result.source,
        "target_document_id": result.target,
        "notices": [*notices, _REPEATED] if result.repeats else list(notices),
    }
    if result.repeats:
        answer["first_outcome"] = result.outcome
    return json.dumps(answer).encode()


def refusal(code: str, message: str) -> bytes:
    """Write why a submission was refused.

    Args:
        code: Stable code of the outcome.
        message: What happened and what to do next.

    Returns:
        JSON.
    """
    return json.dumps({"error": {"code": code, "message": message}}).encode()


def _body(event: dict[str, Any], media_type: str) -> bytes:
    if ("data" in event) == ("data_base64" in event):
        raise Refused("the event must have either data or data_base64")
    if "data_base64" in event:
        encoded = text(event, "data_base64")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise Refused("data_base64 isn't base64") from error
    data = event["data"]
    if not media_type or media_type == "application/json" or media_type.endswith("+json"):
        return json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if not isinstance(data, str):
        raise Refused(f"data must be a string for {media_type}, or use data_base64")
    return data.encode("utf-8", "surrogatepass")


def _metadata(event: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    known = _CONTEXT | _HEADER.keys() | {_EFFECTIVE, _JOB}
    entries = []
    for name in sorted(event.keys() - known):
        value = event[name]
        if value is None:
            continue
        if isinstance(value, bool):
            value = str(value).lower()
        if not isinstance(value, str | int):
            raise Refused(f"attribute {name[:80]!r} must be a string, an integer or a boolean")
        entries.append((name, str(value)))
    return tuple(entries)


def _job(event: dict[str, Any]) -> str:
    named = [name for name in ("jobid", _JOB) if text(event, name)]
    if len(named) > 1 and event["jobid"] != event[_JOB]:
        raise Refused("jobid and job name different jobs: send one of the two")
    return text(event, named[0]) if named else ""
