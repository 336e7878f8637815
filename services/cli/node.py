"""`up` and `run`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services import topology
from services.cli.client import DEFAULT_DATA_DIR, DataDir
from services.cli.output import JsonFlag, explained, print_json, say
from services.embedded.folder import Endpoints
from services.kernel.errors import Rejected

if TYPE_CHECKING:
    from services.kernel.settings import NodeSettings

Listen = Annotated[str | None, typer.Option("--listen", help="host:port to serve on; loopback only.")]
LogLevel = Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")]


def up(
    data_dir: DataDir = DEFAULT_DATA_DIR,
    listen: Listen = None,
    apart: Annotated[bool, typer.Option("--apart", help="One process per role instead of one for all.")] = False,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes that cut and embed beside the main one.")
    ] = 1,
    log_level: LogLevel = None,
    json_output: JsonFlag = False,
) -> None:
    """Start everything on this machine: log, tables, vector engine and all eight roles. Stop with Ctrl-C."""
    from services.embedded import node
    from services.receipt.main import check_key

    def announce(endpoints: Endpoints) -> None:
        folder = data_dir.absolute()
        key = check_key(folder)
        warnings = [f"no receipt can be signed: {key}"] if key else []
        if json_output:
            found = {"address": endpoints.listen, "data_dir": str(folder), "status": "ready", "warnings": warnings}
            print_json(found)
            return
        say(f"address      {endpoints.listen}")
        say(f"data folder  {folder}")
        for warning in warnings:
            say(f"warning: {warning}")
        say("ready")

    with explained():
        settings = _settings(data_dir, listen, log_level)
        asyncio.run(node.up(settings, workers=workers, apart=apart, announce=announce))


def run(
    roles: Annotated[list[str], typer.Argument(help="Roles to run in this process, or 'all'.")],
    data_dir: DataDir = DEFAULT_DATA_DIR,
    listen: Listen = None,
    log_level: LogLevel = None,
) -> None:
    """Run some roles against servers that run elsewhere (AFFIDAVIT_NATS_URL, AFFIDAVIT_POSTGRES_DSN)."""
    from services.embedded import node

    chosen = list(topology.ROLE_NAMES) if roles == ["all"] else roles
    with explained():
        for role in chosen:
            if role not in topology.ROLE_NAMES:
                raise Rejected(f"there is no role {role!r}: choose from {', '.join(topology.ROLE_NAMES)}, or all")
        asyncio.run(node.run(_settings(data_dir, listen, log_level), chosen, listen=listen))


def _settings(data_dir: Path, listen: str | None, log_level: str | None) -> NodeSettings:
    """Read and check all settings, before anything is started."""
    from services.embedded import settings as all_settings
    from services.kernel.settings import NodeSettings
    from services.kernel.telemetry import configure_logging

    flags: dict[str, Any] = {"listen": listen, "log_level": log_level}
    given = {name: value for name, value in flags.items() if value is not None}
    settings = NodeSettings(data_dir=data_dir.absolute(), **given)
    all_settings.check(settings)
    configure_logging(settings.log_level)
    return settings
