from __future__ import annotations

from datetime import UTC, datetime

import pytest
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2
from hypothesis import given
from hypothesis import strategies as st

from services import topology
from services.kernel import envelope
from services.kernel.envelope import Event, Poison

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TOKENS = st.from_regex(r"[a-z0-9-]{1,40}", fullmatch=True)


def round_trip(message: ingest_events_pb2.DocumentIngested, *, crate: str, aggregate: str, key: str) -> Event | Poison:
    row = envelope.event_type("DocumentIngested", "ingest")
    headers, body = envelope.encode(message, row, crate=crate, aggregate=aggregate, key=key, time=NOW)
    subject = envelope.subject(row, crate=crate, aggregate=aggregate)
    return envelope.decode(stream="KNOWLEDGE", subject=subject, headers=headers, body=body, position=7)


@given(crate=TOKENS, aggregate=TOKENS, key=st.text(min_size=1, max_size=50), revision=st.integers(0, 2**32 - 1))
def test_an_event_comes_back_as_it_was(crate: str, aggregate: str, key: str, revision: int) -> None:
    message = ingest_events_pb2.DocumentIngested(document_id=aggregate, revision=revision)
    event = round_trip(message, crate=crate, aggregate=aggregate, key=key)
    assert isinstance(event, Event)
    assert event.message == message
    assert (event.crate, event.aggregate, event.key, event.time) == (crate, aggregate, key, NOW)
    assert (event.service, event.name, event.position) == ("ingest", "DocumentIngested", 7)


def test_headers_follow_the_binary_mode_of_cloudevents() -> None:
    row = envelope.event_type("DocumentIngested", "ingest")
    headers, _ = envelope.encode(
        ingest_events_pb2.DocumentIngested(), row, crate="main", aggregate="d1", key="1:übung", time=NOW
    )
    assert headers == {
        "ce-specversion": "1.0",
        "ce-id": "1:%C3%BCbung",
        "ce-type": "affidavit.ingest.v1.DocumentIngested",
        "ce-source": "/affidavit/ingest",
        "ce-subject": "main/d1",
        "ce-time": "2026-01-02T03:04:05Z",
        "ce-datacontenttype": "application/protobuf",
        "ce-schemaversion": "1",
    }
    assert set(headers) | {"traceparent"} == set(envelope.HEADER_NAMES)


@pytest.mark.parametrize(
    ("subject", "change", "body", "reason"),
    [
        ("affidavit.k.main.ingest.d1", {}, b"", "ValueError"),
        ("affidavit.k.main.ingest.d1.document_invented", {}, b"", "unknown event"),
        ("affidavit.k.main.query.d1.answer_issued", {}, b"", "unknown event"),
        (
            "affidavit.k.main.ingest.d1.document_ingested",
            {"ce-schemaversion": "9"},
            b"",
            "schema version 9 of DocumentIngested",
        ),
        ("affidavit.k.main.ingest.d1.document_ingested", {"ce-id": None}, b"", "ce-id"),
        ("affidavit.k.main.ingest.d1.document_ingested", {"ce-time": "yesterday"}, b"", "ValueError"),
        ("affidavit.k.main.ingest.d1.document_ingested", {}, b"\xff\xff", "DecodeError"),
    ],
)
def test_what_cannot_be_read_becomes_poison(
    subject: str, change: dict[str, str | None], body: bytes, reason: str
) -> None:
    headers: dict[str, str | None] = {"ce-schemaversion": "1", "ce-id": "1", "ce-time": "2026-01-02T03:04:05Z"}
    headers.update(change)
    found = envelope.decode(
        stream="KNOWLEDGE",
        subject=subject,
        headers={name: value for name, value in headers.items() if value is not None},
        body=body,
        position=3,
    )
    assert isinstance(found, Poison)
    assert reason in found.reason
    assert found.position == 3


def test_events_are_small() -> None:
    row = envelope.event_type("DocumentIngested", "ingest")
    message = ingest_events_pb2.DocumentIngested(job_id="x" * (64 * 1024))
    with pytest.raises(ValueError, match="events hold at most 65536"):
        envelope.encode(message, row, crate="main", aggregate="d1", key="1", time=NOW)


@pytest.mark.parametrize("token", ["", "a.b", "a b", "*", ">", "x" * 65])
def test_subject_tokens_are_plain(token: str) -> None:
    row = envelope.event_type("DocumentIngested", "ingest")
    with pytest.raises(ValueError, match="can't stand in a subject"):
        envelope.subject(row, crate="main", aggregate=token)


def test_a_role_emits_only_its_own_events() -> None:
    with pytest.raises(KeyError, match="topology"):
        envelope.event_type("DocumentIngested", "chunker")


@pytest.mark.parametrize("role", topology.ROLE_NAMES)
def test_task_failed_goes_to_the_stream_of_its_role(role: str) -> None:
    row = envelope.event_type(envelope_pb2.TaskFailed.DESCRIPTOR.name, role)
    assert row.stream == ("KNOWLEDGE" if role in topology.PIPELINE else "SIGNALS")
    assert envelope.subject(row, crate="c", aggregate="a").endswith(f".c.{role}.a.task_failed")
