"""An auditor whose node is a table of replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import grpc
from affidavit.index.v1 import living_pb2
from affidavit.query.v1 import query_service_pb2

from tests.audit.client import Auditor


class Refusal(grpc.RpcError):
    """An error of the wire."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self._code = code
        self._details = details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[Any, ...]:
        return ()


class Canned(Auditor):
    """Replies by question; what was asked is kept."""

    def __init__(
        self,
        *,
        replies: Mapping[str, query_service_pb2.AskResponse | Refusal] | None = None,
        results: Sequence[query_service_pb2.SearchResult] = (),
        reports: Mapping[datetime | None, Sequence[living_pb2.StateReport]] | None = None,
        refusal: Refusal | None = None,
    ) -> None:
        self.replies = replies or {}
        self.results = list(results)
        self.reports = reports or {}
        self.refusal = refusal
        self.asked: list[Mapping[str, object]] = []

    def configure(self, **settings: Any) -> None:
        self.settings = settings
        if self.refusal:
            raise self.refusal

    def states(self, as_of: datetime | None) -> dict[str, living_pb2.StateReport]:
        return {report.document_id: report for report in self.reports[as_of]}

    def search(self, text: str, **options: Any) -> list[query_service_pb2.SearchResult]:
        self.asked.append({"text": text, **options})
        return self.results

    def ask(self, question: str, **options: Any) -> query_service_pb2.AskResponse:
        self.asked.append(options)
        reply = self.replies[question]
        if isinstance(reply, Refusal):
            raise reply
        return reply
