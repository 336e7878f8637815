"""One stored event of every released type and version: `python -m tests.contract.event_samples` writes what is missing.

A sample is never written again: it stands for what logs out there hold.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from docs import generate
from services import topology
from services.kernel import envelope

SAMPLES = Path(__file__).with_name("events")
_TIME = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_SCALARS: dict[int, Any] = {
    FieldDescriptor.CPPTYPE_STRING: "text",
    FieldDescriptor.CPPTYPE_BOOL: True,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.5,
    FieldDescriptor.CPPTYPE_FLOAT: 0.5,
}


def path(row: topology.EventType, version: int) -> Path:
    """Where a sample lies."""
    return SAMPLES / f"{row.service}.{row.name}.v{version}.json"


def write_missing() -> list[Path]:
    """Write samples of types and versions that have none.

    Returns:
        Those that were written.
    """
    written = []
    for row in generate.rows():
        target = path(row, row.version)
        if target.exists():
            continue
        message = generate.message_class(row)()
        _fill(message)
        headers, body = envelope.encode(message, row, crate="main", aggregate="a1", key="a1:1", time=_TIME)
        sample = {
            "stream": row.stream,
            "subject": envelope.subject(row, crate="main", aggregate="a1"),
            "headers": headers,
            "body": base64.b64encode(body).decode(),
            "message": MessageToDict(message, preserving_proto_field_name=True),
        }
        SAMPLES.mkdir(exist_ok=True)
        target.write_text(json.dumps(sample, indent=2) + "\n")
        written.append(target)
    return written


def _fill(message: Message, depth: int = 0) -> None:
    """Give every field a value."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            values = field.message_type.fields_by_name["value"]
            if values.message_type is None:
                getattr(message, field.name)["key"] = _scalar(values)
        elif field.message_type is not None:
            if depth < 3:
                held = getattr(message, field.name)
                _fill(held.add() if field.is_repeated else held, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).append(_scalar(field))
        else:
            setattr(message, field.name, _scalar(field))


def _scalar(field: Any) -> Any:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes(range(32))
    if field.enum_type is not None:
        return field.enum_type.values[-1].number
    return _SCALARS.get(field.cpp_type, field.number)


if __name__ == "__main__":
    for made in write_missing():
        print(made)  # noqa: T201  (a tool for developers)
