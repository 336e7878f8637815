"""Events of every released type and version can be read, and no type is without a stored sample."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_events_pb2
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from docs import generate
from services import topology
from services.kernel import envelope, upcasting
from services.kernel.envelope import Event, Poison
from tests.contract.event_samples import SAMPLES, path


@pytest.mark.parametrize("row", generate.rows(), ids=lambda row: f"{row.service}.{row.name}")
def test_every_version_of_every_event_has_a_stored_sample(row: topology.EventType) -> None:
    missing = [path(row, version).name for version in range(1, row.version + 1) if not path(row, version).exists()]
    assert missing == [], "run `python -m tests.contract.event_samples` before the version is released"


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.json")), ids=lambda sample: sample.stem)
def test_stored_events_are_read(sample: Path) -> None:
    stored = json.loads(sample.read_text())
    event = _decoded(stored)
    assert isinstance(event, Event), event
    service, name, version = sample.stem.split(".")
    assert (event.service, event.name, event.key) == (service, name, "a1:1")
    assert stored["headers"]["ce-schemaversion"] == version.removeprefix("v")
    found = MessageToDict(event.message, preserving_proto_field_name=True)
    assert {key: found.get(key) for key in stored["message"]} == stored["message"]


def test_an_older_version_is_turned_into_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads(path(_row("DocumentIngested"), 1).read_text())
    done: list[int] = []

    def first(message: Message) -> None:
        done.append(1)
        message.ClearField("job_id")

    def second(message: Message) -> None:
        assert isinstance(message, ingest_events_pb2.DocumentIngested)
        done.append(2)
        message.job_id = "filled in"

    steps: dict[tuple[str, int], upcasting.Upcast] = {("DocumentIngested", 1): first, ("DocumentIngested", 2): second}
    event = _with_version(monkeypatch, 3, steps, stored)
    assert isinstance(event, Event)
    assert done == [1, 2]
    assert isinstance(event.message, ingest_events_pb2.DocumentIngested)
    assert event.message.job_id == "filled in"


def test_a_version_without_a_way_up_is_told_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads(path(_row("DocumentIngested"), 1).read_text())
    poison = _with_version(monkeypatch, 2, {}, stored)
    assert isinstance(poison, Poison)
    assert "KeyError" in poison.reason


def test_each_older_version_has_its_step() -> None:
    for row in generate.rows():
        for version in range(1, row.version):
            assert (row.name, version) in upcasting.UPCASTS


@pytest.mark.parametrize(("version", "wanted"), [(0, 1), (2, 1), (-1, 3)])
def test_versions_that_do_not_exist_are_refused(version: int, wanted: int) -> None:
    with pytest.raises(ValueError, match="is unknown to this release"):
        upcasting.upcast(envelope_pb2.TaskFailed(), version=version, wanted=wanted)


def _row(name: str) -> topology.EventType:
    return next(row for row in topology.EVENTS if row.name == name)


def _decoded(stored: dict[str, str]) -> Event | Poison:
    headers = stored["headers"]
    assert isinstance(headers, dict)
    return envelope.decode(
        stream=stored["stream"],
        subject=stored["subject"],
        headers=headers,
        body=base64.b64decode(stored["body"]),
        position=1,
    )


def _with_version(
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    steps: dict[tuple[str, int], upcasting.Upcast],
    stored: dict[str, str],
) -> Event | Poison:
    rows = tuple(replace(row, version=version) if row.name == "DocumentIngested" else row for row in topology.EVENTS)
    monkeypatch.setattr(topology, "EVENTS", rows)
    monkeypatch.setattr(envelope, "upcast", partial(upcasting.upcast, steps=steps))
    envelope._message_class.cache_clear()
    try:
        return _decoded(stored)
    finally:
        envelope._message_class.cache_clear()
