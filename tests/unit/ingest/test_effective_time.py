"""When a document says that it comes into force."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.domain import effect

DAY = datetime(2021, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "key",
    ["effective", "Effective-Date", "effective_at", "effectiveFrom", "Valid From", "valid-from", "In-Force-Since"],
)
def test_keys_that_are_explicit_count_in_any_spelling(key: str) -> None:
    assert effect.stated([("date", "2020-01-01"), (key, "2021-03-01")]) == (DAY, ())


@pytest.mark.parametrize("key", ["date", "created", "published", "updated", "effectiveness", "valid_until"])
def test_other_dates_do_not(key: str) -> None:
    assert effect.stated([(key, "2021-03-01")]) == (None, ())


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("20210301", DAY),
        ("1 March 2021", DAY),
        ("1st Mar. 2021", DAY),
        ("01-Mar-2021", DAY),
        ("March 1, 2021", DAY),
        ("2021-03-01T02:00:00+02:00", DAY),
        ("2021-03-01 00:00 UTC", DAY),
        ("2021-03-01T00:00:00.000Z", DAY),
    ],
)
def test_usual_ways_to_write_a_date(value: str, moment: datetime) -> None:
    assert effect.stated([("effective", value)]) == (moment, ())


def test_a_time_without_a_zone_is_read_as_utc_and_said_so() -> None:
    moment, notices = effect.stated([("effective", "2021-03-01T09:30")])
    assert moment == DAY + timedelta(hours=9, minutes=30)
    assert notices == ("effective '2021-03-01T09:30' names no time zone: it was read as UTC",)


@pytest.mark.parametrize(
    "value",
    ["immediately", "2021-02-30", "03/01/2021", "2021", "0001-01-01T00:00+14:00", "1 Foo 2021", "2021-03-01T25:00Z"],
)
def test_what_can_t_be_read_gives_a_notice(value: str) -> None:
    moment, notices = effect.stated([("effective", value)])
    assert moment is None
    assert "isn't a time that can be read: write YYYY-MM-DD" in notices[0]


def test_the_next_key_counts_where_the_first_can_t_be_read() -> None:
    moment, notices = effect.stated([("valid_from", "2021-03-01"), ("effective_date", "soon")])
    assert (moment, len(notices)) == (DAY, 1)


@given(st.text(max_size=40))
def test_any_value_is_read_or_noted(value: str) -> None:
    moment, notices = effect.stated([("effective", value)])
    assert (moment is not None and moment.tzinfo is UTC) or len(notices) == bool(value.strip())


def test_a_clock_more_than_five_minutes_ahead_is_noted() -> None:
    assert effect.ahead(None, DAY) == effect.ahead(DAY + timedelta(minutes=5), DAY) == ()
    assert effect.ahead(DAY + timedelta(seconds=301), DAY)[0].startswith("the publisher's clock is 301 s ahead")
