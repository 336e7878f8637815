"""`ingest`, `documents` and `retire`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import grpc
import typer
from affidavit.ingest.v1 import ingest_service_pb2
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from services.cli.client import DEFAULT_CRATE, DEFAULT_DATA_DIR, Address, Client, Crate, DataDir
from services.cli.files import File, Found, find
from services.cli.output import (
    Exit,
    JsonFlag,
    as_dict,
    errors,
    explained,
    fail,
    print_json,
    print_table,
    printable,
    say,
    warn,
)
from services.kernel.errors import Rejected

# What concerns one file only: the others are sent all the same.
_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.UNIMPLEMENTED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
_UNARY_BYTES = 1024 * 1024
_SENDERS = 8
_PAGE = 500
SourceId = Annotated[str, typer.Argument(help="Source id, or the document's own id of 32 hex digits.")]


@dataclass(frozen=True, slots=True)
class _Sent:
    file: File
    reply: ingest_service_pb2.PutDocumentResponse | None
    error: str


def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Files or folders.", exists=True)],
    crate: Crate = DEFAULT_CRATE,
    job: Annotated[str, typer.Option("--job", help="Ingest job whose chunk settings hold.")] = "",
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything can be searched.")] = True,
    prefix: Annotated[str, typer.Option("--prefix", help="Put before every source id, for example 'wiki/'.")] = "",
    media_type: Annotated[str, typer.Option(help="Media type of all files; guessed by default.")] = "",
    charset: Annotated[str, typer.Option(help="Charset of all files; found out by default.")] = "",
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Put documents in: new ones are added, changed ones replace their last revision, others are left alone.

    A document's source id is the file's path below the folder that you name, or its name when you name the file.
    """
    with explained():
        found = find(paths, prefix=prefix)
        for skip in found.skipped if not json_output else ():
            warn(f"skipped: {skip.path} {skip.reason}")
        if not found.files:
            raise Rejected("there is no file in what you named: nothing was done")
        client = Client(data_dir=data_dir, address=address)
        header = ingest_service_pb2.DocumentHeader(media_type=media_type, charset=charset, job_id=job)
        with _progress(json_output) as progress:
            sent = _send_all(client, crate, found.files, header, progress)
            accepted = [item.reply.document_id for item in sent if item.reply is not None]
            counts = _wait(client, crate, accepted, progress) if wait and accepted else None
        failed = _failed(client, crate, accepted) if wait else []
        _report(found, sent, counts, failed, json_output)


def list_documents(
    source_id: Annotated[str, typer.Argument(help="Source id or document id; without it, all documents.")] = "",
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """List documents, or show one with all its revisions."""
    with explained():
        client = Client(data_dir=data_dir, address=address)
        if source_id:
            request = ingest_service_pb2.GetDocumentRequest(crate_id=crate, **which(source_id))
            _show_document(client.ingest.GetDocument(request).document, json_output)
            return
        found = list(_documents(client, crate))
        if json_output:
            print_json([as_dict(document) for document in found])
            return
        rows = [
            (document.source_id or "-", _status(document.status), document.revision, document.title)
            for document in found
        ]
        print_table(("source id", "status", "revision", "title"), rows)


def retire(
    source_id: SourceId,
    crate: Crate = DEFAULT_CRATE,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    address: Address = "",
    json_output: JsonFlag = False,
) -> None:
    """Take a document out of force: it isn't found any more, its history stays."""
    with explained():
        request = ingest_service_pb2.RetireDocumentRequest(crate_id=crate, **which(source_id))
        client = Client(data_dir=data_dir, address=address)
        reply = client.ingest.RetireDocument(request)
        if json_output:
            print_json(as_dict(reply))
        else:
            say(
                _already(client, crate, reply.document_id)
                if reply.unchanged
                else f"retired at position {reply.position}"
            )


def _progress(quiet: bool) -> Progress:
    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, disable=quiet or not errors.is_terminal, transient=True)


def _send_all(
    client: Client, crate: str, files: Sequence[File], header: ingest_service_pb2.DocumentHeader, progress: Progress
) -> list[_Sent]:
    bar = progress.add_task("sending", total=len(files))
    with ThreadPoolExecutor(max_workers=_SENDERS) as pool:
        sent = []
        for item in pool.map(lambda file: _send(client, crate, file, header), files):
            sent.append(item)
            progress.advance(bar)
    return sent


def _send(client: Client, crate: str, file: File, template: ingest_service_pb2.DocumentHeader) -> _Sent:
    if file.refusal:
        return _Sent(file, None, file.refusal)
    # No URI: a path on this machine says nothing to others, and would make the same bytes elsewhere another revision.
    header = ingest_service_pb2.DocumentHeader(source_id=file.source_id)
    header.MergeFrom(template)
    try:
        if file.path.stat().st_size <= _UNARY_BYTES:
            request = ingest_service_pb2.PutDocumentRequest(crate_id=crate, header=header, body=file.path.read_bytes())
            return _Sent(file, client.ingest.PutDocument(request), "")
        with file.path.open("rb") as body:
            return _Sent(file, client.ingest.UploadDocument(_pieces(crate, body, header)).result, "")
    except OSError as error:
        return _Sent(file, None, f"can't be read: {error.strerror}")
    except grpc.RpcError as error:
        if error.code() in _REFUSALS:
            return _Sent(file, None, error.details() or error.code().name)
        raise


