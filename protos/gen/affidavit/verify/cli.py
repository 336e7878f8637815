"""`affidavit-verify`: check a receipt's file against a pinned keys file, offline."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from affidavit.verify.bundle import MAX_BUNDLE_BYTES, Gone, Opened, OpenedEvidence, parse_bundle
from affidavit.verify.keys import MAX_KEYS_BYTES
from affidavit.verify.verdict import MATCHED, STATED, Exit, Finding, Verdict
from affidavit.verify.verifier import verify_bundle

_EXITS = """exit codes:
  0  keys file, integrity, issuer and chain link hold, and no text differs
  1  the receipt's bytes were refused, or its signature isn't good
  2  wrong usage, or a file can't be read
  3  no pinned key of the issuer signed it
  4  its chain link is broken: gap, fork, wrong parent, other chain
  5  a disclosed text isn't the one that the receipt commits to
  6  the question or answer passed in isn't the receipt's, or can't be compared
  7  the keys file was refused

chain link: a receipt names the one before it. With one file this reads "stated", which exits 0: the issuer signed the
name, nobody has looked behind it. With --chain the receipts before it are checked and gaps are reported; with
--require-chain "stated" exits 4.
"not shown" is never "ok": the receipt carries no proof of it."""


def main() -> int:
    """Run the command with the process's own arguments; returns its exit code."""
    return run(sys.argv[1:])


def run(arguments: Sequence[str]) -> int:
    """Run the command.

    Args:
        arguments: Command line without the program's name.

    Returns:
        The exit code.
    """
    options = _parser().parse_args(arguments)
    try:
        file = _read(options.file, MAX_BUNDLE_BYTES)
        verdict = verify_bundle(
            file,
            _read(options.keys, MAX_KEYS_BYTES),
            question=_given(options.question, options.question_file),
            answer=_given(None, options.answer_file),
            parents=[_read(path, MAX_BUNDLE_BYTES) for path in options.chain],
        )
    except OSError as error:
        sys.stderr.write(f"affidavit-verify: {error.filename} can't be read: {error.strerror}\n")
        return int(Exit.USAGE)
    exit_code = verdict.exit
    if options.require_chain and exit_code is Exit.OK and verdict.chain_link.state == STATED:
        exit_code = Exit.CHAIN_LINK
    if options.json:
        record = {**verdict.as_dict(), "exit": int(exit_code), "exit_name": exit_code.name.lower()}
        sys.stdout.write(json.dumps(record, ensure_ascii=True, indent=2) + "\n")
    else:
        sys.stdout.write(_report(verdict, exit_code))
        if options.texts and verdict.facts:
            sys.stdout.write(_texts(file, verdict))
    return int(exit_code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="affidavit-verify",
        description="Check a receipt offline: no server, no network, only the file and a pinned keys file.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="receipt and disclosures, as `affidavit ask` saved them"
    )
    parser.add_argument("--keys", type=Path, required=True, metavar="FILE", help="keys file, fetched once and kept")
    asked = parser.add_mutually_exclusive_group()
    asked.add_argument("--question", metavar="TEXT", help="compare with the question that was asked")
    asked.add_argument("--question-file", type=Path, metavar="FILE", help="the same, from a UTF-8 file, byte by byte")
    parser.add_argument("--answer-file", type=Path, metavar="FILE", help="compare with the answer that was delivered")
    parser.add_argument(
        "--chain", type=Path, nargs="+", default=[], metavar="FILE", help="other receipts of the same chain, any order"
    )
    parser.add_argument("--require-chain", action="store_true", help="fail unless the receipt before it was checked")
    parser.add_argument("--texts", action="store_true", help="also print the texts that match their commitments")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    return parser


def _read(path: Path, limit: int) -> bytes:
    # One byte over the limit is enough to have the file refused by its size.
    with path.open("rb") as file:
        return file.read(limit + 1)


def _given(text: str | None, path: Path | None) -> bytes | None:
    if path is not None:
        return _read(path, MAX_BUNDLE_BYTES)
    return None if text is None else os.fsencode(text)


def _report(verdict: Verdict, exit_code: Exit) -> str:
    lines = [_line(name, finding) for name, finding in verdict.lines()]
    if verdict.facts:
        lines.append(f"issued by {_printable(verdict.facts.issuer)} as number {verdict.facts.sequence} of its chain,")
        lines.append(f"at {verdict.facts.issued_at_ms} ms since 1970 by its own clock, which proves nothing")
    outcome = "holds" if exit_code is Exit.OK else f"does NOT hold ({exit_code.name.lower().replace('_', ' ')})"
    lines.append(f"exit {int(exit_code)}: the receipt {outcome}; what is not shown above is not proven")
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, finding: Finding) -> str:
    return f"{name:<21} {finding.state:<11} {_printable(finding.detail)}".rstrip()


def _texts(file: bytes, verdict: Verdict) -> str:
    shown = parse_bundle(file).disclosures
    texts: list[tuple[str, Finding, Opened | OpenedEvidence | Gone]] = [
        ("question", verdict.question, shown.question),
        ("answer", verdict.answer, shown.answer),
    ]
    texts += [
        (f"evidence {number}", finding, one)
        for number, (finding, one) in enumerate(zip(verdict.evidence, shown.evidence, strict=True), 1)
    ]
    return "".join(
        f"\n--- {name} ---\n{_printable(_decoded(one.content))}\n"
        for name, finding, one in texts
        if finding.state == MATCHED and not isinstance(one, Gone)
    )


def _decoded(content: object) -> str:
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)


def _printable(text: str) -> str:
    # A hostile file must not reach the terminal with control characters or direction overrides.
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in text)


if __name__ == "__main__":
    sys.exit(main())
