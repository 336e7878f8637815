"""What a terminal is shown: no control of a document's author over it, and JSON that stays faithful."""

from __future__ import annotations

import io
import json
import unicodedata
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from services.cli import output
from services.kernel.errors import Conflict, Failure, NotFound, Rejected


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u202eb", r"a\u202eb"),
        ("one\ntwo\r\t", r"one\ntwo\r\t"),
        ("\x9b2J\x7f", r"\x9b2J\x7f"),
        ("\u2066x\u2069\u200f\u2028", r"\u2066x\u2069\u200f\u2028"),
        ("caf\udce9.md", r"caf\xe9.md"),
        ("\ud800", r"\ud800"),
        ("Zoë, 東京, \U0001f468\u200d\U0001f469, ک\u200cک, \u00ad", None),
        (r"[red]not markup[/red] :smile: \[x] C:\new", None),
    ],
)
def test_unsafe_characters_are_escaped_and_others_kept(
    text: str, shown: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = text if shown is None else shown
    assert output.printable(text) == expected
    output.say(text)
    output.print_table(("name",), [(text,)])
    said, _, row = capsys.readouterr().out.rstrip("\n").split("\n")
    assert (said, row.rstrip()) == (expected, expected)


def test_no_control_character_is_left() -> None:
    everything = "".join(map(chr, range(0x110000)))
    left = set(output.printable(everything))
    assert not {character for character in left if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")}
    bidirectional = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    assert not {character for character in left if unicodedata.bidirectional(character) in bidirectional}


def test_lines_of_a_text_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    output.say_lines("a\n\tb\x1b\n")
    assert capsys.readouterr().out == "a\n        b\\x1b\n"


def test_json_is_faithful_and_safe(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"t\x9b": ["\x1b[2J \u202e\u2028 \udcff", "東京\n"]}
    output.print_json(value)
    written = capsys.readouterr().out
    assert json.loads(written) == value
    assert "東京" in written
    assert not {"\x1b", "\x9b", "\u202e", "\u2028", "\udcff"} & set(written)


def command(raised: BaseException) -> typer.Typer:
    app = typer.Typer()

    @app.command()
    def one(json_output: output.JsonFlag = False) -> None:
        del json_output
        with output.explained():
            raise raised

    return app


FAILURES = [
    (Rejected("bad \x1b"), 3, "rejected"),
    (NotFound("gone"), 4, "not_found"),
    (Conflict("taken"), 6, "conflict"),
    (Failure("odd"), 1, "fault"),
    (PermissionError(13, "Permission denied", "/f"), 1, "fault"),
    (KeyboardInterrupt(), 1, "fault"),
]


@pytest.mark.parametrize(("raised", "exit_code", "code"), FAILURES)
def test_failures_are_one_line_or_one_object(raised: BaseException, exit_code: int, code: str) -> None:
    plain = CliRunner().invoke(command(raised))
    assert (plain.exit_code, plain.stdout) == (exit_code, "")
    assert plain.stderr.startswith("error: ")
    assert plain.stderr.count("\n") == 1
    assert "\x1b" not in plain.stderr
    told = CliRunner().invoke(command(raised), ["--json"])
    assert (told.exit_code, told.stdout) == (exit_code, "")
    error = json.loads(told.stderr)["error"]
    assert error["code"] == code
    assert output.printable(error["message"]) == plain.stderr.removeprefix("error: ").rstrip("\n")


def test_an_argument_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "\udcff what".encode()
    told = CliRunner().invoke(command(caught.value))
    assert told.exit_code == 3
    assert r"\xff what" in told.stderr


def test_a_closed_pipe_is_no_failure_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with pytest.raises(BrokenPipeError), output.explained():
        raise BrokenPipeError(32, "Broken pipe")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    output.write_file(tmp_path / "r", b"x")
    assert (tmp_path / "r").read_bytes() == b"x"
    with pytest.raises(Failure, match="nowhere/r can't be written: No such file"):
        output.write_file(tmp_path / "nowhere" / "r", b"x")
