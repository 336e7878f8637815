"""`affidavit doctor` names seeded faults."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sysconfig
import time
from pathlib import Path

import grpc
import pytest
from affidavit.ingest.v1.ingest_service_pb2 import ReadDocumentRequest
from affidavit.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub

from services.embedded.folder import Endpoints
from tests.e2e.commands import let_through, result, run, up


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data folder of a node that answered something and was stopped."""
    root = tmp_path_factory.mktemp("doctor")
    let_through(root)
    (root / "note.txt").write_text("The depot opens at seven.")
    with up(root / "data"):
        result("ingest", str(root / "note.txt"), data_dir=root / "data")
        result("ask", "When does the depot open?", data_dir=root / "data")
        assert findings(root / "data") == {}
    return root / "data"


def findings(data_dir: Path, *flags: str, **environment: str) -> dict[str, str]:
    """Fatal findings by part."""
    done = run("doctor", "--json", *flags, data_dir=data_dir, **environment)
    found = {finding["part"]: finding for finding in json.loads(done.stdout)["findings"] if finding["fatal"]}
    assert done.returncode == (1 if found else 0)
    assert all(finding["remedy"] for finding in found.values())
    return {part: finding["problem"] for part, finding in found.items()}


def warnings(data_dir: Path) -> list[dict[str, str]]:
    """What is told of packs without being wrong."""
    found = json.loads(run("doctor", "--json", "--packs", data_dir=data_dir).stdout)["findings"]
    return [finding for finding in found if not finding["fatal"] and "pack" in finding["part"]]


def test_nothing_wrong(used: Path) -> None:
    assert findings(used, "--listen", "127.0.0.1:0") == {}


