"""The given cases: what broke other systems, against a whole node."""

from __future__ import annotations

import time

import grpc
import pytest
from affidavit.citation.v1 import citation_service_pb2
from affidavit.ingest.v1 import ingest_service_pb2, settings_pb2
from affidavit.query.v1 import query_service_pb2
from affidavit.receipt.v1 import receipt_service_pb2
from affidavit.verify import verify_bundle
from blake3 import blake3

from tests.e2e.crate import ANSWERED, LEXICAL, NO_ANSWER, SEMANTIC, Crate

G01 = """# Installing the relay

Run the steps below.

```bash
# fetch the package
relayctl fetch --channel stable
# start the service
relayctl up
```

The relay listens on port 7443.

## Removing the relay

Run `relayctl purge`.
"""


def test_g01_comment_lines_in_a_fence_are_no_headings(crate: Crate) -> None:
    reply = crate.put("g01/install.md", G01)
    listed = crate.chunks(reply.document_id)
    assert list(listed.headings) == ["Installing the relay", "Removing the relay"]
    paths = {heading for found in listed.chunks for heading in found.chunk.heading_path}
    assert paths == {"Installing the relay", "Removing the relay"}
    assert sum(found.chunk.text.count("```") == 2 for found in listed.chunks) == 1
    assert sum("```" in found.chunk.text for found in listed.chunks) == 1
    answer = crate.ask("Which port does the relay listen on?")
    cited = [citation for citation in answer.citations if "7443" in citation.quote]
    assert list(cited[0].heading_path) == ["Installing the relay"]


G02 = b"# Alpha\r\n\r\nFirst body line.\r\n\r\n## Beta\r\nSecond body line: the retention period is 30 days.\r\n"


def test_g02_windows_line_ends_keep_headings_and_exact_spans(crate: Crate) -> None:
    assert len(G02) == 92
    reply = crate.put("g02.md", G02)
    listed = crate.chunks(reply.document_id)
    assert list(listed.headings) == ["Alpha", "Beta"]
    answer = crate.ask("What is the retention period?")
    citation = answer.citations[0]
    assert "the retention period is 30 days." in citation.quote
    assert G02[citation.byte_start : citation.byte_end].decode() == citation.quote
    assert G02[58:90] == b"the retention period is 30 days."
    assert citation.byte_start <= 58
    assert citation.byte_end == 90
    assert crate.document("g02.md").revisions[0].content_hash == blake3(G02).digest()
    plain = crate.put("g02-lf.md", G02.replace(b"\r\n", b"\n"))
    unix = crate.chunks(plain.document_id)
    assert list(unix.headings) == ["Alpha", "Beta"]
    texts = [found.chunk.text.replace("\r\n", "\n") for found in listed.chunks]
    assert texts == [found.chunk.text for found in unix.chunks]


def test_g03_one_nul_byte_does_not_sink_the_batch(crate: Crate) -> None:
    dirty = b"Boiler B is inspected every\0 April."
    bodies = {"g03-a": b"Boiler A is inspected every March.", "g03-b": dirty}
    bodies["g03-c"] = b"Boiler C is inspected every May."
    for name, body in bodies.items():
        header = ingest_service_pb2.DocumentHeader(source_id=name, media_type="text/plain")
        crate.ingest.PutDocument(ingest_service_pb2.PutDocumentRequest(crate_id=crate.id, header=header, body=body))
    counts = crate.settle()
    assert (counts.searchable, counts.failed) == (3, 0)
    cleaned = crate.document("g03-b").revisions[0]
    assert any("NUL" in notice and "27" in notice for notice in cleaned.notices)
    assert cleaned.content_hash == blake3(dirty).digest()
    assert crate.original(crate.document("g03-b").document_id) == dirty
    for letter, month in (("A", "March"), ("C", "May")):
        answer = crate.ask(f"When is boiler {letter} inspected?")
        assert any(month in citation.quote for citation in answer.citations), letter
    failures = crate.ingest.ListFailures(ingest_service_pb2.ListFailuresRequest(crate_id=crate.id)).failures
    assert not failures


G04_BODY = bytes.fromhex(
    "d1f0eeea20f5f0e0ede5ede8ff20e7e0efe8f1e5e92097203720ebe5f22e20cef2e2e5f2f1f2e2e5ededfbe93a20e0f0f5e8e22e"
)
G04 = (
    b'<html><head><meta charset="windows-1251"><title>Archive</title></head><body><p>'
    + G04_BODY
    + b"</p></body></html>"
)


@pytest.mark.parametrize("charset", ["", "utf-8"])
def test_g04_html_whose_encoding_is_only_in_a_meta_tag(crate: Crate, charset: str) -> None:
    reply = crate.put("g04.html", G04, media_type="text/html", charset=charset)
    text = crate.chunks(reply.document_id).chunks[0].chunk.text
    assert "Срок хранения записей — 7 лет." in text
    assert "\ufffd" not in text
    assert crate.found("хранения", LEXICAL) == ["g04.html"]
    revision = crate.document("g04.html").revisions[0]
    assert revision.charset.replace("_", "-").lower() in {"windows-1251", "cp1251"}
    answer = crate.ask("Каков срок хранения записей?")
    assert answer.status == ANSWERED
    citation = answer.citations[0]
    assert "7 лет" in citation.quote
    assert G04[citation.byte_start : citation.byte_end].decode("cp1251") == citation.quote


