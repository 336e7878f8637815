"""Publishers' events, CloudEvents 1.0 in structured JSON -> submissions; replies -> JSON.

Source: CloudEvents JSON event format 1.0.2. Extension attributes that have no meaning here are the document's metadata.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Refused

MAX_BODY_BYTES: Final = 512 * 1024
# A body of the largest size in base64, and room for its attributes.
MAX_EVENT_BYTES: Final = 960 * 1024
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
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
DUPLICATE: Final = "duplicate"


class SubmissionKind(StrEnum):
    """What a publisher asks for."""

    PUT = "dev.affidavit.document.put"
    RETIRE = "dev.affidavit.document.retire"
    ERASE = "dev.affidavit.document.erase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One event of a publisher.

    Attributes:
        kind: What it asks for.
        source: Who sends it; with `event_id` it names the event.
        event_id: Unique for its source.
        header: What it says about the document; for a retire or an erase only the source id.
        body: Original bytes; empty for a retire or an erase.
    """

    kind: SubmissionKind
    source: str
    event_id: str
    header: Header
    body: bytes


def submission(payload: bytes) -> Submission:
    """Read a publisher's event.

    Args:
        payload: CloudEvents JSON.

    Returns:
        The submission; its header is checked later.

    Raises:
        Refused: When it isn't one; the message names the attribute and what belongs there.
    """
    event = _parse(payload)
    if event.get("specversion") != "1.0":
        raise Refused('specversion must be "1.0": send CloudEvents 1.0 in structured JSON')
    kind_name = _required(event, "type")
    try:
        kind = SubmissionKind(kind_name)
    except ValueError as error:
        raise Refused(f"type {kind_name[:80]!r} is unknown: use one of {', '.join(SubmissionKind)}") from error
    source, event_id = _required(event, "source"), _required(event, "id")
    subject = _required(event, "subject")
    _moment(event, "time")
    if kind is not SubmissionKind.PUT:
        return Submission(kind=kind, source=source, event_id=event_id, header=Header(source_id=subject), body=b"")
    media_type, charset = _content_type(_text(event, "datacontenttype"))
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
        effective_at=_moment(event, _EFFECTIVE),
        **{field: _text(event, name) for name, field in _HEADER.items()} | {"job_id": _job(event)},
    )
    return Submission(kind=kind, source=source, event_id=event_id, header=header, body=body)


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
        answer["notices"] = ["an event of this source and id was carried out before: what this one holds was not used"]
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


def _parse(payload: bytes) -> dict[str, Any]:
    if len(payload) > MAX_EVENT_BYTES:
        raise Refused(
            f"the event has {len(payload)} bytes: at most {MAX_EVENT_BYTES}; send large bodies with UploadDocument"
        )
    try:
        event = json.loads(payload, parse_constant=_no_constant)
    except RecursionError as error:
        raise Refused("the event is nested too deeply to be read") from error
    except ValueError as error:
        raise Refused(f"the event isn't JSON: {_where(error)}") from error
    if not isinstance(event, dict):
        raise Refused("the event isn't a JSON object: send one CloudEvents 1.0 event, no batch")
    return event


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "it must be UTF-8 and hold finite numbers"


def _text(event: dict[str, Any], name: str) -> str:
    value = event.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(f"{name} must be a string")
    return value


def _required(event: dict[str, Any], name: str) -> str:
    value = _text(event, name)
    if not value:
        hint = "the document's source id" if name == "subject" else "see the CloudEvents 1.0 specification"
        raise Refused(f"{name} is missing or empty: {hint}")
    return value


def _content_type(value: str) -> tuple[str, str]:
    media_type, *parameters = value.split(";")
    for parameter in parameters:
        name, _, given = parameter.strip().partition("=")
        if name.strip().lower() == "charset":
            return media_type.strip().lower(), given.strip().strip('"')
    return media_type.strip().lower(), ""


def _body(event: dict[str, Any], media_type: str) -> bytes:
    if ("data" in event) == ("data_base64" in event):
        raise Refused("the event must have either data or data_base64")
    if "data_base64" in event:
        encoded = _text(event, "data_base64")
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
    named = [name for name in ("jobid", _JOB) if _text(event, name)]
    if len(named) > 1 and event["jobid"] != event[_JOB]:
        raise Refused("jobid and job name different jobs: send one of the two")
    return _text(event, named[0]) if named else ""


def _moment(event: dict[str, Any], name: str) -> datetime | None:
    given = _text(event, name)
    if not given:
        return None
    try:
        moment = datetime.fromisoformat(given.upper())
    except ValueError as error:
        raise Refused(f"{name} {given[:40]!r} isn't an RFC 3339 time") from error
    if moment.tzinfo is None:
        raise Refused(f"{name} {given[:40]!r} names no time zone: end it with Z or an offset")
    if not _RFC_3339.fullmatch(given):
        raise Refused(f"{name} {given[:40]!r} isn't an RFC 3339 time")
    return moment
