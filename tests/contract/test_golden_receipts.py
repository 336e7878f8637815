"""Receipts that were issued once verify for ever, with the same ids, findings and exit codes.

The files were made by `python -m tests.contract.test_golden_receipts` when the format was fixed. Never make them again:
a change of the format is a new version with files of its own beside these.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from affidavit.verify import Exit, bundle, verify_bundle
from affidavit.verify.bundle import Disclosures, Gone, parse_bundle

from tests.contract.receipt_maker import ANSWER, QUESTION, Maker, reassembled

GOLDEN = Path(__file__).parent / "golden" / "v0"
EXPECTED: dict[str, dict[str, Any]] = (
    json.loads((GOLDEN / "expected.json").read_text("utf-8")) if GOLDEN.exists() else {}
)


def read(name: str) -> bytes:
    return (GOLDEN / name).read_bytes()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_golden_receipt_still_verifies(name: str) -> None:
    case = EXPECTED[name]
    verdict = verify_bundle(
        read(name),
        read("keys"),
        question=QUESTION if case["texts"] else None,
        answer=ANSWER if case["texts"] else None,
        parents=[read(other) for other in case["chain"]],
    )
    assert verdict.exit is Exit.OK
    assert verdict.facts is not None
    assert verdict.facts.receipt_id == case["receipt_id"]
    assert {label: one.state for label, one in verdict.lines()} == case["states"]


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_golden_receipt_that_is_touched_does_not(name: str) -> None:
    file = read(name)
    for position in range(0, len(file), 5):
        changed = bytearray(file)
        changed[position] ^= 0x10
        assert bytes(changed) != file
        assert verify_bundle(bytes(changed), read("keys")).exit is not Exit.OK, position


def test_the_golden_files_are_all_there() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {"expected.json", "keys", *EXPECTED}
    assert len(EXPECTED) == 6


def make() -> dict[str, bytes]:
    """One chain of five receipts in different states, and a second face of the first."""
    maker = Maker(seed=20261130)
    chain = maker.chain(3)
    last = parse_bundle(chain[-1]).receipt.id
    plain = maker.bundle(sequence=3, parent=last, change=lambda body: body.pop("llm"))
    bare = Maker(seed=20261130, evidence=()).bundle(
        sequence=4, parent=parse_bundle(plain).receipt.id, change=lambda body: body["llm"].pop("rid")
    )
    shown = parse_bundle(chain[1]).disclosures
    gone = Gone("erased")
    erased = reassembled(
        chain[1],
        question=gone,
        answer=gone,
        raw_answer=gone,
        repairs=gone,
        candidates=gone,
        evidence=(gone, *shown.evidence[1:]),
    )
    withheld = bundle.assemble(parse_bundle(chain[0]).receipt.cose, Disclosures.none(citations=3, why="withheld"))
    return {
        "0-first.receipt": chain[0],
        "0-withheld.receipt": withheld,
        "1-erased.receipt": erased,
        "2-linked.receipt": chain[2],
        "3-without-model.receipt": plain,
        "4-without-evidence.receipt": bare,
    }


def main() -> None:
    """Write the files, unless they exist."""
    if GOLDEN.exists():
        sys.exit(f"{GOLDEN} exists: golden receipts are made once")
    GOLDEN.mkdir(parents=True)
    keys = Maker(seed=20261130).keys_file
    files = make()
    (GOLDEN / "keys").write_bytes(keys)
    expected = {}
    parents = {"1-erased.receipt": ["0-first.receipt"], "3-without-model.receipt": ["2-linked.receipt"]}
    for name, file in files.items():
        texts = name in ("0-first.receipt", "2-linked.receipt")
        chain = parents.get(name, [])
        verdict = verify_bundle(
            file,
            keys,
            question=QUESTION if texts else None,
            answer=ANSWER if texts else None,
            parents=[files[other] for other in chain],
        )
        if verdict.facts is None or verdict.exit is not Exit.OK:
            sys.exit(f"{name} doesn't verify: {verdict}")
        (GOLDEN / name).write_bytes(file)
        expected[name] = {
            "receipt_id": verdict.facts.receipt_id,
            "texts": texts,
            "chain": chain,
            "states": {label: one.state for label, one in verdict.lines()},
        }
    (GOLDEN / "expected.json").write_text(json.dumps(expected, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