def _pieces(
    crate: str, body: IO[bytes], header: ingest_service_pb2.DocumentHeader
) -> Iterator[ingest_service_pb2.UploadDocumentRequest]:
    yield ingest_service_pb2.UploadDocumentRequest(crate_id=crate, header=header)
    while piece := body.read(_UNARY_BYTES):
        yield ingest_service_pb2.UploadDocumentRequest(crate_id=crate, body=piece)


def _wait(
    client: Client, crate: str, document_ids: list[str], progress: Progress
) -> ingest_service_pb2.WatchProgressResponse:
    documents = progress.add_task("indexing", total=len(document_ids))
    chunks = progress.add_task("chunks", total=None)
    request = ingest_service_pb2.WatchProgressRequest(crate_id=crate, document_ids=document_ids)
    last = ingest_service_pb2.WatchProgressResponse()
    for last in client.ingest.WatchProgress(request):
        progress.update(documents, completed=last.searchable + last.empty + last.failed)
        if last.chunks_total:
            progress.update(chunks, total=last.chunks_total, completed=last.chunks_embedded)
    return last


def _failed(client: Client, crate: str, document_ids: list[str]) -> list[ingest_service_pb2.Document]:
    wanted = set(document_ids)
    statuses = [ingest_service_pb2.DOCUMENT_STATUS_FAILED]
    return [found for found in _documents(client, crate, statuses) if found.document_id in wanted]


def _report(
    found: Found,
    sent: list[_Sent],
    counts: ingest_service_pb2.WatchProgressResponse | None,
    failed: list[ingest_service_pb2.Document],
    json_output: bool,
) -> None:
    refused = [item for item in sent if item.reply is None]
    outcomes: dict[str, int] = {}
    for item in sent:
        if item.reply is not None:
            name = ingest_service_pb2.PutOutcome.Name(item.reply.outcome).removeprefix("PUT_OUTCOME_").lower()
            outcomes[name] = outcomes.get(name, 0) + 1
    if json_output:
        print_json(
            {
                "files": len(sent),
                "outcomes": outcomes,
                "refused": [{"source_id": item.file.source_id, "error": item.error} for item in refused],
                "skipped": [{"path": printable(str(skip.path)), "reason": skip.reason} for skip in found.skipped],
                "failed": [as_dict(document) for document in failed],
                "progress": as_dict(counts) if counts is not None else None,
                "documents": [
                    as_dict(item.reply) | {"source_id": item.file.source_id} for item in sent if item.reply is not None
                ],
            }
        )
    else:
        _show_report(sent, outcomes, counts, failed)
    if refused or failed:
        missing = len(refused) + len(failed)
        rest = "; the others did" if missing < len(sent) else ""
        fail(f"{missing} of {_files(len(sent))} did not get in{rest}", Exit.PARTIAL)


def _show_report(
    sent: list[_Sent],
    outcomes: dict[str, int],
    counts: ingest_service_pb2.WatchProgressResponse | None,
    failed: list[ingest_service_pb2.Document],
) -> None:
    refused = [item for item in sent if item.reply is None]
    known = sorted(outcomes.items()) + ([("refused", len(refused))] if refused else [])
    say(f"{_files(len(sent))}: " + ", ".join(f"{count} {name}" for name, count in known))
    for item in sent:
        for notice in item.reply.notices if item.reply is not None else ():
            say(f"notice: {item.file.source_id}: {notice}")
    if counts is not None:
        say(f"{counts.searchable} searchable, {counts.empty} empty, {counts.failed} failed")
    for document in failed:
        say(f"failed: {document.source_id}: {document.revisions[0].failure if document.revisions else 'unknown'}")
    for item in refused:
        warn(f"refused: {item.file.source_id}: {item.error}")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _documents(
    client: Client, crate: str, statuses: list[ingest_service_pb2.DocumentStatus.ValueType] | None = None
) -> Iterator[ingest_service_pb2.Document]:
    token = ""
    while True:
        request = ingest_service_pb2.ListDocumentsRequest(
            crate_id=crate, page_size=_PAGE, page_token=token, statuses=statuses or []
        )
        page = client.ingest.ListDocuments(request)
        yield from page.documents
        token = page.next_page_token
        if not token:
            return


def which(name: str) -> dict[str, str]:
    """Fields of a request that name a document, by its id when the name looks like one."""
    is_id = len(name) == 32 and all(digit in "0123456789abcdef" for digit in name)
    return {"document_id" if is_id else "source_id": name}


def _already(client: Client, crate: str, document_id: str) -> str:
    request = ingest_service_pb2.GetDocumentRequest(crate_id=crate, document_id=document_id)
    status = client.ingest.GetDocument(request).document.status
    if status == ingest_service_pb2.DOCUMENT_STATUS_ERASED:
        return "was erased: there is nothing left to retire"
    return "was retired already"


def _status(status: ingest_service_pb2.DocumentStatus.ValueType) -> str:
    return ingest_service_pb2.DocumentStatus.Name(status).removeprefix("DOCUMENT_STATUS_").lower()


def _show_document(document: ingest_service_pb2.Document, json_output: bool) -> None:
    if json_output:
        print_json(as_dict(document))
        return
    say(f"{document.source_id or '-'}  {document.document_id}  {_status(document.status)}")
    rows = []
    for revision in document.revisions:
        status = _status(revision.status)
        if revision.superseded_by:
            status += f" by revision {revision.superseded_by}"
        rows.append(
            (revision.revision, status, revision.chunks, revision.size_bytes, revision.media_type, revision.title)
        )
    print_table(("revision", "status", "chunks", "bytes", "media type", "title"), rows)
    for revision in document.revisions:
        for line in (*revision.notices, *([revision.failure] if revision.failure else [])):
            say(f"revision {revision.revision}: {line}")
