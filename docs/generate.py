"""Generate the reference pages from the topology and the contracts: `make docs`."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from services import topology
from services.kernel import envelope

REFERENCE = Path(__file__).resolve().parent / "reference"
_SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.CPPTYPE_STRING: {"type": "string"},
    FieldDescriptor.CPPTYPE_ENUM: {"type": "string"},
    FieldDescriptor.CPPTYPE_FLOAT: {"type": "number"},
    FieldDescriptor.CPPTYPE_DOUBLE: {"type": "number"},
}
_STRING = {"type": "string"}
RELATIONS = ("supersedes", "derived_from", "cites", "elaborates", "implements", "contradicts", "is_version_of")
PUBLISHERS = {
    "address": f"{topology.SUBMIT_SUBJECT}.{{crate}}",
    "description": "Request-reply for systems that own documents; not stored in a stream.",
    "parameters": {"crate": {"description": "Crate id."}},
    "messages": {
        "relation": {
            "name": "dev.affidavit.relation",
            "contentType": "application/cloudevents+json",
            "payload": {
                "type": "object",
                "required": ["specversion", "id", "source", "type", "data"],
                "properties": {
                    "specversion": {"const": "1.0"},
                    "id": _STRING | {"description": "As for a document."},
                    "source": _STRING,
                    "type": {"const": "dev.affidavit.relation.declare"},
                    "subject": _STRING
                    | {"description": "Source id of the document that the relation starts at; or source_document_id."},
                    "time": _STRING | {"format": "date-time"},
                    "data": {
                        "type": "object",
                        "required": ["type"],
                        "properties": {
                            "type": {"enum": list(RELATIONS)},
                            "target": _STRING
                            | {"description": "Source id of the other document; or target_document_id."},
                            "source_document_id": _STRING,
                            "target_document_id": _STRING,
                            "confidence": {"type": "number", "minimum": 0, "maximum": 1, "default": 1},
                            "effective_at": _STRING | {"format": "date-time"},
                            "withdrawn": {"type": "boolean", "default": False},
                        },
                        "additionalProperties": False,
                    },
                },
            },
        },
        "submission": {
            "name": "dev.affidavit.document",
            "contentType": "application/cloudevents+json",
            "payload": {
                "type": "object",
                "required": ["specversion", "id", "source", "type", "subject"],
                "properties": {
                    "specversion": {"const": "1.0"},
                    "id": _STRING
                    | {
                        "description": "With source, the key by which a repeated submission is known, whatever else "
                        "it holds: it is answered with outcome duplicate, and nothing is done."
                    },
                    "source": _STRING,
                    "type": {"enum": [f"dev.affidavit.document.{verb}" for verb in ("put", "retire", "erase")]},
                    "subject": _STRING | {"description": "Source id of the document."},
                    "time": _STRING | {"format": "date-time"},
                    "jobid": _STRING | {"description": "Ingest job, which must exist; job is another name of it."},
                    "effectiveat": _STRING | {"format": "date-time"},
                    "datacontenttype": _STRING,
                    "data": {"description": "The document, up to 512 KiB."},
                    "data_base64": _STRING,
                },
            },
        },
    },
}

REPLIES = {
    "address": None,
    "description": "Replies to submissions, to the subject that the request names.",
    "messages": {
        "reply": {
            "name": "dev.affidavit.document.reply",
            "contentType": "application/json",
            "payload": {
                "oneOf": [
                    {
                        "type": "object",
                        "required": ["position", "revision", "outcome", "document_id", "notices"],
                        "properties": {
                            "position": {
                                "type": "integer",
                                "description": "KNOWLEDGE position of the fact that holds.",
                            },
                            "revision": {"type": "integer"},
                            "outcome": {
                                "enum": [
                                    "created",
                                    "replaced",
                                    "unchanged",
                                    "rechunked",
                                    "retired",
                                    "erased",
                                    "duplicate",
                                ]
                            },
                            "first_outcome": _STRING
                            | {"description": "For duplicate: what the first event came to; so are the other fields."},
                            "document_id": _STRING,
                            "notices": {"type": "array", "items": _STRING},
                        },
                    },
                    {
                        "type": "object",
                        "required": ["position", "outcome", "source_document_id", "target_document_id", "notices"],
                        "properties": {
                            "position": {
                                "type": "integer",
                                "description": "KNOWLEDGE position of the statement that holds.",
                            },
                            "outcome": {"enum": ["declared", "withdrawn", "unchanged", "duplicate"]},
                            "first_outcome": _STRING,
                            "source_document_id": _STRING,
                            "target_document_id": _STRING | {"description": "Empty for duplicate."},
                            "notices": {"type": "array", "items": _STRING},
                        },
                    },
                    {
                        "type": "object",
                        "required": ["error"],
                        "properties": {
                            "error": {"type": "object", "properties": {"code": _STRING, "message": _STRING}}
                        },
                    },
                ]
            },
        }
    },
}
PROGRESS = {
    "address": f"{topology.PROGRESS_SUBJECT}.{{crate}}.{{role}}.{{aggregate}}",
    "description": "Progress of a long task, twice a second while it runs; not stored in a stream, and no event.",
    "parameters": {
        "crate": {"description": "Crate id."},
        "role": {"enum": ["embedder"]},
        "aggregate": {"description": "Opaque id of the document."},
    },
    "messages": {
        "progress": {
            "name": "dev.affidavit.progress",
            "contentType": "application/json",
            "payload": {
                "type": "object",
                "required": ["task", "done"],
                "properties": {
                    "task": _STRING | {"description": "<revision>:<settings digest> of the chunks."},
                    "done": {"type": "integer", "description": "Chunks embedded so far."},
                },
            },
        }
    },
}

_OUTSIDE_OF_STREAMS = {
    "progress.send.embedder": {
        "action": "send",
        "channel": {"$ref": "#/channels/progress"},
        "title": "embedder tells how many chunks of a document are embedded",
    },
    "progress.receive.ingest": {
        "action": "receive",
        "channel": {"$ref": "#/channels/progress"},
        "title": "ingest adds what it last heard to the counts of WatchProgress",
    },
    "submit.receive.ingest": {
        "action": "receive",
        "channel": {"$ref": "#/channels/submit"},
        "title": "ingest takes submissions and replies {position, outcome, ...} or {error}",
        "reply": {"address": {"location": "$message.header#/reply"}, "channel": {"$ref": "#/channels/submit-reply"}},
    },
}


def rows() -> tuple[topology.EventType, ...]:
    """Every event, TaskFailed of each role included."""
    return (*topology.EVENTS, *(topology.task_failed(name) for name in topology.ROLE_NAMES))


def message_class(row: topology.EventType) -> type[Message]:
    """Protobuf class of an event."""
    found: type[Message] = getattr(importlib.import_module(row.module), row.name)
    return found


def subject_template(row: topology.EventType) -> str:
    """Subject of an event with its parameters named."""
    root = topology.SUBJECT_ROOTS[row.stream]
    return f"{root}.{{crate}}.{row.service}.{{aggregate}}.{envelope.subject_token(row.name)}"


def schema(descriptor: Any) -> dict[str, Any]:
    """JSON schema of a message, after the protobuf JSON mapping."""
    if descriptor.full_name == "google.protobuf.Timestamp":
        return {"type": "string", "format": "date-time"}
    return {"type": "object", "properties": {field.name: _field(field) for field in descriptor.fields}}


def _field(field: FieldDescriptor) -> dict[str, Any]:
    if field.message_type is not None:
        inner = schema(field.message_type)
    elif field.enum_type is not None:
        inner = {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    elif field.type == FieldDescriptor.TYPE_BYTES:
        inner = {"type": "string", "contentEncoding": "base64"}
    else:
        inner = dict(_SCALARS.get(field.cpp_type, {"type": "integer"}))
    return {"type": "array", "items": inner} if field.is_repeated else inner


def asyncapi() -> dict[str, Any]:
    """AsyncAPI 3.0 document of every event and of the publishers' subject."""
    channels: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    for row in rows():
        name = f"{row.service}.{row.name}"
        channels[name] = {
            "address": subject_template(row),
            "parameters": {
                "crate": {"description": "Crate id."},
                "aggregate": {"description": "Opaque id of what the event is about."},
            },
            "messages": {row.name: {"$ref": f"#/components/messages/{name}"}},
        }
        messages[name] = {
            "name": row.type_uri,
            "contentType": envelope.CONTENT_TYPE,
            "headers": {"type": "object", "properties": {key: {"type": "string"} for key in envelope.HEADER_NAMES}},
            "payload": schema(message_class(row).DESCRIPTOR),
        }
        operations[f"{name}.send"] = {
            "action": "send",
            "channel": {"$ref": f"#/channels/{name}"},
            "title": f"{row.service} emits {row.name} into {row.stream}",
        }
        for role in topology.ROLES:
            if row.name in role.consumes:
                operations[f"{name}.receive.{role.name}"] = {
                    "action": "receive",
                    "channel": {"$ref": f"#/channels/{name}"},
                    "title": f"{role.name} follows {row.name}",
                }
    channels |= {"progress": PROGRESS, "submit": PUBLISHERS, "submit-reply": REPLIES}
    operations |= _OUTSIDE_OF_STREAMS
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "affidavit", "version": "0.1.0", "license": {"name": "Apache-2.0"}},
        "defaultContentType": envelope.CONTENT_TYPE,
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def topology_page() -> str:
    """The pipeline as a picture and as tables."""
    lines = [
        "# Topology",
        "",
        "Generated from `services/topology.py` by `make docs`.",
        "",
        "```mermaid",
        "flowchart LR",
    ]
    for role in topology.ROLES:
        sources = {row.service for row in topology.EVENTS if row.name in role.consumes} - {role.name}
        lines += [f"    {source} --> {role.name}" for source in topology.ROLE_NAMES if source in sources]
    lines += [f"    query -. rpc .-> {name}" for name in ("index", "embedder", "citation", "receipt")]
    lines += ["```", "", "| role | consumes | emits | serves | stores |", "| --- | --- | --- | --- | --- |"]
    for role in topology.ROLES:
        emits = ", ".join(row.name for row in topology.EVENTS if row.service == role.name) or "-"
        consumes = ", ".join(role.consumes) or "-"
        lines.append(f"| {role.name} | {consumes} | {emits} | {', '.join(role.serves)} | {role.stores} |")
    lines += ["", "| event | stream | subject |", "| --- | --- | --- |"]
    lines += [f"| {row.service} {row.name} | {row.stream} | `{subject_template(row)}` |" for row in rows()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the pages."""
    REFERENCE.mkdir(exist_ok=True)
    (REFERENCE / "asyncapi.json").write_text(json.dumps(asyncapi(), indent=2) + "\n")
    (REFERENCE / "topology.md").write_text(topology_page())


if __name__ == "__main__":
    main()
