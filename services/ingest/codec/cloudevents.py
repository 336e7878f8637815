"""CloudEvents 1.0 in structured JSON: attributes by name, each checked.

Source: CloudEvents JSON event format 1.0.2.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from services.ingest.domain.refusals import Refused

# A body of the largest size in base64, and room for its attributes.
MAX_EVENT_BYTES: Final = 960 * 1024
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def parse(payload: bytes) -> dict[str, Any]:
    """Read one event.

    Raises:
        Refused: When it is too large, or no JSON object of version 1.0.
    """
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
    if event.get("specversion") != "1.0":
        raise Refused('specversion must be "1.0": send CloudEvents 1.0 in structured JSON')
    return event


def text(event: dict[str, Any], name: str) -> str:
    """An attribute that is a string, empty when it is absent.

    Raises:
        Refused: When it is something else.
    """
    value = event.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused(f"{name} must be a string")
    return value


def required(event: dict[str, Any], name: str) -> str:
    """An attribute that has to be there.

    Raises:
        Refused: When it is missing, empty or no string.
    """
    value = text(event, name)
    if not value:
        hint = "the document's source id" if name == "subject" else "see the CloudEvents 1.0 specification"
        raise Refused(f"{name} is missing or empty: {hint}")
    return value


def content_type(value: str) -> tuple[str, str]:
    """Media type in lower case, and its charset parameter."""
    media_type, *parameters = value.split(";")
    for parameter in parameters:
        name, _, given = parameter.strip().partition("=")
        if name.strip().lower() == "charset":
            return media_type.strip().lower(), given.strip().strip('"')
    return media_type.strip().lower(), ""


def moment(event: dict[str, Any], name: str) -> datetime | None:
    """An attribute that is a time, None when it is absent.

    Raises:
        Refused: When it is no RFC 3339 time with a zone.
    """
    given = text(event, name)
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


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _where(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    return "it must be UTF-8 and hold finite numbers"
