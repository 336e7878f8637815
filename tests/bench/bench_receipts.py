"""Speed of the verifier: best of twenty runs, in milliseconds. `python -m tests.bench.bench_receipts`."""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

from affidavit.verify import keys as keys_files
from affidavit.verify import verify_bundle
from affidavit.verify.bundle import parse_bundle
from affidavit.verify.chain import verify_chain

from tests.contract.receipt_maker import Maker

_RUNS = 20
_DEPTH = 50


def best_ms(call: Callable[[], object], repeats: int) -> float:
    """The fastest of twenty runs.

    Args:
        call: What is measured.
        repeats: Calls per run.

    Returns:
        Milliseconds per call.
    """
    return min(timeit.repeat(call, number=repeats, repeat=_RUNS)) / repeats * 1000


def rows(citations: int) -> list[tuple[str, float]]:
    """Measure receipts with some citations of 300 bytes each."""
    maker = Maker(evidence=(b"x" * 300,) * citations)
    files = maker.chain(_DEPTH)
    receipts = [parse_bundle(file).receipt.cose for file in files]
    keys = keys_files.parse(maker.keys_file)
    return [
        ("chain of 50, links and head signature", best_ms(lambda: verify_chain(receipts, keys), 4)),
        ("chain of 50, every signature", best_ms(lambda: verify_chain(receipts, keys, every_signature=True), 2)),
        ("one receipt", best_ms(lambda: verify_chain(receipts[-1:], keys), 50)),
        ("whole bundle with its keys file", best_ms(lambda: verify_bundle(files[-1], maker.keys_file), 50)),
    ]


def main() -> None:
    """Print the table."""
    for citations in (0, 2, 4, 8):
        for name, milliseconds in rows(citations):
            sys.stdout.write(f"{citations} citations  {name:<40} {milliseconds:8.3f} ms\n")


if __name__ == "__main__":
    main()
