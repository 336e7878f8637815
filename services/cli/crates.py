"""`crate` and `job`."""

from __future__ import annotations

from typing import Annotated

import typer
from affidavit.ingest.v1 import ingest_service_pb2, settings_pb2
from google.protobuf.descriptor import FieldDescriptor

from services.cli import rules
from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.output import JsonFlag, as_dict, explained, print_json, print_table, say
from services.kernel.errors import Rejected

app = typer.Typer(help="Create crates and change their settings.", no_args_is_help=True)
jobs = typer.Typer(help="Ingest jobs: chunk settings by name.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Crate id: a-z, 0-9 and '-', at most 40.")]
Pairs = Annotated[list[str] | None, typer.Argument(help="name=value, for example retrieval_mode=lexical")]
_BOOLEANS = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}


@app.command("create")
def create(
    crate: Name,
    settings: Pairs = None,
    state_word: rules.Words = None,
    window: rules.Windows = None,
    superseding_series: rules.Series = None,
    state_rules: rules.RulesFile = None,
    answer_url: Annotated[str, typer.Option(help="OpenAI-compatible endpoint that writes propositions.")] = "",
    answer_model: Annotated[str, typer.Option(help="Name of its model.")] = "",
    answer_credential: Annotated[str, typer.Option(help="Where its key is read from: env:NAME or file:name.")] = "",
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Create a crate, the isolation boundary of documents and answers."""
    with explained():
        request = ingest_service_pb2.CreateCrateRequest(crate_id=crate, settings=parse_settings(settings or []))
        if answer_url or answer_model or answer_credential:
            request.providers.add(
                role=settings_pb2.PROVIDER_ROLE_ANSWER,
                kind=settings_pb2.PROVIDER_KIND_OPENAI_COMPATIBLE,
                enabled=True,
                base_url=answer_url,
                model=answer_model,
                credential=answer_credential,
            )
        changes = rules.Changes(state_word or [], window or [], superseding_series or [], state_rules)
        if changes:
            request.settings.state_rules.CopyFrom(changes.applied(settings_pb2.StateRules()))
        show_crate(Client(data_dir=data_dir, address=address).ingest.CreateCrate(request).crate, json_output)


@app.command("show")
def show(
    crate: Annotated[str, typer.Argument(help="Crate id; without it, all crates.")] = "",
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Show a crate's settings, or list all crates."""
    with explained():
        client = Client(data_dir=data_dir, address=address)
        if crate:
            found = client.ingest.GetCrate(ingest_service_pb2.GetCrateRequest(crate_id=crate)).crate
            show_crate(found, json_output)
            return
        crates = client.ingest.ListCrates(ingest_service_pb2.ListCratesRequest()).crates
        if json_output:
            print_json([as_dict(found) for found in crates])
        else:
            print_table(("crate", "documents"), [(found.crate_id, found.documents) for found in crates])


@app.command("set")
def set_settings(
    crate: Name,
    settings: Pairs = None,
    state_word: rules.Words = None,
    window: rules.Windows = None,
    superseding_series: rules.Series = None,
    state_rules: rules.RulesFile = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Change settings of a crate; what isn't named stays."""
    with explained():
        request = ingest_service_pb2.ConfigureCrateRequest(crate_id=crate, settings=parse_settings(settings or []))
        changes = rules.Changes(state_word or [], window or [], superseding_series or [], state_rules)
        if not settings and not changes:
            raise Rejected("nothing to change is named: give name=value pairs or an option, see --help")
        client = Client(data_dir=data_dir, address=address)
        if changes:
            held = client.ingest.GetCrate(ingest_service_pb2.GetCrateRequest(crate_id=crate)).crate.settings
            request.settings.state_rules.CopyFrom(changes.applied(held.state_rules))
        show_crate(client.ingest.ConfigureCrate(request).crate, json_output)


@jobs.command("set")
def set_job(
    job: Annotated[str, typer.Argument(help="Job id.")],
    chunk_size: Annotated[int | None, typer.Option(max=2**32 - 1, help="Characters of a chunk.")] = None,
    chunk_overlap: Annotated[int | None, typer.Option(max=2**32 - 1, help="Characters that neighbours share.")] = None,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Create a job or change its chunk settings; they hold for documents that are ingested later."""
    with explained():
        request = ingest_service_pb2.PutJobRequest(crate_id=crate, job=ingest_service_pb2.Job(job_id=job))
        if chunk_size is not None:
            request.job.chunking.size_chars = max(chunk_size, 0)
        if chunk_overlap is not None:
            request.job.chunking.overlap_chars = max(chunk_overlap, 0)
        reply = Client(data_dir=data_dir, address=address).ingest.PutJob(request)
        if json_output:
            print_json(as_dict(reply))
            return
        chunking = reply.job.chunking
        say(f"job {job}: chunks of {chunking.size_chars} characters, overlap {chunking.overlap_chars}")
        for notice in reply.notices:
            say(f"notice: {notice}")


@jobs.command("list")
def list_jobs(
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """List a crate's jobs."""
    with explained():
        request = ingest_service_pb2.ListJobsRequest(crate_id=crate)
        found = Client(data_dir=data_dir, address=address).ingest.ListJobs(request).jobs
        if json_output:
            print_json([as_dict(job) for job in found])
        else:
            rows = [(job.job_id, job.chunking.size_chars, job.chunking.overlap_chars) for job in found]
            print_table(("job", "chunk size", "overlap"), rows)


def parse_settings(pairs: list[str]) -> settings_pb2.CrateSettings:
    """Read name=value pairs against the contract's own field names.

    Args:
        pairs: For example "source_limit=4".

    Returns:
        Settings with only the named fields set.

    Raises:
        Rejected: When a name or value is unknown; the message lists what is possible.
    """
    settings = settings_pb2.CrateSettings()
    fields = settings.DESCRIPTOR.fields_by_name
    for pair in pairs:
        name, _, text = pair.partition("=")
        field = fields.get(name.strip().replace("-", "_"))
        if field is None:
            raise Rejected(f"there is no setting {name!r}: choose from {', '.join(fields)}")
        if field.message_type is not None:
            raise Rejected(
                f"{field.name} is no single value: use --state-word, --window, --superseding-series or a file"
            )
        setattr(settings, field.name, _value(field, text.strip()))
    return settings


def _value(field: FieldDescriptor, text: str) -> object:
    if field.enum_type is not None:
        prefix = f"{_screaming(field.enum_type.name)}_"
        known = {value.name.removeprefix(prefix).lower(): value.number for value in field.enum_type.values[1:]}
        if text.lower().replace("-", "_") in known:
            return known[text.lower().replace("-", "_")]
        raise Rejected(f"{field.name} can't be {text!r}: choose from {', '.join(known)}")
    if field.type == FieldDescriptor.TYPE_BOOL:
        if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        raise Rejected(f"{field.name} can't be {text!r}: choose true or false")
    if field.type == FieldDescriptor.TYPE_UINT32:
        if text.isdecimal():
            return min(int(text), 2**32 - 1)
        raise Rejected(f"{field.name} can't be {text!r}: give a whole number")
    return text


def _screaming(name: str) -> str:
    return "".join(f"_{letter}" if letter.isupper() and at else letter for at, letter in enumerate(name)).upper()


def show_crate(crate: ingest_service_pb2.Crate, json_output: bool) -> None:
    """Print one crate."""
    if json_output:
        print_json(as_dict(crate))
        return
    rows: list[tuple[str, object]] = [("crate", crate.crate_id), ("documents", crate.documents)]
    for field, value in crate.settings.ListFields():
        shown = value
        if field.enum_type is not None:
            label = field.enum_type.values_by_number[value].name
            shown = label.removeprefix(f"{_screaming(field.enum_type.name)}_").lower()
        if field.message_type is None:
            rows.append((field.name, shown))
    rows += rules.rows(crate.settings.state_rules)
    print_table(("setting", "value"), rows)
