"""`up` and `run`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from services import topology
from services.cli.client import DEFAULT_DATA_DIR, DataDir
from services.cli.output import JsonFlag, explained, print_json, say
from services.embedded.folder import Endpoints
from services.kernel.errors import Rejected

if TYPE_CHECKING:
    from services.kernel.settings import NodeSettings

Listen = Annotated[str | None, typer.Option("--listen", help="host:port to serve on; loopback only.")]
LogLevel = Annotated[str, typer.Option("--log-level", envvar="AFFIDAVIT_LOG_LEVEL", help="debug, info, warning, error")]


def up(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    listen: Listen = None,
    apart: Annotated[bool, typer.Option("--apart", help="One process per role instead of one for all.")] = False,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes that cut and embed beside the main one.")
    ] = 1,
    log_level: LogLevel = "warning",
    json_output: JsonFlag = False,
) -> None:
    """Start everything on this machine: log, tables, vector engine and all eight roles. Stop with Ctrl-C."""
    from services.embedded import node
    from services.kernel.telemetry import configure_logging

    configure_logging(log_level)

    def announce(endpoints: Endpoints) -> None:
        if json_output:
            print_json({"address": endpoints.listen, "data_dir": str(data_dir.absolute()), "status": "ready"})
        else:
            say(f"address      {endpoints.listen}")
            say(f"data folder  {data_dir.absolute()}")
            say("ready")

    with explained():
        asyncio.run(node.up(_settings(data_dir, listen), workers=workers, apart=apart, announce=announce))


def run(
    roles: Annotated[list[str], typer.Argument(help="Roles to run in this process, or 'all'.")],
    data_dir: DataDir = DEFAULT_DATA_DIR,
    listen: Listen = None,
    log_level: LogLevel = "warning",
) -> None:
    """Run some roles against servers that run elsewhere (AFFIDAVIT_NATS_URL, AFFIDAVIT_POSTGRES_DSN)."""
    from services.embedded import node
    from services.kernel.telemetry import configure_logging

    configure_logging(log_level)
    chosen = list(topology.ROLE_NAMES) if roles == ["all"] else roles
    with explained():
        for role in chosen:
            if role not in topology.ROLE_NAMES:
                raise Rejected(f"there is no role {role!r}: choose from {', '.join(topology.ROLE_NAMES)}, or all")
        asyncio.run(node.run(_settings(data_dir, listen), chosen, listen=listen))


def _settings(data_dir: Path, listen: str | None) -> NodeSettings:
    from services.kernel.settings import NodeSettings

    if listen is None:
        return NodeSettings(data_dir=data_dir.absolute())
    return NodeSettings(data_dir=data_dir.absolute(), listen=listen)
