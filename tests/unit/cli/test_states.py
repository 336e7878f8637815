"""How living states are read and shown on the command line."""

import json

import pytest
from affidavit.index.v1 import living_pb2
from affidavit.query.v1 import query_service_pb2
from google.protobuf.timestamp_pb2 import Timestamp
from typer.testing import CliRunner

from services.cli import answers, app, states
from services.kernel.errors import Rejected

REPORT = living_pb2.StateReport(
    document_id="d",
    revision=2,
    state=living_pb2.LIVING_STATE_SUPERSEDED,
    rule="supersedes",
    other_document_id="n",
    family="policy",
    version="1.9",
    since=Timestamp(seconds=86_400),
    source_id="policy.md",
    title="Policy",
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-02", 86_400), ("1970-01-01T02:00:00+02:00", 0), ("1970-01-01T00:00:01Z", 1)],
)
def test_instants_are_read(text: str, seconds: int) -> None:
    stamp = states.read_instant(text)
    assert stamp is not None
    assert stamp.seconds == seconds


@pytest.mark.parametrize("text", ["yesterday", "1970-01-01T00:00:01", "2021-13-01"])
def test_other_instants_are_refused(text: str) -> None:
    with pytest.raises(Rejected, match="--as-of"):
        states.read_instant(text)


def test_no_instant_is_none() -> None:
    assert states.read_instant("") is None


def test_bad_positions_and_states_are_refused() -> None:
    with pytest.raises(Rejected, match="--at -1"):
        states.read_position(-1)
    with pytest.raises(Rejected, match="--at 18446744073709551616"):
        states.read_position(2**64)
    with pytest.raises(Rejected, match="choose from active"):
        states.read_state("dead")
    assert states.read_state("Stale") == living_pb2.LIVING_STATE_STALE


def test_a_state_is_described() -> None:
    assert states.state_lines(REPORT) == (
        "policy.md  revision 2  Policy",
        "state    superseded",
        "why      supersedes by n",
        "version  1.9 of policy",
        "since    1970-01-02T00:00:00Z",
    )


def test_an_export_is_ordered_lines() -> None:
    first = living_pb2.StateReport(document_id="a", state=living_pb2.LIVING_STATE_ACTIVE, not_in_force_yet=True)
    written = states.export_lines((REPORT, first))
    assert written == states.export_lines((first, REPORT))
    assert [json.loads(line)["document_id"] for line in written.splitlines()] == ["a", "d"]
    assert states.state_name(first) == "active, not in force yet"


def test_an_explanation_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    candidate = query_service_pb2.ConsideredCandidate(
        source_id="policy.md", score=0.5, keyword_rank=1, state=REPORT, cited=True, reason="its document is cited"
    )
    answers.show_explanation([candidate])
    shown = capsys.readouterr().out
    assert "policy.md#0" in shown
    assert "superseded" in shown
    answers.show_explanation([])
    assert "no explanation" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["state", "x", "--as-of", "soon"],
        ["states", "--state", "dead"],
        ["ask", "x", "--at", "-2"],
        ["search", "x", "--reach", "far"],
    ],
)
def test_bad_arguments_are_told(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, [*arguments, "--address", "127.0.0.1:1"])
    assert result.exit_code == 3
