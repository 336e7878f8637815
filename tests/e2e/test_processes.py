"""The demo's questions, asked of one process, of two and of eight on the same data folder."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from affidavit.query.v1 import query_service_pb2, query_service_pb2_grpc
from affidavit.receipt.v1 import receipt_service_pb2, receipt_service_pb2_grpc
from google.protobuf.json_format import MessageToDict

from services.cli.doctor import _processes_of
from services.embedded.folder import Endpoints
from tests.e2e.commands import let_through, result, up
from tests.e2e.test_demo import DOCUMENTS, QUESTIONS

CRATE = "main"
ONE_ANSWER_ONLY = ("answer_id", "receipt", "receipt_id")
# Times, ids, and what salts make different each time.
ONE_RECEIPT_ONLY = ("receipt_id", "parent_id", "issued_at", "sequence")


def answers(data_dir: Path, questions: list[str]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Answers of a running node with the contents of their receipts."""
    endpoints = Endpoints.read(data_dir)
    query = query_service_pb2_grpc.QueryServiceStub(grpc.insecure_channel(endpoints.roles["query"]))
    receipts = receipt_service_pb2_grpc.ReceiptServiceStub(grpc.insecure_channel(endpoints.roles["receipt"]))
    found = []
    for question in questions:
        answer = query.Ask(query_service_pb2.AskRequest(crate_id=CRATE, question=question))
        assert answer.receipt_id, question
        shown = receipts.GetReceipt(receipt_service_pb2.GetReceiptRequest(crate_id=CRATE, receipt_id=answer.receipt_id))
        contents = json.loads(shown.view_json)
        for citation in contents["citations"]:
            del citation["commitment"]
        said = MessageToDict(answer, preserving_proto_field_name=True)
        found.append(
            (
                {name: value for name, value in said.items() if name not in ONE_ANSWER_ONLY},
                {name: value for name, value in contents.items() if name not in ONE_RECEIPT_ONLY},
            )
        )
    return found


@pytest.mark.timeout(400)
def test_answers_and_receipts_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    let_through(tmp_path)
    data_dir = tmp_path / "data"
    questions = [question for question, _ in QUESTIONS["answerable"]] + QUESTIONS["unanswerable"]
    with up(data_dir, "--workers", "0"):
        result("ingest", str(DOCUMENTS), data_dir=data_dir)
        one = answers(data_dir, questions)
    with up(data_dir):
        two = answers(data_dir, questions)
    with up(data_dir, "--apart"):
        eight = answers(data_dir, questions)
    assert len(one) == len(questions)
    for question, first, second, third in zip(questions, one, two, eight, strict=True):
        assert first == second == third, question


def kill_at_start(data_dir: Path, name: str, killed: list[int]) -> None:
    """Wait for a process of a node and end it before it can answer."""
    deadline = time.monotonic() + 60
    while not killed and time.monotonic() < deadline:
        for pid, known in _processes_of(data_dir):
            if known == name:
                time.sleep(0.1)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                return
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["nats-server", "postgres", "chunker proposition embedder"])
def test_a_process_that_is_killed_while_the_node_starts_is_started_again(tmp_path: Path, name: str) -> None:
    let_through(tmp_path)
    data_dir = tmp_path / "data"
    killed: list[int] = []
    killer = threading.Thread(target=kill_at_start, args=(data_dir, name, killed))
    killer.start()
    with up(data_dir):
        killer.join()
        assert killed
        result("ingest", str(DOCUMENTS), data_dir=data_dir)