def test_a_taken_port(used: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        found = findings(used, "--listen", address)
    assert list(found) == ["address"]
    assert address in found["address"]


def test_a_folder_that_the_database_user_cannot_pass(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("Postgres runs as another user only under root")
    let_through(tmp_path)
    closed = tmp_path / "closed"
    (closed / "data").mkdir(parents=True)
    closed.chmod(0o700)
    found = findings(closed / "data", "--listen", "127.0.0.1:0")
    assert list(found) == ["data folder"]
    assert "nobody" in found["data folder"]
    refused = run("up", "--listen", "127.0.0.1:0", data_dir=closed / "data")
    assert refused.returncode == 5
    assert "chmod o+x" in refused.stderr


def test_a_lost_signing_key(used: Path) -> None:
    kept = used.with_name("kept-keys")
    shutil.move(used / "keys", kept)
    (used / "keys").mkdir()
    try:
        found = findings(used, "--listen", "127.0.0.1:0")
    finally:
        shutil.rmtree(used / "keys")
        shutil.move(kept, used / "keys")
    assert list(found) == ["signing key"]
    assert "backup" in found["signing key"]


def test_a_wrong_model_file(used: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "model.onnx"
    wrong.write_bytes(b"not a model")
    found = findings(
        used,
        "--listen",
        "127.0.0.1:0",
        AFFIDAVIT_EMBEDDER_MODEL="all-MiniLM-L6-v2-int8",
        AFFIDAVIT_EMBEDDER_MODEL_FILE=str(wrong),
    )
    assert list(found) == ["embedding model"]
    assert str(wrong) in found["embedding model"]


def test_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    let_through(disk)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", str(disk)], check=True)  # noqa: S603, S607
    try:
        found = findings(disk / "data", "--listen", "127.0.0.1:0")
    finally:
        subprocess.run(["umount", str(disk)], check=True)  # noqa: S603, S607
    assert list(found) == ["disk"]
    assert "full" in found["disk"]


def test_an_orphaned_process(used: Path) -> None:
    binary = Path(sysconfig.get_path("scripts")) / "nats-server"
    command = [str(binary), "-a", "127.0.0.1", "-p", "-1", "-js", "-sd", str(used / "nats" / "store")]
    orphan = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        time.sleep(0.5)
        found = findings(used, "--listen", "127.0.0.1:0")
    finally:
        orphan.terminate()
        orphan.wait()
    assert list(found) == ["orphaned process"]
    assert f"pid {orphan.pid}" in found["orphaned process"]


def test_a_damaged_pack_a_failed_document_and_what_to_do(tmp_path: Path) -> None:
    let_through(tmp_path)
    data, note = tmp_path / "data", tmp_path / "note.txt"
    note.write_text("The depot opens at seven.")
    with up(data):
        document = result("ingest", str(note), data_dir=data)["documents"][0]["document_id"]
        (pack,) = (data / "blobs" / "main").glob(f"*/{document},1,source,*")
        pack.write_bytes(pack.read_bytes()[:-1] + b"!")
        assert findings(data) == {}
        found = findings(data, "--packs")
        assert list(found) == ["pack"]
        assert document in found["pack"]
        # Whoever reads the original finds the damage and marks the document.
        with grpc.insecure_channel(Endpoints.read(data).listen) as channel:
            reading = IngestServiceStub(channel).ReadDocument(
                ReadDocumentRequest(crate_id="main", document_id=document)
            )
            with pytest.raises(grpc.RpcError):
                next(reading)
        named = findings(data)["failures"]
        assert "note.txt" in named
        assert "ingest the document again" in named
        (failure,) = result("failures", "list", data_dir=data)
        number = failure["failure_id"]
        assert failure["state"] == "FAILURE_STATE_OPEN"
        refused = run("failures", "retry", number, data_dir=data)
        assert (refused.returncode, "still gone or damaged" in refused.stderr) == (3, True)
        assert result("ingest", str(note), data_dir=data)["outcomes"] == {"rechunked": 1}
        assert "seven" in result("ask", "When does the depot open?", data_dir=data)["text"]
        assert findings(data, "--packs") == {}
        (leftover,) = warnings(data)
        assert str(pack) in leftover["remedy"]
        pack.unlink()
        assert (findings(data, "--packs"), warnings(data)) == ({}, [])
        listed = run("failures", "list", data_dir=data).stdout
        assert number in listed
        assert "superseded at" in listed
        assert result("failures", "list", "--open", data_dir=data) == []
        assert result("failures", "drop", "--all", data_dir=data) == []
        assert run("failures", "drop", data_dir=data).returncode == 3


def test_packs_that_are_gone_are_named_with_their_document(tmp_path: Path) -> None:
    let_through(tmp_path)
    data, note = tmp_path / "data", tmp_path / "note.txt"
    with up(data):
        for text in ("The depot opens at seven.", "The depot opens at eight."):
            note.write_text(text)
            document = result("ingest", str(note), data_dir=data)["documents"][0]["document_id"]
        result("ask", "When does the depot open?", data_dir=data)
        assert (findings(data, "--packs"), warnings(data)) == ({}, [])
        for revision in (1, 2):
            for step in ("source", "chunks", "vectors"):
                (pack,) = (data / "blobs" / "main").glob(f"*/{document},{revision},{step},*")
                kept = pack.read_bytes()
                pack.unlink()
                told = run("doctor", "--packs", data_dir=data)
                assert told.returncode == 1
                assert f"main/{document}/{revision}/{step}/" in told.stdout
                assert f"is gone: it belongs to revision {revision} of document '{note.name}'" in told.stdout
                assert ("ingest that document again" in told.stdout) == (revision == 2)
                pack.write_bytes(kept)
        # It stays as it is until somebody reads it.
        assert findings(data) == {}
        (answer,) = (data / "blobs" / "main").glob("*/*,answer,*")
        kept = answer.read_bytes()
        answer.unlink()
        assert "receipt" in findings(data, "--packs")["pack"]
        answer.write_bytes(kept)
    (warning,) = warnings(data)
    assert "only while the node runs" in warning["problem"]
    pack.write_bytes(kept[:-1])
    assert list(findings(data, "--packs")) == ["pack"]
