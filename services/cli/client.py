"""Connection of a command to a running node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import grpc
import typer
from affidavit.index.v1.index_service_pb2_grpc import IndexServiceStub
from affidavit.ingest.v1.ingest_service_pb2_grpc import IngestServiceStub
from affidavit.proposition.v1.proposition_service_pb2_grpc import PropositionServiceStub
from affidavit.query.v1.query_service_pb2_grpc import QueryServiceStub
from affidavit.receipt.v1.receipt_service_pb2_grpc import ReceiptServiceStub

from services.embedded.folder import Endpoints
from services.kernel.channels import OPTIONS, check_port

DEFAULT_DATA_DIR = Path("affidavit-data")
DataDir = Annotated[
    Path, typer.Option("--data-dir", envvar="AFFIDAVIT_DATA_DIR", help="Folder that holds all state of the node.")
]
Address = Annotated[
    str, typer.Option("--address", envvar="AFFIDAVIT_ADDRESS", help="host:port; by default as the data folder says.")
]
Crate = Annotated[str, typer.Option("--crate", envvar="AFFIDAVIT_CRATE", help="Crate to work on.")]
DEFAULT_CRATE = "main"


class Client:
    """Stubs of the services that people talk to."""

    def __init__(self, *, data_dir: Path, address: str) -> None:
        if address:
            check_port(address)
        self._roles = {} if address else Endpoints.read(data_dir).roles
        self._address = address
        self._channels: dict[str, grpc.Channel] = {}
        self.ingest = IngestServiceStub(self._channel("ingest"))
        self.index = IndexServiceStub(self._channel("index"))
        self.proposition = PropositionServiceStub(self._channel("proposition"))
        self.query = QueryServiceStub(self._channel("query"))
        self.receipt = ReceiptServiceStub(self._channel("receipt"))

    def _channel(self, role: str) -> grpc.Channel:
        address = self._address or self._roles[role]
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address, options=OPTIONS)
        return self._channels[address]
