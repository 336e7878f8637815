"""`receipt`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from affidavit.receipt.v1 import receipt_service_pb2
from affidavit.verify import cli as verifier

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import JsonFlag, as_dict, explained, print_json, say, say_lines, write_file

app = typer.Typer(help="Show, export and verify receipts.", no_args_is_help=True)


@app.command("show")
def show(
    receipt: Annotated[str, typer.Argument(help="Receipt id.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the receipt to this file.")] = None,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Show a receipt, and write it to a file when asked."""
    with explained():
        request = receipt_service_pb2.GetReceiptRequest(crate_id=crate, receipt_id=receipt)
        found = Client(data_dir=data_dir, address=address).receipt.GetReceipt(request)
        if json_output:
            print_json(as_dict(found))
        else:
            say_lines(found.view_json)
            if not found.disclosed:
                say("texts were erased or withheld; the commitments stay")
        if output is not None:
            write_file(output, found.bundle)
            if not json_output:
                say(f"written to {output}")


@app.command("keys")
def keys(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the keys file here.")] = None,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Print or write the keys file: what a verifier pins."""
    with explained():
        request = receipt_service_pb2.ListKeysRequest(crate_id=crate)
        found = Client(data_dir=data_dir, address=address).receipt.ListKeys(request)
        if output is not None:
            write_file(output, found.keys_file)
        if json_output:
            print_json(as_dict(found))
        elif output is not None:
            say(f"written to {output}")
        else:
            say_lines(found.keys_file.decode(errors="replace"))


@app.command(
    "verify", context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)
def verify(context: typer.Context) -> None:
    """Check a receipt offline: `receipt verify FILE --keys FILE`, as `affidavit-verify` does."""
    raise typer.Exit(verifier.run(context.args))
