"""CloudEvents JSON of publishers."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.codec.cloudevents import MAX_EVENT_BYTES
from services.ingest.codec.submissions import (
    MAX_BODY_BYTES,
    SubmissionKind,
    refusal,
    reply,
    submission,
)
from services.ingest.domain.headers import Header
from services.ingest.domain.refusals import Refused

BASE: dict[str, object] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/hr",
    "type": "dev.affidavit.document.put",
    "subject": "handbook/leave",
}


def payload(**attributes: object) -> bytes:
    return json.dumps({**BASE, **attributes}).encode()


def test_a_put_with_text() -> None:
    read = submission(
        payload(
            datacontenttype="Text/Markdown; charset=latin-1",
            data="# Leave\n25 Tage für alle",
            time="2024-05-01T00:00:00Z",
            traceparent="00-1",
            uri="https://hr.example.org/leave",
            title="Leave",
            jobid="nightly",
            sourcedomain="hr",
            effectiveat="2024-06-01T02:00:00+02:00",
            owner="HR",
            level=3,
            final=True,
            nothing=None,
        )
    )
    assert (read.kind, read.source, read.event_id) == (SubmissionKind.PUT, "/hr", "1")
    assert read.body == "# Leave\n25 Tage für alle".encode()
    assert read.header == Header(
        source_id="handbook/leave",
        media_type="text/markdown",
        charset="utf-8",
        uri="https://hr.example.org/leave",
        title="Leave",
        metadata=(("final", "true"), ("level", "3"), ("owner", "HR")),
        job_id="nightly",
        effective_at=datetime(2024, 6, 1, tzinfo=UTC),
        source_domain="hr",
    )


def test_a_put_with_bytes_keeps_the_charset_that_it_names() -> None:
    body = bytes(range(256))
    encoded = base64.b64encode(body).decode()
    read = submission(payload(datacontenttype='text/plain; format=flowed; charset="windows-1251"', data_base64=encoded))
    assert read.body == body
    assert (read.header.media_type, read.header.charset) == ("text/plain", "windows-1251")
    bare = submission(payload(data_base64=""))
    assert (bare.body, bare.header.media_type, bare.header.charset) == (b"", "", "")
    assert submission(payload(datacontenttype="text/plain; format=flowed", data="")).header.charset == "utf-8"


@pytest.mark.parametrize("content_type", [None, "application/json", "application/ld+json; profile=x"])
def test_json_data_is_a_json_body(content_type: str | None) -> None:
    data = {"ü": [1, 2.5, None, "x"]}
    attributes = {"data": data} if content_type is None else {"data": data, "datacontenttype": content_type}
    assert json.loads(submission(payload(**attributes)).body) == data
    assert json.loads(submission(payload(data="text", datacontenttype="application/json")).body) == "text"
    assert json.loads(submission(payload(data=None)).body) is None


@pytest.mark.parametrize("kind", ["retire", "erase"])
def test_ends_need_no_data(kind: str) -> None:
    read = submission(payload(type=f"dev.affidavit.document.{kind}"))
    assert (read.kind.name, read.body) == (kind.upper(), b"")
    assert read.header == Header(source_id="handbook/leave")


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"specversion": "0.3"}, 'specversion must be "1.0"'),
        ({"type": "dev.affidavit.document.move"}, "type 'dev.affidavit.document.move' is unknown: use one of"),
        ({"type": ""}, "type is missing or empty"),
        ({"type": 7}, "type must be a string"),
        ({"id": ""}, "id is missing or empty"),
        ({"source": None}, "source is missing or empty"),
        ({"subject": ""}, "subject is missing or empty: the document's source id"),
        ({}, "must have either data or data_base64"),
        ({"data": "x", "data_base64": ""}, "must have either data or data_base64"),
        ({"data_base64": "%%"}, "data_base64 isn't base64"),
        ({"data_base64": "é"}, "data_base64 isn't base64"),
        ({"data_base64": 5}, "data_base64 must be a string"),
        ({"data": {}, "datacontenttype": "text/plain"}, "data must be a string for text/plain"),
        ({"data": "x", "extra": {"a": 1}}, "attribute 'extra' must be a string, an integer or a boolean"),
        ({"data": "x", "extra": 1.5}, "attribute 'extra' must be"),
        ({"data": "x", "effectiveat": "soon"}, "effectiveat 'soon' isn't an RFC 3339 time"),
        ({"data": "x", "effectiveat": "2024-01-01T00:00:00"}, "names no time zone"),
        ({"data": "x" * MAX_BODY_BYTES}, "events hold at most 524288, send it with UploadDocument"),
    ],
)
def test_what_is_wrong_is_named(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(Refused, match=message):
        submission(payload(**attributes))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the event isn't JSON: Expecting value at character 0"),
        (b"{", "the event isn't JSON"),
        (b"\xff", "the event isn't JSON: it must be UTF-8"),
        (b'{"a": NaN}', "it must be UTF-8 and hold finite numbers"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "it must be UTF-8 and hold finite numbers"),
        (b"[1]", "isn't a JSON object"),
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (MAX_EVENT_BYTES + 1), f"at most {MAX_EVENT_BYTES}; send large bodies with UploadDocument"),
    ],
)
def test_what_is_no_event_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message):
        submission(data)


def test_a_body_of_the_largest_size_is_taken() -> None:
    encoded = base64.b64encode(b"a" * MAX_BODY_BYTES).decode()
    assert len(submission(payload(data_base64=encoded)).body) == MAX_BODY_BYTES


@given(st.binary(max_size=60) | st.lists(st.text() | st.integers() | st.none()).map(lambda x: json.dumps(x).encode()))
def test_nothing_but_refusals_comes_of_anything(data: bytes) -> None:
    with pytest.raises(Refused):
        submission(data)


@given(
    st.dictionaries(
        st.sampled_from([*BASE, "data", "datacontenttype", "x"]), st.text(st.characters(exclude_categories=()))
    )
)
def test_odd_attributes_are_read_or_refused(attributes: dict[str, str]) -> None:
    try:
        read = submission(payload(**attributes))
    except Refused:
        return
    assert read.source


def test_replies_are_json() -> None:
    assert json.loads(reply(position=7, revision=2, outcome="replaced", document_id="d", notices=("n",))) == {
        "position": 7,
        "revision": 2,
        "outcome": "replaced",
        "document_id": "d",
        "notices": ["n"],
    }
    assert json.loads(refusal("not_found", "no é \ud800")) == {"error": {"code": "not_found", "message": "no é \ud800"}}


@pytest.mark.parametrize("name", ["time", "effectiveat"])
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("yesterday", "isn't an RFC 3339 time"),
        ("2024-13-01T00:00:00Z", "isn't an RFC 3339 time"),
        ("20240501T000000Z", "isn't an RFC 3339 time"),
        ("2024-W18-3T00:00:00Z", "isn't an RFC 3339 time"),
        ("2024-05-01T00:00:00", "names no time zone"),
        ("2024-05-01", "names no time zone"),
        (1714521600, "must be a string"),
    ],
)
def test_a_time_that_can_t_be_read(name: str, value: object, told: str) -> None:
    with pytest.raises(Refused, match=told) as caught:
        submission(payload(data="x", datacontenttype="text/plain", **{name: value}))
    assert name in str(caught.value)


@pytest.mark.parametrize("value", ["2024-05-01T00:00:00Z", "2024-05-01t00:00:00z", "2024-05-01T02:00:00.1234567+02:00"])
def test_a_time_of_rfc_3339(value: str) -> None:
    submission(payload(data="x", datacontenttype="text/plain", time=value))


def test_both_names_of_a_job() -> None:
    def job(**attributes: object) -> str:
        return submission(payload(data="x", datacontenttype="text/plain", **attributes)).header.job_id

    assert job(job="nightly") == job(jobid="nightly") == job(job="nightly", jobid="nightly") == "nightly"
    assert job(job=None) == job(job="", jobid="") == ""
    with pytest.raises(Refused, match="different jobs"):
        job(job="nightly", jobid="weekly")


def test_a_repetition_tells_what_came_first() -> None:
    answer = json.loads(reply(position=7, revision=1, outcome="created", document_id="d", repeats=True))
    assert (answer["outcome"], answer["first_outcome"], answer["position"]) == ("duplicate", "created", 7)
    assert "first_outcome" not in json.loads(reply(position=7, revision=1, outcome="created", document_id="d"))
