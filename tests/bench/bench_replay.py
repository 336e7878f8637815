"""Replays a node's log into empty tables and lanes: `python -m tests.bench.bench_replay --documents 5000`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from tests.audit.client import Auditor
from tests.audit.corpus import Corpus, CorpusDocument
from tests.audit.node import started

_CONSTANT = {"AFFIDAVIT_EMBEDDER_MODEL": "constant-384"}


def main() -> int:
    """Ingest documents of one chunk with a constant vector, stop the node, replay, print documents a second."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_replay", description=__doc__)
    parser.add_argument("--documents", type=int, default=5000)
    parser.add_argument("--data-dir", type=Path, help="kept, and used as it is when it holds a node already")
    parser.add_argument("--projection", default="", help="one role's projections only")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="affidavit-bench-") as root:
        folder = chosen.data_dir or Path(root)
        if not (folder / "nats").exists():
            _ingest(folder, chosen.documents)
        if not chosen.projection:
            _print_log_part(chosen.documents, _replay(folder, "ingest"))
        _print(chosen.documents, _replay(folder, chosen.projection), chosen.projection)
    return 0


def _ingest(folder: Path, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    documents = tuple(
        CorpusDocument(f"note-{number}", "text/plain", "", f"Note {number}: berth {number * 7 % 911} is free.".encode())
        for number in range(count)
    )
    with started(environment=dict(os.environ) | _CONSTANT, data_dir=folder) as (address, _):
        _, seconds = Auditor(address=address, crate="bench").put(Corpus("short", documents, ()))
    sys.stdout.write(f"ingest  {count:>7,} documents {seconds:7.1f} s {count / seconds:9,.0f} documents/s\n")


def _replay(folder: Path, projection: str) -> Any:
    command = [str(Path(sysconfig.get_path("scripts")) / "affidavit"), "replay", "--json", "--data-dir", str(folder)]
    done = subprocess.run([*command, "--projection", projection], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"the replay ended with {done.returncode}: {done.stderr}{done.stdout[:2000]}")
    return json.loads(done.stdout)


def _print_log_part(count: int, report: Any) -> None:
    """The log and Postgres alone: what every replay needs, however many lanes there are."""
    seconds = report["seconds"]
    sys.stdout.write(
        f"log     {count:>7,} documents {seconds:7.1f} s {count / seconds:9,.0f} documents/s: every event of ingest read "
        f"and applied to its tables in Postgres, no lanes; equal: {report['equal']}\n"
    )


def _print(count: int, report: Any, projection: str) -> None:
    for each in report["projections"]:
        rate = each["events"] / each["seconds"] if each["seconds"] else 0
        sys.stdout.write(
            f"  {each['name']:<18} {each['events']:>7,} events {each['seconds']:8.1f} s {rate:9,.0f} events/s\n"
        )
    seconds = report["seconds"]
    what = f"projections of {projection} alone" if projection else "all projections side by side, lanes included"
    sys.stdout.write(
        f"replay  {count:>7,} documents {seconds:7.1f} s {count / seconds:9,.0f} documents/s, {what}; {report['model_calls']} calls of a model, equal: {report['equal']}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
