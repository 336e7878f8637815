"""Relations, state rules and effective times as a user and a publisher meet them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from affidavit.ingest.v1 import ingest_events_pb2

from services.embedded.folder import Endpoints
from tests.e2e.commands import let_through, result, run, up

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
STATEMENT = re.search(r"'(\{[^']*relation\.declare[^']*\})'", README, re.DOTALL)
COMMAND = re.search(r"^affidavit (relate .*)$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("relations")
    let_through(folder)
    with up(folder / "data"):
        yield folder / "data"


async def test_the_readme_s_examples(data_dir: Path) -> None:
    assert STATEMENT is not None
    assert COMMAND is not None
    client = await nats.connect(Endpoints.read(data_dir).nats_url)
    reply = await client.request("affidavit.submit.main", json.dumps(json.loads(STATEMENT[1])).encode(), timeout=10)
    published = json.loads(reply.data)
    assert published["outcome"] == "declared"
    again = result(*COMMAND[1].split(), data_dir=data_dir)
    assert again["unchanged"] is True
    assert int(again["position"]) == published["position"]
    assert again["target_document_id"] == published["target_document_id"]
    message = await client.jetstream().get_last_msg("KNOWLEDGE", "affidavit.k.main.ingest.*.relation_declared")
    await client.close()
    assert message.data is not None
    stated = ingest_events_pb2.RelationDeclared.FromString(message.data)
    assert stated.target_document_id == published["target_document_id"]
    assert b"leave" not in message.data


def test_a_person_states_and_withdraws(data_dir: Path) -> None:
    said = run("relate", "a.md", "contradicts", "b.md", "--confidence", "0.5", data_dir=data_dir)
    assert (said.returncode, said.stdout[:41]) == (0, "a.md contradicts b.md: stated at position")
    assert (
        "stated already"
        in run("relate", "a.md", "contradicts", "b.md", "--confidence", "0.5", data_dir=data_dir).stdout
    )
    gone = run("relate", "a.md", "contradicts", "b.md", "--withdraw", data_dir=data_dir)
    assert "withdrawn at position" in gone.stdout
    timed = result("relate", "a.md", "cites", "b.md", "--effective", "2026-01-31T09:00+01:00", data_dir=data_dir)
    assert timed["unchanged"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("a.md", "replaces", "b.md"), 3, "type 'replaces' is no relation: choose from supersedes"),
        (("a.md", "cites", "a.md"), 3, "can't be related to itself"),
        (("a.md", "cites", "b.md", "--confidence", "2"), 3, "confidence 2.0 is out of range"),
        (("a.md", "cites", "b.md", "--effective", "2026-01-31T09:00"), 3, "names no time zone: end it with Z"),
        (("a.md", "cites", "b.md", "--effective", "soon"), 3, "is no date or time"),
        (("0" * 32, "cites", "b.md"), 4, "name a document that is still to come by its source id"),
        (("a.md", "elaborates", "b.md", "--withdraw"), 4, "it was never stated that"),
        (("a.md", "cites", "b.md", "--crate", "nobody"), 4, "crate 'nobody' does not exist"),
    ],
)
def test_what_is_wrong_is_said_with_a_code(data_dir: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    done = run("relate", *arguments, data_dir=data_dir)
    assert done.returncode == code
    assert message in done.stderr


def test_state_rules_are_set_shown_and_taken_out_again(data_dir: Path, tmp_path: Path) -> None:
    options = (
        "--state-word",
        "Sunset=deprecated",
        "--window",
        "class=policy,stale=365",
        "--superseding-series",
        "leave",
    )
    run("crate", "create", "rules", "profile=v3.1", *options, data_dir=data_dir)
    shown = run("crate", "show", "rules", data_dir=data_dir).stdout
    for wanted in (
        r"profile +v3\.1",
        r"state word 'sunset' +deprecated",
        r"window of class 'policy' +stale after 365 days",
        r"superseding series +leave",
    ):
        assert re.search(wanted, shown), shown
    changed = result(
        "crate", "set", "rules", "--state-word", "sunset=", "--state-word", "Frozen=dormant", "--window",
        "class=policy,dormant=30", "--superseding-series", "-leave", data_dir=data_dir,
    )  # fmt: skip
    rules = changed["settings"]["state_rules"]
    assert rules["status_words"] == {"frozen": "dormant"}
    assert [(w["stale_after_days"], w["dormant_after_days"]) for w in rules["windows"]] == [(365, 30)]
    assert rules["superseding_series"] == []
    file = tmp_path / "rules.json"
    file.write_text('{"status_words": {"Gone": "superseded"}}')
    replaced = result("crate", "set", "rules", "--state-rules", str(file), data_dir=data_dir)
    assert replaced["settings"]["state_rules"]["status_words"] == {"gone": "superseded"}
    assert replaced["settings"]["state_rules"]["windows"] == []
    for wrong, message in (
        (("--state-word", "sunset"), "has not the form WORD=STATE"),
        (("--state-word", "sunset=gone"), "can't stand for 'gone'"),
        (("--window", "class=policy,old=3"), "has not the form class=NAME"),
        (("--window", "stale=36501"), "stale_after_days 36501 is out of range"),
        (("state_rules={}",), "is no single value"),
        ((), "nothing to change is named"),
    ):
        refused = run("crate", "set", "rules", *wrong, data_dir=data_dir)
        assert (refused.returncode, message in refused.stderr) == (3, True), refused.stderr


def test_a_document_s_own_time_is_its_revision_s(data_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "leave.md"
    file.write_text(
        "---\neffective_date: 2021-03-01\nsupersedes: [leave-2020.md]\n---\n# Leave\n\n[Old](leave-2020.md)\n"
    )
    assert result("ingest", str(file), data_dir=data_dir)
    (revision,) = result("documents", "leave.md", data_dir=data_dir)["revisions"]
    assert revision["effective_at"] == "2021-03-01T00:00:00Z"
    assert result("ingest", str(file), data_dir=data_dir)
    assert len(result("documents", "leave.md", data_dir=data_dir)["revisions"]) == 1
