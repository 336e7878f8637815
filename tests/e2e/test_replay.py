"""A node's tables and lanes are what its log says, and a replay finds out when they aren't."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from affidavit.ingest.v1 import ingest_service_pb2, settings_pb2

from services import topology
from services.embedded.digests import node_digests
from services.embedded.folder import Endpoints
from services.kernel.bus import Bus
from services.kernel.digests import Digest
from services.kernel.settings import NodeSettings
from tests.e2e.commands import FAST, let_through, result, run, up
from tests.e2e.crate import Crate

ENVIRONMENT = FAST | {"AFFIDAVIT_ALLOW_LOOPBACK_PROVIDERS": "true"}
DIFFERENT = 11
UNEMBEDDABLE = "nobody can embed this"


class Provider(BaseHTTPRequestHandler):
    """An embeddings service that counts its calls and refuses one text."""

    calls = 0

    def do_POST(self) -> None:
        type(self).calls += 1
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        refused = any(UNEMBEDDABLE in text for text in texts)
        data = [{"index": at, "embedding": [len(text), 1.0, at]} for at, text in enumerate(texts)]
        body = b"" if refused else json.dumps({"data": data}).encode()
        self.send_response(400 if refused else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base class)
        """Say nothing."""


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.calls = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    let_through(tmp_path)
    return tmp_path / "data"


@pytest.mark.timeout(400)
def test_a_replay_is_equal_calls_no_model_and_writes_nothing(data_dir: Path, tmp_path: Path, provider: str) -> None:
    with up(data_dir, environment=ENVIRONMENT):
        history(data_dir, tmp_path, provider)
        before = asyncio.run(positions(data_dir)), Provider.calls, blobs(data_dir)
        report = result("replay", data_dir=data_dir)
        assert report["equal"] is True
        assert report["model_calls"] == 0
        assert (asyncio.run(positions(data_dir)), Provider.calls, blobs(data_dir)) == before
        assert Provider.calls > 0
        rows = {each["name"]: each["live"]["rows"] for each in report["comparisons"]}
        assert rows["ingest.documents"] == rows["index.documents"] == 30
        assert rows["receipt.receipts"] == 1
        assert rows["ingest.failures"] == 2
        assert rows["receipt.tombstones"] == 2
        assert min(rows["index.chunks"], rows["index.keyword lane"], rows["index.vector lane"]) > 25
        assert {each["name"] for each in report["projections"] if not each["events"]} == set()
        changed_by_hand(data_dir)
    assert result("replay", data_dir=data_dir)["equal"] is True
    assert not (data_dir / "replay").exists()


def test_what_is_kept_can_be_looked_at_until_the_next_replay(data_dir: Path, tmp_path: Path) -> None:
    nothing = run("replay", data_dir=data_dir)
    assert nothing.returncode == 4
    assert "--data-dir" in nothing.stderr
    assert not data_dir.exists()
    with up(data_dir):
        result("ingest", str(folder(tmp_path, 2)), data_dir=data_dir)
        refused = run("replay", "--projection", "query", data_dir=data_dir)
        assert refused.returncode == 3
        assert "ingest, index, receipt" in refused.stderr
        shown = run("replay", "--projection", "index", "--keep", data_dir=data_dir)
        assert shown.returncode == 0, shown.stderr
        assert "0 calls of a model" in shown.stdout
        assert asyncio.run(scalar(data_dir, "select count(*) from index_replay.documents")) == 2
        assert (data_dir / "replay" / "lanes").is_dir()
        result("replay", "--projection", "receipt", data_dir=data_dir)
        assert asyncio.run(scalar(data_dir, "select to_regnamespace('index_replay') is null"))


@pytest.mark.timeout(300)
def test_two_nodes_that_were_told_the_same_in_another_order_have_the_same_digests(tmp_path: Path) -> None:
    let_through(tmp_path)
    told = []
    for name, order in (("one", (0, 1, 2, 3, 4)), ("two", (3, 0, 4, 1, 2))):
        with up(tmp_path / name):
            crate = Crate(address=Endpoints.read(tmp_path / name).listen, crate_id="order")
            for number in order:
                crate.put(f"depot-{number}", f"Depot {number}\n\nThe depot {number} opens at {number}:30.")
            for number in order:
                crate.put(f"depot-{number % 2}", f"The depot {number % 2} opens at noon.")
            for number in (3, 4):
                request = ingest_service_pb2.EraseDocumentRequest(crate_id="order", source_id=f"depot-{number}")
                crate.ingest.EraseDocument(request)
            crate.put("depot-4", "Depot 4 came back.")
            told.append(asyncio.run(settled_digests(tmp_path / name)))
            if name == "two":
                crate.put("depot-2", "Depot 2 is another one now.")
                later = asyncio.run(settled_digests(tmp_path / name))
    assert told[0] == told[1]
    # Four documents and the first revisions of two of them, each with a chunk and a whole.
    assert told[0]["index.vector lane"].rows == 12
    changed = {name for name, digest in later.items() if digest != told[1][name]}
    assert changed == {
        *("ingest.documents", "ingest.revisions", "ingest.reported"),
        *("index.documents", "index.revisions", "index.chunks", "index.keyword lane", "index.vector lane"),
        *("index.living_revisions", "index.living_now"),
    }


async def settled_digests(data_dir: Path) -> dict[str, Digest]:
    """Digests once they have come to rest."""
    endpoints = Endpoints.read(data_dir)
    settings = NodeSettings(data_dir=data_dir, nats_url=endpoints.nats_url, postgres_dsn=endpoints.postgres_dsn)
    before: dict[str, Digest] = {}
    while (found := await node_digests(settings)) != before:
        before = found
        await asyncio.sleep(1)
    return found


def changed_by_hand(data_dir: Path) -> None:
    """A row that somebody changed, and a row that somebody took away, are named."""
    name = asyncio.run(scalar(data_dir, "select document_id from ingest.documents where status = 'searchable' limit 1"))
    for change, back, where, kind in (
        (
            "update ingest.documents set title = title || '!' where document_id = $1",
            "update ingest.documents set title = rtrim(title, '!') where document_id = $1",
            "ingest.documents",
            "differs",
        ),
        (
            "update index.chunks set ordinal = ordinal + 7 where document_id = $1",
            "update index.chunks set ordinal = ordinal - 7 where document_id = $1",
            "index.chunks",
            "only live",
        ),
    ):
        asyncio.run(scalar(data_dir, change, name))
        shown = run("replay", "--json", "--projection", where.split(".", maxsplit=1)[0], data_dir=data_dir)
        asyncio.run(scalar(data_dir, back, name))
        assert shown.returncode == DIFFERENT, shown.stderr
        comparisons = {each["name"]: each for each in json.loads(shown.stdout)["comparisons"]}
        assert [each for each, found in comparisons.items() if not found["equal"]] == [where]
        assert any(name in each and kind in each for each in comparisons[where]["differences"])


def folder(tmp_path: Path, count: int) -> Path:
    made = tmp_path / "documents"
    made.mkdir(exist_ok=True)
    for number in range(count):
        (made / f"depot-{number}.md").write_text(f"# Depot {number}\n\nThe depot {number} opens at {number}:30.\n")
    return made


def history(data_dir: Path, tmp_path: Path, provider: str) -> None:
    """Thirty documents: revisions, one retired, one erased, one that came back, one that failed twice, and a receipt."""
    documents = folder(tmp_path, 26)
    result("ingest", str(documents), data_dir=data_dir)
    (documents / "depot-1.md").write_text("# Depot 1\n\nThe depot 1 opens at noon, and closes at one.\n")
    (documents / "depot-4.md").write_text("# Depot 4\n\nThe depot 4 is closed for good.\n")
    result("ingest", str(documents), data_dir=data_dir)
    result("retire", "depot-2.md", data_dir=data_dir)
    result("ask", "When does depot 1 open?", data_dir=data_dir)
    for name in ("depot-3.md", "depot-4.md"):
        result("erase", name, "--yes", data_dir=data_dir)
    (documents / "depot-3.md").unlink()
    (documents / "depot-2.md").unlink()
    result("ingest", str(documents), data_dir=data_dir)
    embedding = settings_pb2.Provider(
        role=settings_pb2.PROVIDER_ROLE_EMBEDDING,
        kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
        enabled=True,
        base_url=provider,
        model="double",
        dimension=3,
    )
    told = Crate(address=Endpoints.read(data_dir).listen, crate_id="told", providers=(embedding,))
    for number in range(3):
        told.put(f"note-{number}", f"Note {number} is short.")
    told.put("refused", UNEMBEDDABLE)
    assert told.document("refused").status == ingest_service_pb2.DOCUMENT_STATUS_FAILED
    (failure,) = open_failures(told)
    result("failures", "retry", str(failure), "--crate", "told", data_dir=data_dir)
    while open_failures(told) in ([], [failure]):
        time.sleep(0.1)
    result("failures", "drop", "--all", "--crate", "told", data_dir=data_dir)


def open_failures(crate: Crate) -> list[int]:
    """Failures that nobody retried or dropped, by number."""
    request = ingest_service_pb2.ListFailuresRequest(crate_id=crate.id, open_only=True)
    return [failure.failure_id for failure in crate.ingest.ListFailures(request).failures]


async def positions(data_dir: Path) -> list[int]:
    bus = await Bus.connect(Endpoints.read(data_dir).nats_url, role="query")
    try:
        return [await bus.last_position(stream) for stream in (topology.KNOWLEDGE, topology.SIGNALS)]
    finally:
        await bus.close()


def blobs(data_dir: Path) -> list[str]:
    return sorted(str(path.relative_to(data_dir)) for path in (data_dir / "blobs").rglob("*"))


async def scalar(data_dir: Path, query: str, *arguments: object) -> Any:
    connection = await asyncpg.connect(Endpoints.read(data_dir).postgres_dsn)
    try:
        return await connection.fetchval(query, *arguments)
    finally:
        await connection.close()
