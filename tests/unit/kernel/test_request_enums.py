"""Enum numbers that stand for nothing and times that are none are refused in every request."""

from __future__ import annotations

import pytest
from affidavit.event.v1 import envelope_pb2
from affidavit.index.v1 import index_service_pb2 as index_pb
from affidavit.index.v1 import living_pb2
from affidavit.ingest.v1 import ingest_service_pb2 as ingest_pb
from affidavit.ingest.v1 import settings_pb2
from affidavit.query.v1 import query_service_pb2 as query_pb
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.kernel.errors import Rejected
from services.kernel.requests import check, check_enums

NINE = 9


def ask(**fields: object) -> query_pb.AskRequest:
    return query_pb.AskRequest(crate_id="main", question="Why?", **fields)  # type: ignore[arg-type]  # fields of a request


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (ask(mode=NINE), "mode 9 is unknown; use one of ANSWER_MODE_LIGHT, ANSWER_MODE_VERIFIED, ANSWER_MODE_AUDIT"),
        (ask(retrieval_mode=NINE), "retrieval_mode 9 is unknown"),
        (ask(retrieval_mode=-1), "retrieval_mode -1 is unknown"),
        (query_pb.AskStreamRequest(ask=ask(mode=NINE)), "ask.mode 9 is unknown"),
        (ask(filter=index_pb.LaneFilter(kind=NINE)), "filter.kind 9 is unknown"),  # type: ignore[arg-type]  # the point
        (ask(filter=index_pb.LaneFilter(forms=[1, NINE])), "filter.forms 9 is unknown"),  # type: ignore[list-item]
        (ask(filter=index_pb.LaneFilter(forms=[0])), "filter.forms 0 is given as unspecified"),  # type: ignore[list-item]
        (
            ingest_pb.ConfigureCrateRequest(crate_id="main", settings=settings_pb2.CrateSettings(mode=0)),  # type: ignore[arg-type]
            "settings.mode 0 is given as unspecified, which says nothing: leave it out",
        ),
        (
            ingest_pb.CreateCrateRequest(
                crate_id="main",
                providers=[settings_pb2.Provider(role=1, kind=NINE)],  # type: ignore[arg-type]
            ),
            "providers.kind 9 is unknown",
        ),
        (ingest_pb.ListDocumentsRequest(crate_id="main", statuses=[99]), "statuses 99 is unknown"),  # type: ignore[list-item]
    ],
)
def test_what_stands_for_nothing(request_: Message, told: str) -> None:
    with pytest.raises(Rejected) as caught:
        check_enums(request_)
    assert told in caught.value.message
    # Also what came over the wire.
    with pytest.raises(Rejected):
        check_enums(type(request_).FromString(request_.SerializeToString()))


@pytest.mark.parametrize(
    "request_",
    [
        ask(),
        ask(mode=settings_pb2.ANSWER_MODE_VERIFIED, filter=index_pb.LaneFilter(forms=[envelope_pb2.FORM_TEXT])),
        ask(mode=settings_pb2.ANSWER_MODE_UNSPECIFIED),
        ingest_pb.ConfigureCrateRequest(crate_id="main", settings=settings_pb2.CrateSettings(source_limit=3)),
        ingest_pb.PutDocumentRequest(
            crate_id="main", header=ingest_pb.DocumentHeader(source_id="x", metadata={"a": "b"}), body=b"x"
        ),
    ],
)
def test_what_is_fine(request_: Message) -> None:
    check_enums(request_)


def dated(stamp: Timestamp) -> list[tuple[Message, str]]:
    """A time everywhere where requests have one."""
    moment = living_pb2.Moment(as_of=stamp)
    return [
        (
            ingest_pb.PutDocumentRequest(crate_id="main", header=ingest_pb.DocumentHeader(effective_at=stamp)),
            "header.effective_at",
        ),
        (ingest_pb.DeclareRelationRequest(crate_id="main", effective_at=stamp), "effective_at"),
        (ask(as_of=stamp), "as_of"),
        (query_pb.AskStreamRequest(ask=ask(as_of=stamp)), "ask.as_of"),
        (index_pb.SearchKeywordRequest(crate_id="main", moment=moment), "moment.as_of"),
    ]


@pytest.mark.parametrize(
    "stamp",
    [
        Timestamp(seconds=-62_135_596_801),
        Timestamp(seconds=253_402_300_800),
        Timestamp(seconds=2**62),
        Timestamp(nanos=-1),
        Timestamp(nanos=1_000_000_000),
        Timestamp(seconds=253_402_300_799, nanos=2_000_000_000),
    ],
)
def test_a_time_that_is_none_is_refused_by_the_name_of_its_field(stamp: Timestamp) -> None:
    for request, path in dated(stamp):
        with pytest.raises(Rejected, match=f"^{path} isn't a time between the years 1 and 9999"):
            check(request)


def test_the_first_and_the_last_time_are_fine() -> None:
    for stamp in (Timestamp(seconds=-62_135_596_800), Timestamp(seconds=253_402_300_799, nanos=999_999_999)):
        for request, _ in dated(stamp):
            check(request)