def test_g05_overlap_is_clamped_and_said(crate: Crate) -> None:
    chunking = settings_pb2.ChunkSettings(size_chars=100, overlap_chars=100)
    job = ingest_service_pb2.Job(job_id="a", chunking=chunking)
    reply = crate.ingest.PutJob(ingest_service_pb2.PutJobRequest(crate_id=crate.id, job=job))
    assert reply.job.chunking.overlap_chars == 50
    assert "overlap" in reply.notices[0]
    assert "size" in reply.notices[0]
    assert "half" in reply.notices[0]


def test_g05_the_chunker_always_makes_progress(crate: Crate) -> None:
    text = "x" * 10 + " " + "a" * 5000
    chunking = settings_pb2.ChunkSettings(size_chars=100, overlap_chars=60)
    job = ingest_service_pb2.Job(job_id="b", chunking=chunking)
    crate.ingest.PutJob(ingest_service_pb2.PutJobRequest(crate_id=crate.id, job=job))
    reply = crate.put("t.txt", text, job="b")
    chunks = [found.chunk for found in crate.chunks(reply.document_id).chunks]
    assert len(chunks) <= 140
    assert max(len(chunk.text) for chunk in chunks) <= 100
    assert "".join(chunk.text[chunk.overlap_chars :] for chunk in chunks) == text
    chunking = settings_pb2.ChunkSettings(size_chars=100, overlap_chars=0)
    job = ingest_service_pb2.Job(job_id="c", chunking=chunking)
    crate.ingest.PutJob(ingest_service_pb2.PutJobRequest(crate_id=crate.id, job=job))
    short = crate.put("short.txt", ("word " * 19).encode(), job="c")
    assert len(crate.chunks(short.document_id).chunks) == 1


def test_g06_the_same_again_is_a_no_op_and_a_change_replaces(crate: Crate) -> None:
    first = crate.put("handbook/leave", "Full-time staff have 25 days of annual leave.", media_type="text/plain")
    again = crate.put("handbook/leave", "Full-time staff have 25 days of annual leave.", media_type="text/plain")
    assert again.outcome == ingest_service_pb2.PUT_OUTCOME_UNCHANGED
    assert (again.revision, again.position) == (first.revision, first.position)
    assert len(crate.document("handbook/leave").revisions) == 1
    assert crate.found("annual leave", LEXICAL) == crate.found("annual leave", SEMANTIC) == ["handbook/leave"]
    before = crate.ask("How many days of annual leave?")
    assert "25" in before.text
    second = crate.put("handbook/leave", "Full-time staff have 28 days of annual leave.", media_type="text/plain")
    assert (second.revision, second.outcome) == (2, ingest_service_pb2.PUT_OUTCOME_REPLACED)
    after = crate.ask("How many days of annual leave?")
    assert "28" in after.text
    assert "25" not in after.text
    for mode in (LEXICAL, SEMANTIC):
        results = crate.search("25 days of annual leave", mode).results
        assert [result.revision for result in results] == [2]
        assert all("25" not in result.snippet for result in results)
    revisions = crate.document("handbook/leave").revisions
    assert [(found.revision, found.status, found.superseded_by) for found in revisions] == [
        (2, ingest_service_pb2.DOCUMENT_STATUS_SEARCHABLE, 0),
        (1, ingest_service_pb2.DOCUMENT_STATUS_SUPERSEDED, 2),
    ]
    verdict = verify_bundle(before.receipt, crate.keys())
    assert verdict.exit == 0
    shown = crate.receipt.GetReceipt(
        receipt_service_pb2.GetReceiptRequest(crate_id=crate.id, receipt_id=before.receipt_id)
    )
    assert "25 days of annual leave" in shown.view_json


def test_reverting_makes_a_third_revision(crate: Crate) -> None:
    for revision, days in enumerate((25, 28, 25), start=1):
        reply = crate.put("leave.txt", f"Staff have {days} days.")
        assert reply.revision == revision
    assert "25" in crate.ask("How many days do staff have?").text


