"""`make storm`: documents under kills, compared with the same documents in peace."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.e2e.commands import let_through
from tests.storm.state import differences
from tests.storm.storm import Run, run


def main() -> int:
    """Run storm and calm; 0 when both came to the same."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm", description=__doc__)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="affidavit-storm-") as folder:
        let_through(Path(folder))
        runs = {}
        for name, kills in (("calm", 0), ("storm", chosen.kills)):
            runs[name] = run(Path(folder) / name, documents=chosen.documents, kills=kills, seed=chosen.seed)
            _say(name, runs[name])
    faults = problems(runs["calm"], runs["storm"])
    sys.stdout.write("".join(f"{fault}\n" for fault in faults) or "equal: 0 lost, 0 doubled, 0 stuck\n")
    return 1 if faults else 0


def problems(calm: Run, storm: Run) -> list[str]:
    """What went wrong in a storm; nothing when all is well."""
    found = differences(calm.state, storm.state)
    found += [f"doubled in the log: {fact}" for fact in storm.state.doubled]
    found += [f"consumer {name} still has {count} events" for name, count in storm.state.waiting.items()]
    return [*found, "documents are stuck"] if storm.stuck else found


def _say(name: str, made: Run) -> None:
    kills = ", ".join(f"{process} {count}" for process, count in sorted(made.kills.items())) or "none"
    sys.stdout.write(
        f"{name}: {len(made.state.documents)} documents in {made.seconds:.0f} s, "
        f"{made.repeated} calls repeated, kills: {kills}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
