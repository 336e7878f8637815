"""`failures retry` and `failures drop`: numbers that can't be one, and failures that can't be settled."""

# ruff: noqa: N802  (names of the contracts)

from __future__ import annotations

import json
from typing import Any, cast

import grpc
import pytest
from affidavit.ingest.v1 import ingest_service_pb2 as pb
from typer.testing import CliRunner

from services.cli import app, failures


class Refusal(grpc.RpcError):
    """What a node answers."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class Ingest:
    """Four failures, of which some can't be retried."""

    def __init__(self, refused: dict[int, grpc.StatusCode]) -> None:
        self._refused = refused
        self.asked: list[int] = []

    def ListFailures(self, _request: pb.ListFailuresRequest) -> pb.ListFailuresResponse:
        return pb.ListFailuresResponse(failures=[pb.Failure(failure_id=number) for number in (4, 3, 2, 1)])

    def RetryFailure(self, request: pb.RetryFailureRequest) -> pb.RetryFailureResponse:
        self.asked.append(request.failure_id)
        if request.failure_id in self._refused:
            raise Refusal(self._refused[request.failure_id], f"{request.failure_id} is still damaged")
        return pb.RetryFailureResponse(position=request.failure_id + 100)


def retry(monkeypatch: pytest.MonkeyPatch, refused: dict[int, grpc.StatusCode], *arguments: str) -> tuple[Ingest, Any]:
    ingest = Ingest(refused)

    class Client:
        def __init__(self, **_: object) -> None:
            self.ingest = ingest

    monkeypatch.setattr(failures, "Client", Client)
    return ingest, CliRunner().invoke(cast(Any, app), ["failures", "retry", *arguments])


def test_one_that_can_t_be_retried_doesn_t_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {4: grpc.StatusCode.INVALID_ARGUMENT, 2: grpc.StatusCode.ABORTED}
    ingest, result = retry(monkeypatch, refused, "--all")
    assert ingest.asked == [4, 3, 2, 1]
    assert result.exit_code == 8
    assert "failure 3 was retried at position 103" in result.stdout
    assert "failure 1 was retried at position 101" in result.stdout
    assert "failure 4 was not retried: 4 is still damaged" in result.stderr
    assert "2 of 4 failures were not retried" in result.stderr


def test_programs_are_told_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = retry(monkeypatch, {2: grpc.StatusCode.NOT_FOUND}, "1", "2", "--json")
    assert result.exit_code == 8
    told = {one["failure_id"]: one for one in json.loads(result.stdout)}
    assert told[1]["position"] in (101, "101")
    assert told[2]["error"] == "2 is still damaged"
    assert json.loads(result.stderr)["error"]["code"] == "partial"


def test_one_alone_keeps_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = retry(monkeypatch, {2: grpc.StatusCode.ABORTED}, "2")
    assert (result.exit_code, result.stdout) == (6, "")


def test_a_node_that_is_away_isn_t_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ingest, result = retry(monkeypatch, {3: grpc.StatusCode.UNAVAILABLE}, "--all")
    assert ingest.asked == [4, 3]
    assert result.exit_code == 5
    assert "failure 4 was retried" in result.stdout


@pytest.mark.parametrize("verb", ["retry", "drop"])
@pytest.mark.parametrize("number", ["999999999999999999999", "9223372036854775808", "0", "-1", "x"])
def test_numbers_that_no_failure_has_are_wrong_usage(verb: str, number: str) -> None:
    result = CliRunner().invoke(cast(Any, app), ["failures", verb, number])
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert not isinstance(result.exception, ValueError)
