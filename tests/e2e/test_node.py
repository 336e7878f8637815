"""A node's life on one machine: owner, restart, killed parts, one process or eight."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from services.embedded.folder import Endpoints
from tests.e2e.commands import beside, children_of, eventually, let_through, result, run, start, up


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    let_through(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents" / "depots"
    folder.mkdir(parents=True)
    (folder / "aldgate.md").write_text("# Aldgate\n\nThe Aldgate depot opens at seven.\n")
    (folder / "barking.txt").write_text("The Barking depot stores only dry goods.")
    return folder.parent


QUESTION = "When does the Aldgate depot open?"


def test_state_survives_a_restart_and_has_one_owner(data_dir: Path, documents: Path) -> None:
    with up(data_dir) as node:
        report = result("ingest", str(documents), data_dir=data_dir)
        assert report["outcomes"] == {"created": 2}
        first = result("ask", QUESTION, data_dir=data_dir)
        assert "seven" in first["text"]
        second = run("up", data_dir=data_dir)
        assert second.returncode == 6
        assert f"pid {node.pid}" in second.stderr
        assert "--data-dir" in second.stderr
    assert eventually(lambda: not children_of(data_dir))
    refused = run("ask", QUESTION, data_dir=data_dir)
    assert refused.returncode == 5
    assert "affidavit up" in refused.stderr
    with up(data_dir):
        again = result("ask", QUESTION, data_dir=data_dir)
        assert (again["text"], again["citations"]) == (first["text"], first["citations"])
        report = result("ingest", str(documents), data_dir=data_dir)
        assert report["outcomes"] == {"unchanged": 2}


def test_a_killed_node_leaves_no_process_and_loses_nothing(data_dir: Path, documents: Path) -> None:
    with up(data_dir) as node:
        result("ingest", str(documents), data_dir=data_dir)
        os.kill(node.pid, signal.SIGKILL)
        node.wait()
    assert eventually(lambda: not children_of(data_dir))
    with up(data_dir):
        assert "seven" in result("ask", QUESTION, data_dir=data_dir)["text"]
        listed = result("documents", data_dir=data_dir)
        assert {document["status"] for document in listed} == {"DOCUMENT_STATUS_SEARCHABLE"}


@pytest.mark.parametrize("server", ["nats-server", "postgres", "run chunker"])
def test_a_killed_child_is_started_again(data_dir: Path, documents: Path, server: str) -> None:
    with up(data_dir):
        pid = children_of(data_dir)[server]
        os.kill(pid, signal.SIGKILL)
        assert eventually(lambda: children_of(data_dir).get(server) not in (None, pid))
        assert eventually(lambda: run("ingest", str(documents), data_dir=data_dir).returncode == 0)
        assert "seven" in result("ask", QUESTION, data_dir=data_dir)["text"]


def test_one_process_answers_as_two_and_eight_do(data_dir: Path, documents: Path) -> None:
    answers = []
    for flags in (("--workers", "0"), (), ("--apart",)):
        folder = data_dir.with_name(f"data{len(flags)}")
        with up(folder, *flags):
            result("ingest", str(documents), data_dir=folder)
            answer = result("ask", QUESTION, data_dir=folder)
            assert answer["receipt_status"] == "signed"
            for citation in answer["citations"]:
                # Ids are keyed with the crate's secret, and the time is the ingest's.
                del citation["document_id"], citation["effective_at"]
            answers.append(
                {name: answer[name] for name in ("status", "text", "citations", "mode", "lanes", "answered_by")}
            )
    assert answers[0] == answers[1] == answers[2]


def test_two_nodes_never_share_an_address(data_dir: Path, documents: Path) -> None:
    with up(data_dir) as node:
        address = Endpoints.read(data_dir).listen
        other = data_dir.with_name("other")
        for command in (("up",), ("run", "ingest")):
            refused = run(*command, "--listen", address, data_dir=other)
            assert refused.returncode == 6
            assert f"{address} is taken by" in refused.stderr
            assert f"pid {node.pid}" in refused.stderr
            assert "--listen" in refused.stderr
            assert not other.exists()
        beyond = run("up", "--listen", f"127.0.0.1:{int(address.rsplit(':', 1)[1]) + 65_536}", data_dir=other)
        assert beyond.returncode == 3
        assert not other.exists()
        found = run("doctor", "--listen", address, data_dir=other)
        assert f"pid {node.pid}" in found.stdout
        with beside(data_dir, "ingest") as serving:
            assert serving != address
            assert result("ingest", str(documents), data_dir=data_dir)["outcomes"] == {"created": 2}


def test_a_node_ends_within_ten_seconds_whatever_runs(data_dir: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_text("".join(f"Ferry {number} leaves at {number % 24} o'clock.\n\n" for number in range(200_000)))
    with up(data_dir) as node:
        sending = start("ingest", str(large), data_dir=data_dir)
        # Accepted, so that it is cut or embedded now, and its progress is watched.
        assert eventually(lambda: "pending" in run("documents", data_dir=data_dir).stdout, within_s=60)
        began = time.monotonic()
        node.send_signal(signal.SIGTERM)
        assert node.wait(30) == 0
        took_s = time.monotonic() - began
        sending.wait(30)
    # What is promised, and a little for a busy machine.
    assert took_s < 12
    assert eventually(lambda: not children_of(data_dir), within_s=5)