def test_g07_a_deleted_document_leaves_no_ghost(crate: Crate) -> None:
    crate.put("g07-keep", "The west gate opens at 06:00.", media_type="text/plain")
    gone = crate.put("g07-drop", "The access phrase for the west gate is zorblat-77.", media_type="text/plain")
    question = "What is the access phrase for the west gate?"
    before = crate.ask(question)
    assert "zorblat-77" in before.text
    assert before.citations[0].source_id == "g07-drop"
    request = ingest_service_pb2.RetireDocumentRequest(crate_id=crate.id, source_id="g07-drop")
    first = crate.ingest.RetireDocument(request)
    wait_for(crate, first.position)
    after = crate.ask(question)
    assert after.status == NO_ANSWER
    assert "zorblat" not in str(after).replace(question, "")
    assert "g07-drop" not in crate.found(question, SEMANTIC)
    assert crate.found("zorblat-77", LEXICAL) == []
    only = crate.ask("When does the west gate open?")
    assert "06:00" in only.text
    assert crate.found("When does the west gate open?", limit=1) == ["g07-keep"]
    listed = crate.ingest.ListDocuments(ingest_service_pb2.ListDocumentsRequest(crate_id=crate.id)).documents
    statuses = {document.document_id: document.status for document in listed}
    assert statuses[gone.document_id] == ingest_service_pb2.DOCUMENT_STATUS_RETIRED
    second = crate.ingest.RetireDocument(request)
    assert (second.unchanged, second.position) == (True, first.position)
    with pytest.raises(grpc.RpcError) as caught:
        crate.ingest.RetireDocument(ingest_service_pb2.RetireDocumentRequest(crate_id=crate.id, source_id="never"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def wait_for(crate: Crate, position: int) -> None:
    from affidavit.index.v1 import index_service_pb2

    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        reply = crate.index.GetWatermark(index_service_pb2.GetWatermarkRequest(crate_id=crate.id))
        if reply.position >= position:
            return
        time.sleep(0.05)
    raise AssertionError(f"position {position} was not applied")


G09 = (
    "The pump is rated 16 bar [1]. It is serviced once a year 【2】 and inspected every month ［3］. "  # noqa: RUF001
    "The rating is 16 bar [[1]]. The maker is in Oslo [7]. All of this holds [1][1, 3]."
)


def test_g09_markers_are_cleaned_up(crate: Crate) -> None:
    request = citation_service_pb2.RepairRequest(crate_id=crate.id, raw_text=G09, source_count=4)
    replies = [crate.citation.Repair(request) for _ in range(2)]

    def parts() -> list[citation_service_pb2.RepairStreamRequest]:
        start = citation_service_pb2.RepairRequest(crate_id=crate.id, source_count=4)
        pieces = [citation_service_pb2.RepairStreamRequest(text=G09[at : at + 7]) for at in range(0, len(G09), 7)]
        return [citation_service_pb2.RepairStreamRequest(start=start), *pieces]

    streamed = list(crate.citation.RepairStream(iter(parts())))
    assert "".join(part.text for part in streamed) == replies[0].text
    assert streamed[-1].final == replies[0] == replies[1]
    text = replies[0].text
    assert not set("【】［］") & set(text)  # noqa: RUF001
    assert "[[" not in text
    assert "[7]" not in text
    assert any("Oslo" in sentence for sentence in replies[0].unsupported)
    assert text.endswith("All of this holds [1][3].")
    assert list(replies[0].cited) == [1, 2, 3]
    assert any(
        "[7]" in action.before and action.kind == citation_service_pb2.REPAIR_KIND_REMOVED
        for action in replies[0].actions
    )


G11_LINES = (
    "AFSC/RACE:USBL",
    "/",
    '"unclosed quote',
    "part:(QX-9 AND",
    "title:secret OR *:*",
    "cost && discount || price !",
    "rev. C++ ~2 ^5",
    '{"query":{"match_all":{}}}',
    "\\",
)


def test_g11_any_text_may_be_typed(crate: Crate) -> None:
    crate.put("g11", 'Part AFSC/RACE:USBL (rev. C++) costs 40% less than part "QX-9" [2019].', media_type="text/plain")
    crate.put("other", "The canteen opens at eight and serves soup.", media_type="text/plain")
    for line in G11_LINES:
        started = time.monotonic()
        answer = crate.ask(line)
        assert answer.status in {ANSWERED, NO_ANSWER}, line
        lanes = {lane.lane: lane for lane in crate.search(line).lanes}
        assert set(lanes) == {"keyword", "vector"}, line
        assert all(lane.used or lane.note for lane in lanes.values()), line
        assert time.monotonic() - started < 5, line
    assert crate.found("AFSC/RACE:USBL", LEXICAL) == ["g11"]
    for line in ("title:secret OR *:*", '{"query":{"match_all":{}}}', "/", "\\"):
        assert crate.found(line, LEXICAL) == [], line
        assert crate.ask(line).status == NO_ANSWER, line


def test_modes_are_said_as_they_are(crate: Crate) -> None:
    crate.put("a.txt", "The depot opens at seven.")
    reply = crate.query.Ask(query_service_pb2.AskRequest(crate_id=crate.id, question="When does the depot open?"))
    assert reply.mode.requested == settings_pb2.ANSWER_MODE_VERIFIED
    assert reply.mode.applied == settings_pb2.ANSWER_MODE_LIGHT
    assert reply.mode.reason == "mode_not_available"
    with pytest.raises(grpc.RpcError) as caught:
        crate.query.Ask(
            query_service_pb2.AskRequest(crate_id=crate.id, question="When?", mode=settings_pb2.ANSWER_MODE_AUDIT)
        )
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
