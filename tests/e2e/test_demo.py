"""The demo's documents: what must be answered is, and what they don't hold is not."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.e2e.crate import ANSWERED, NO_ANSWER, Crate

DOCUMENTS = Path(__file__).resolve().parents[2] / "deploy" / "demo" / "documents"
QUESTIONS = json.loads((Path(__file__).parent / "demo_questions.json").read_text())
ENOUGH = 27


@pytest.fixture(scope="module")
def demo(node_address: str) -> Crate:
    """A crate with the demo's documents, put in by the command line."""
    crate = Crate(address=node_address, crate_id=f"demo-{secrets.token_hex(4)}")
    command = [str(Path(sysconfig.get_path("scripts")) / "affidavit"), "ingest", str(DOCUMENTS), "--json"]
    environment = dict(os.environ) | {"AFFIDAVIT_ADDRESS": node_address, "AFFIDAVIT_CRATE": crate.id}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)  # noqa: S603
    report = json.loads(done.stdout)
    assert report["outcomes"] == {"created": report["files"]}
    assert report["failed"] == report["refused"] == []
    return crate


def test_answerable_questions_are_answered_from_the_right_place(demo: Crate) -> None:
    missed = []
    for question, expected in QUESTIONS["answerable"]:
        answer = demo.ask(question)
        if answer.status != ANSWERED or not any(expected in citation.quote for citation in answer.citations):
            missed.append((question, expected, answer.text))
    assert len(QUESTIONS["answerable"]) - len(missed) >= ENOUGH, missed


def test_unanswerable_questions_get_no_answer(demo: Crate) -> None:
    wrong = [
        (question, answer.text)
        for question in QUESTIONS["unanswerable"]
        if (answer := demo.ask(question)).status != NO_ANSWER
    ]
    assert len(QUESTIONS["unanswerable"]) - len(wrong) >= ENOUGH, wrong


def test_a_cited_span_is_cut_from_the_original(demo: Crate) -> None:
    for question, _ in QUESTIONS["answerable"]:
        for citation in demo.ask(question).citations:
            original = (DOCUMENTS / citation.source_id).read_bytes()
            if citation.verbatim:
                span = original[citation.byte_start : citation.byte_end]
                assert span.decode(citation.charset) == citation.quote, citation.source_id
