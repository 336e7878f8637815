"""`replay`: builds tables and lanes from the log once more and compares them with those in use."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.client import DEFAULT_DATA_DIR, DataDir
from services.cli.output import Exit, JsonFlag, explained, print_json, print_table, say

if TYPE_CHECKING:
    from services.embedded.replay import Report
    from services.kernel.digests import Digest

_SHOWN_HEX = 16


def replay(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    projection: Annotated[
        str, typer.Option("--projection", help="One role's projections: ingest, index or receipt. All by default.")
    ] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep what was built, in <role>_replay and replay/.")] = False,
    log_level: Annotated[str, typer.Option("--log-level", envvar="AFFIDAVIT_LOG_LEVEL")] = "error",
    json_output: JsonFlag = False,
) -> None:
    """Build tables and lanes from the log beside those in use, and compare; exit code 11 when they differ.

    Works on a running node, which goes on meanwhile, and on a stopped one. Calls no model and changes nothing that is
    in use.
    """
    from services.embedded.replay import REPLAYED, replay
    from services.kernel.settings import NodeSettings
    from services.kernel.telemetry import configure_logging

    configure_logging(log_level)
    roles = (projection.partition(".")[0],) if projection else REPLAYED
    with explained():
        report = asyncio.run(replay(NodeSettings(data_dir=data_dir.absolute()), roles=roles, keep=keep))
    if json_output:
        print_json(_plain(report))
    else:
        _show(report)
    if not report.equal:
        raise typer.Exit(Exit.DIFFERENT)


def _plain(report: Report) -> dict[str, object]:
    return {
        "equal": report.equal,
        "model_calls": report.model_calls,
        "seconds": round(report.seconds, 3),
        "projections": [asdict(each) for each in report.projections],
        "comparisons": [{**asdict(each), "equal": each.equal} for each in report.comparisons],
    }


def _show(report: Report) -> None:
    print_table(
        ("projection", "position", "events", "seconds", "given up"),
        [
            (each.name, each.position, f"{each.events:,}", f"{each.seconds:.1f}", len(each.given_up))
            for each in report.projections
        ],
    )
    say()
    print_table(
        ("compared", "rows", "digest", ""),
        [
            (
                each.name,
                f"{each.live.rows:,}" if each.live.rows == each.replayed.rows else _both(each.live, each.replayed),
                each.replayed.value[:_SHOWN_HEX],
                "equal" if each.equal else "DIFFERENT",
            )
            for each in report.comparisons
        ],
    )
    for each in report.comparisons:
        for difference in each.differences:
            say(f"{each.name}: {difference}")
    say()
    verdict = "equal" if report.equal else "different: what is live isn't what the log says"
    say(f"{verdict}; {report.seconds:.1f} s, {report.model_calls} calls of a model")


def _both(live: Digest, replayed: Digest) -> str:
    return f"{live.rows:,} live, {replayed.rows:,} replayed"
