"""The command: exit codes, output for people and programs, and that it works from the contracts alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import affidavit.verify
import pytest
from affidavit.verify import cli
from affidavit.verify.bundle import Disclosures, assemble, parse_bundle

from tests.contract.receipt_maker import ANSWER, QUESTION, Maker

MAKER = Maker()
CHAIN = MAKER.chain(3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, file in enumerate(CHAIN):
        (tmp_path / f"{number}.receipt").write_bytes(file)
    (tmp_path / "keys").write_bytes(MAKER.keys_file)
    (tmp_path / "answer").write_text(ANSWER, encoding="utf-8")
    (tmp_path / "question").write_text(QUESTION, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str) -> int:
    files = {one.name for one in folder.iterdir()}
    placed = [str(folder / argument) if argument in files else argument for argument in arguments]
    return cli.run([*placed, "--keys", str(folder / "keys")])


def test_a_good_receipt_exits_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "0.receipt", "--question", QUESTION, "--answer-file", "answer") == 0
    out = capsys.readouterr().out
    assert "integrity             ok" in out
    assert "logged                not shown" in out
    assert out.splitlines()[-1] == "exit 0: the receipt holds; what is not shown above is not proven"
    assert QUESTION not in out


def test_texts_are_shown_on_request_without_control_characters(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "0.receipt", "--texts") == 0
    out = capsys.readouterr().out
    assert f"--- question ---\n{QUESTION}\n" in out
    assert "--- evidence 2 ---\nOpening hours: 9-17.\\u000d\n" in out


def test_json_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "2.receipt", "--json", "--chain", "1.receipt", "0.receipt") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["exit"] == 0
    assert record["findings"]["chain link"]["detail"] == "unbroken from receipt 0 to 2"
    assert record["facts"]["sequence"] == 2


def test_every_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cut").write_bytes(CHAIN[0][:-1])
    (folder / "foreign").write_bytes(Maker(seed=2).bundle())
    gone = Disclosures.none(citations=3, why="withheld")
    (folder / "withheld").write_bytes(assemble(parse_bundle(CHAIN[0]).receipt.cose, gone))
    swapped = assemble(parse_bundle(CHAIN[0]).receipt.cose, parse_bundle(CHAIN[1]).disclosures)
    (folder / "swapped").write_bytes(swapped)
    assert run(folder, "cut") == 1
    assert run(folder, "absent") == 2
    assert "absent can't be read" in capsys.readouterr().err
    assert run(folder, "foreign") == 3
    assert run(folder, "2.receipt", "--chain", "0.receipt") == 4
    assert run(folder, "swapped") == 5
    assert run(folder, "0.receipt", "--question", "another") == 6
    assert run(folder, "withheld", "--question-file", "question") == 6
    assert run(folder, "withheld") == 0
    (folder / "keys").write_bytes(MAKER.keys_file[:-1])
    assert run(folder, "0.receipt") == 7
    assert "does NOT hold (keys file)" in capsys.readouterr().out


def test_a_stated_link_is_not_enough_where_it_is_required(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "2.receipt") == 0
    assert run(folder, "2.receipt", "--require-chain") == 4
    assert run(folder, "2.receipt", "--require-chain", "--chain", "1.receipt") == 0
    assert run(folder, "0.receipt", "--require-chain") == 0
    assert capsys.readouterr().out


def test_the_help_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for code in range(8):
        assert f"\n  {code}  " in out


def test_wrong_usage_exits_2() -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run([])
    assert caught.value.code == 2


ALONE = """
import importlib.abc, socket, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {"services", "grpc", "google", "nats", "asyncpg", "tests"}:
            raise ImportError("not part of the verifier: " + name)
        return None

def no_network(*_):
    raise AssertionError("the verifier opened a socket")

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv.pop(1))
socket.socket = no_network
from affidavit.verify.cli import main
code = main()
known = set(sys.stdlib_module_names) | {"affidavit", "blake3", "nacl", "cbor2", "typing_extensions"}
foreign = {name.split(".")[0] for name in sys.modules} - known
foreign = {name for name in foreign if not name.startswith("_")}  # compiled parts and the interpreter's own
assert not foreign, foreign
sys.exit(code)
"""


def test_it_works_from_the_contracts_alone_without_a_network(folder: Path) -> None:
    root = Path(affidavit.verify.__file__).parents[2]
    command = [sys.executable, "-c", ALONE, str(root), str(folder / "0.receipt"), "--keys", str(folder / "keys")]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  (our own interpreter)
    assert done.stderr == ""
    assert done.returncode == 0
    (folder / "0.receipt").write_bytes(CHAIN[0].replace(b"saffron", b"saffrom"))
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603  (our own interpreter)
    assert done.returncode == 5
