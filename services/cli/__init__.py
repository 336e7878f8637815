"""Command line: `affidavit up | run | ingest | ask | search | documents | receipt | replay | ... `."""

from __future__ import annotations

import io
import sys

import typer

from services.cli import (
    answers,
    crates,
    doctor,
    documents,
    erasing,
    failures,
    node,
    propositions,
    receipts,
    relations,
    replay,
    states,
)

app = typer.Typer(
    name="affidavit",
    help="Cited answers from living knowledge bases, with a receipt that a stranger can check.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(node.up)
app.command("run")(node.run)
app.command("ingest")(documents.ingest)
app.command("documents")(documents.list_documents)
app.command("retire")(documents.retire)
app.command("erase")(erasing.erase)
app.command("relate")(relations.relate)
app.command("ask")(answers.ask)
app.command("search")(answers.search)
app.command("state")(states.state)
app.command("states")(states.states)
app.command("history")(states.history)
app.command("propositions")(propositions.propositions)
app.command("replay")(replay.replay)
app.command("doctor")(doctor.doctor)
app.add_typer(failures.app, name="failures")
app.add_typer(crates.app, name="crate")
app.add_typer(crates.jobs, name="job")
app.add_typer(receipts.app, name="receipt")


def main() -> None:
    """Console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal's charset may lack a character; that must not cost the rest of the output.
            stream.reconfigure(errors="backslashreplace")
    app()
