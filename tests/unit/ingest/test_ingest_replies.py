"""Requests of the service -> values, and values -> its replies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from affidavit.event.v1 import envelope_pb2
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.codec import configuration, replies, requests
from services.ingest.domain.chunking import ChunkSettings
from services.ingest.domain.documents import Form, Manifest, Pack, Status
from services.ingest.domain.headers import Header
from services.ingest.domain.lifecycle import Failed, FailureState, RevisionState
from services.ingest.domain.refusals import Refused, Unknown
from services.ingest.domain.settings import CrateSettings
from services.ingest.domain.values import (
    Counts,
    CrateRow,
    CrateView,
    DocumentView,
    FailureView,
    JobRow,
    Page,
    PutResult,
    Selection,
)

NOW = datetime(2024, 5, 1, 12, 30, 15, 123_456, tzinfo=UTC)
DOC = "0123456789abcdef" * 2
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


def test_headers_are_read() -> None:
    message = pb.DocumentHeader(
        source_id="a.md",
        media_type="text/markdown",
        charset="utf-8",
        uri="https://x.org",
        title="T",
        metadata={"b": "2", "a": "1"},
        job_id="nightly",
        effective_at=configuration.timestamp(NOW),
        source_domain="x.org",
    )
    assert requests.header(message) == Header(
        source_id="a.md",
        media_type="text/markdown",
        charset="utf-8",
        uri="https://x.org",
        title="T",
        metadata=(("a", "1"), ("b", "2")),
        job_id="nightly",
        effective_at=NOW,
        source_domain="x.org",
    )
    assert requests.header(pb.DocumentHeader(source_id="a")).effective_at is None


@given(st.lists(TEXTS.filter(lambda text: "\x00" not in text), min_size=2, max_size=2), st.integers(1, 1_000))
def test_page_tokens_come_back(after: list[str], size: int) -> None:
    token = requests.page_token(tuple(after))
    assert requests.page(size, token, width=2) == Page(size=size, after=tuple(after))


@given(st.text(min_size=1))
def test_strange_page_tokens_are_refused(token: str) -> None:
    with pytest.raises(Refused, match="page_token isn't one that this list gave: begin again without it"):
        requests.page(0, token, width=7)


def test_pages_have_bounds() -> None:
    assert requests.page_token(()) == ""
    assert requests.page(0, "", width=2) == Page(size=100)
    with pytest.raises(Refused, match="page_size 1001 is out of range: 1 to 1000"):
        requests.page(1_001, "", width=2)
    for after in (("a",), ("a\x00", "b"), ("1" * 19,)):
        with pytest.raises(Refused, match="page_token"):
            requests.failures_page(pb.ListFailuresRequest(page_token=requests.page_token(after)))
    wanted = requests.failures_page(pb.ListFailuresRequest(page_token=requests.page_token(("12",))))
    assert wanted == Page(size=100, after=("12",))


def test_selections_are_read_and_bounded() -> None:
    assert requests.selection(pb.WatchProgressRequest(crate_id="main", document_ids=[DOC])) == Selection(
        crate_id="main", document_ids=(DOC,)
    )
    with pytest.raises(Refused, match="10001 document_ids are named: at most 10000"):
        requests.selection(pb.WatchProgressRequest(crate_id="main", document_ids=[DOC] * 10_001))
    with pytest.raises(Refused, match="job_id 'No' isn't usable"):
        requests.selection(pb.WatchProgressRequest(crate_id="main", job_id="No"))
    with pytest.raises(Unknown, match="document 'x' does not exist: a document_id is 32 hex digits"):
        requests.selection(pb.WatchProgressRequest(crate_id="main", document_ids=["x"]))


def test_statuses_are_read() -> None:
    message = pb.ListDocumentsRequest(statuses=[pb.DOCUMENT_STATUS_FAILED, pb.DOCUMENT_STATUS_EMPTY])
    assert requests.statuses(message) == (Status.FAILED, Status.EMPTY)
    with pytest.raises(Refused, match="status 0 is unknown"):
        requests.statuses(pb.ListDocumentsRequest(statuses=[pb.DOCUMENT_STATUS_UNSPECIFIED]))


def revision(number: int, **changes: object) -> RevisionState:
    known: dict[str, object] = {
        "revision": number,
        "position": 10 * number,
        "source": Pack(b"p" * 32, 9),
        "chunking": ChunkSettings(),
        "settings_digest": "d",
        "form": Form.STRUCTURED,
        "effective_at": NOW,
        "ingested_at": NOW + timedelta(seconds=1),
        "manifest": None,
    }
    return RevisionState(**(known | changes))  # type: ignore[arg-type]  # keyword shorthand of the tests


def test_a_document_shows_its_revisions() -> None:
    manifest = Manifest(
        source_id="a.csv",
        uri="",
        media_type="text/csv",
        charset="utf-8",
        title="A",
        metadata=(),
        source_domain="main",
        content_hash=b"h" * 32,
        size_bytes=12,
        notices=("cleaned",),
    )
    view = DocumentView(
        document_id=DOC,
        source_id="a.csv",
        title="A",
        status=Status.FAILED,
        revision=2,
        job_id="nightly",
        source_domain="main",
        revisions=(revision(2, manifest=manifest, failure="chunker: no", chunks=4), revision(1, failure="old")),
    )
    message = replies.document(view)
    current, old = message.revisions
    assert (message.status, message.revision, message.job_id) == (pb.DOCUMENT_STATUS_FAILED, 2, "nightly")
    assert current == pb.Revision(
        revision=2,
        status=pb.DOCUMENT_STATUS_FAILED,
        effective_at=configuration.timestamp(NOW),
        ingested_at=configuration.timestamp(NOW + timedelta(seconds=1)),
        position=20,
        size_bytes=12,
        chunks=4,
        content_hash=b"h" * 32,
        media_type="text/csv",
        charset="utf-8",
        notices=["cleaned"],
        failure="chunker: no",
        title="A",
        form=envelope_pb2.FORM_STRUCTURED,
    )
    assert (old.status, old.superseded_by, old.failure, old.content_hash) == (
        pb.DOCUMENT_STATUS_SUPERSEDED,
        2,
        "",
        b"",
    )


def test_failures_are_written() -> None:
    fact = Failed(
        crate_id="main",
        document_id=DOC,
        position=7,
        revision=2,
        service="chunker",
        stream="KNOWLEDGE",
        event_position=5,
        code="corrupt",
        reason="damaged",
        attempts=3,
        failed_at=NOW,
        own=False,
    )
    task = envelope_pb2.TaskFailed(
        service="chunker",
        stream="KNOWLEDGE",
        position=5,
        document_id=DOC,
        revision=2,
        code="corrupt",
        reason="damaged",
        attempts=3,
        failed_at=configuration.timestamp(NOW),
    )
    written = pb.Failure(failure_id=7, task=task, source_id="a.md", state=pb.FAILURE_STATE_OPEN)
    assert replies.failure(FailureView(fact, "a.md")) == written
    settled = FailureView(fact, "a.md", FailureState.DROPPED, 9, NOW)
    written.state = pb.FAILURE_STATE_DROPPED
    written.settled_position = 9
    written.settled_at.CopyFrom(configuration.timestamp(NOW))
    assert replies.failure(settled) == written


def test_other_replies() -> None:
    row = CrateRow(
        crate_id="main",
        revision=4,
        settings=CrateSettings(),
        providers=(),
        secret=Pack(b"s" * 32, 1),
        configured_at=NOW,
        position=3,
    )
    crate = replies.crate(CrateView(crate=row, created_at=NOW, documents=9))
    assert (crate.crate_id, crate.revision, crate.documents) == ("main", 4, 9)
    # The secret's pack is nobody's business.
    assert b"s" * 32 not in crate.SerializeToString()
    job = JobRow(crate_id="main", job_id="j", chunking=ChunkSettings(500, 50), configured_at=NOW, position=1)
    assert replies.job(job).chunking.size_chars == 500
    counts = Counts(pending=1, searchable=2, empty=3, failed=4, chunks_total=5, chunks_embedded=6, watermark=7)
    assert replies.progress(counts) == pb.WatchProgressResponse(
        pending=1, searchable=2, empty=3, failed=4, chunks_total=5, chunks_embedded=6, watermark=7
    )
    for number, outcome in replies.OUTCOMES.items():
        result = PutResult(document_id=DOC, revision=1, outcome=outcome, position=2, notices=("n",))
        assert replies.put(result) == pb.PutDocumentResponse(
            document_id=DOC, revision=1, outcome=number, position=2, notices=["n"]
        )
