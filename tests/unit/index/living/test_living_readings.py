"""Dates, versions, status words, notices and references, as documents write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.index.domain.living.aliases import Aliases
from services.index.domain.living.dates import later, parse_date, parse_interval
from services.index.domain.living.references import (
    Tiers,
    aliases,
    link_reference,
    notice_reference,
    read_references,
    stem,
)
from services.index.domain.living.series import Stretch
from services.index.domain.living.values import State
from services.index.domain.living.versions import Version, base_title, is_prerelease, newer, order, read_version
from services.index.domain.living.words import notice, status_word

MAY_31 = datetime(2024, 5, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-31",
        "2024/5/31",
        "31-May-2024",
        "31 May 2024",
        "May 31, 2024",
        "May 31st, 2024",
        "2024-05-31T02:00:00+02:00",
    ],
)
def test_a_date(text: str) -> None:
    assert parse_date(text) == MAY_31


@pytest.mark.parametrize(
    "text", ["", "soon", "2024-13-01", "31 Foo 2024", "2024-05-31T00:00:00", "noon: 12", "0001-01-01T00:00:00+10:00"]
)
def test_no_date(text: str) -> None:
    assert parse_date(text) is None


def test_intervals() -> None:
    assert parse_interval("6 months") == (6, 0)
    assert parse_interval("1 Year") == (12, 0)
    assert parse_interval("2 weeks") == (0, 14)
    assert parse_interval("now and then") is None
    assert later(MAY_31, 1, 0) == datetime(2024, 6, 30, tzinfo=UTC)
    assert later(MAY_31, 8, 1) == datetime(2025, 2, 1, tzinfo=UTC)
    assert later(MAY_31, 12 * 9000, 0) is None


def test_versions_in_order() -> None:
    ascending = [
        "0.9", "1.0-dev", "1.0a1", "1.0-alpha2", "1.0-beta.1", "1.0rc1", "v1.0", "1.0-patch1", "1.0.1", "1.2", "1.9",
        "Version 1.10", "2.0.0-rc.1", "2",
    ]  # fmt: skip
    assert sorted(ascending, key=order) == ascending
    assert newer("2020-10-01", "2020-09-30") == 1
    assert newer("1.0", "1") == 0
    assert newer("1.9", "1.10") == -1
    assert newer("", "1") == 0
    assert newer("0", "1") == -1
    assert order("") == ()


@pytest.mark.parametrize(
    ("metadata", "name", "title", "expected"),
    [
        ({"family": "f", "version": "3"}, "x-v1.0", "", Version("f", "3")),
        ({"version": "3"}, "policy-acl-v1.0", "", Version("policy-acl", "3")),
        ({"series": "f"}, "other", "", Version("f", "")),
        ({}, "policy-acl-v1.0", "", Version("policy-acl", "1.0")),
        ({}, "terms-of-service@2017-06-09", "", Version("terms-of-service", "2017-06-09")),
        ({}, "OAS-3.0.1", "", Version("OAS", "3.0.1")),
        ({}, "x", "Gateway manual 1.10", Version("Gateway manual", "1.10")),
        ({}, "x", "Logging Standards v2", Version("Logging Standards", "2")),
        ({}, "PEP-333", "Plain title", Version()),
        ({"version": "1.9"}, "x", "Plain title", Version("", "1.9")),
        ({"version": "latest"}, "x", "The latest manual", Version()),
    ],
)
def test_series_and_version(metadata: dict[str, str], name: str, title: str, expected: Version) -> None:
    assert read_version(metadata, name, title) == expected


def test_files_of_one_name_in_two_folders_are_no_versions_of_one_another() -> None:
    def family(folder: str) -> str:
        return read_version({}, "handbook-1.0", "Handbook 1.0", folder=folder).family

    assert [family("team-a"), family("team-b"), family("")] == ["team-a/handbook", "team-b/handbook", "handbook"]
    assert read_version({}, "x", "Gateway manual 1.10", folder="v1").family == "Gateway manual"
    assert read_version({"family": "f"}, "handbook-1.0", "", folder="team-a") == Version("f", "1.0")


def test_pre_releases() -> None:
    assert [is_prerelease(one) for one in ("1.0-rc1", "3.0b1", "2.0-draft")] == [True] * 3
    assert [is_prerelease(one) for one in ("1.0", "2024-05-31", "1.0-patch1", "")] == [False] * 4


def test_titles_without_their_version() -> None:
    assert base_title("Vulnerability policy v1") == "Vulnerability policy"
    assert base_title("API standard v1.x") == "API standard"
    assert base_title("Plain") == "Plain"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Final", State.ACTIVE),
        ("Deferred (2019)", State.DORMANT),
        ("On hold", State.DORMANT),
        ("superseded by ADR-7", State.SUPERSEDED),
        ('"Withdrawn"', State.DEPRECATED),
        ("frozen", None),
    ],
)
def test_status_words(value: str, expected: State | None) -> None:
    found = status_word(value, {})
    assert (found[1].state if found else None) == expected


def test_a_crates_words_go_first_and_keep_what_is_known_of_a_word() -> None:
    rejected = status_word("Rejected", {"rejected": "deprecated"})
    assert rejected is not None
    assert not rejected[1].came_into_force
    strange = status_word("Final", {"final": "nonsense"})
    assert strange is not None
    assert strange[1].state is State.ACTIVE


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("DEPRECATED: Old guide - see the new one", ("Old guide - see the new one", "Old guide")),
        ("[Archived] Old guide", ("Old guide",)),
        ("Notice of withdrawal", ()),
        ("Notice of withdrawal: Old guide", ("Old guide",)),
        ("Deprecation notice for Old guide", ("Old guide",)),
        ("Old guide \N{EM DASH} Deprecation Notice", ("Old guide",)),
        ("Old guide (retired)", ("Old guide",)),
        ("How to write a deprecation notice", None),
        ("Deprecated features", None),
    ],
)
def test_notices(title: str, names: tuple[str, ...] | None) -> None:
    assert notice(title) == names


def test_stems() -> None:
    assert stem("a/b/PEP-3333.rst") == "PEP-3333"
    assert stem("a/policy-v1.0") == "policy-v1.0"
    assert stem("site/page.html.md.erb") == "page"
    assert stem(".hidden") == ".hidden"


def always(names: frozenset[str]) -> dict[str, tuple[Stretch, ...]]:
    """Names that are answered to from a day on."""
    return dict.fromkeys(names, ((MAY_31, None),))


def led(table: Aliases, tiers: Tiers, seeker: str) -> str:
    """What a reference from the same day on leads to."""
    (answer,) = table.resolve(tiers, seeker, MAY_31, None)
    return answer.document_id


def known(**sources: str) -> Aliases:
    """Documents by id, with their source ids; the title is the id in words."""
    found = Aliases()
    for name, source in sources.items():
        found.answer(name, always(aliases(name, source, f"Title of {name}", f"https://example.org/{name}/")))
    return found


def resolved(table: Aliases, seeker: str, source_id: str, key: str, value: str) -> list[str]:
    """What a header's references lead to."""
    return [led(table, one.tiers, seeker) for one in read_references(source_id, {key: value}, "")]


@pytest.mark.parametrize(
    "value",
    ["b", "docs/PEP-0333.rst", "PEP-0333.rst", "333", "PEP 333", "PEP-333", "pep-0333", "Title of b", "https://example.org/b#top",
     "[the old one](PEP-0333.rst)", "`PEP 333 <https://example.org/b>`__"],
)  # fmt: skip
def test_a_reference_is_resolved(value: str) -> None:
    table = known(a="docs/PEP-3333.rst", b="docs/PEP-0333.rst", c="docs/RFC-333.txt")
    assert resolved(table, "a", "docs/PEP-3333.rst", "replaces", value) == ["b"]


def test_several_references_and_lists() -> None:
    table = known(a="PEP-1.rst", b="PEP-2.rst", c="PEP-3.rst")
    assert resolved(table, "a", "PEP-1.rst", "replaces", "2, 3") == ["b", "c"]
    assert resolved(table, "a", "PEP-1.rst", "replaces", '["2", 3]') == ["b", "c"]
    assert resolved(table, "a", "PEP-1.rst", "replaces", "[2; 3]") == ["b", "c"]
    assert resolved(table, "a", "PEP-1.rst", "replaces", "- 2\n- 9") == ["b", ""]
    assert resolved(table, "a", "PEP-1.rst", "replaces", " , ") == []


def test_an_ambiguous_name_leads_nowhere_unless_it_is_exact() -> None:
    table = known(a="a.md", b="x/guide.md", c="y/guide.md")
    assert resolved(table, "a", "a.md", "see-also", "guide") == [""]
    assert resolved(table, "a", "a.md", "see-also", "y/guide.md") == ["c"]
    assert resolved(table, "b", "x/guide.md", "see-also", "guide") == ["c"]
    assert resolved(table, "a", "a.md", "see-also", "a.md") == ["a"]


def test_links() -> None:
    table = known(a="docs/a.md", b="docs/sub/b c.md")
    for link in ("sub/b%20c.md#part", "./sub/b c.md?x=1", "/docs/sub/b c.md", "https://example.org/b"):
        found = link_reference("docs/a.md", link)
        assert found is not None
        assert led(table, found.tiers, "a") == "b", link
    assert link_reference("docs/a.md", "#part") is None
    assert link_reference("docs/a.md", "mailto:somebody") is None


def test_a_notice_names_titles_without_their_version() -> None:
    table = Aliases()
    table.answer("a", always(aliases("a", "", "Old guide", "")))
    assert led(table, notice_reference(("Old guide v1",)).tiers, "b") == "a"


def test_who_waits_is_told() -> None:
    table = Aliases()
    table.seek("b", ["stem:a"])
    assert table.answer("a", always(aliases("a", "a.md", "", ""))) == {"b"}
    table.seek("b", [])
    assert table.answer("a", {}) == set()


def test_names_are_answered_to_by_time() -> None:
    table = Aliases()
    day = [MAY_31.replace(day=number) for number in range(1, 32)]
    table.answer("b", {"title:guide": ((day[2], day[4]), (day[5], None)), "path:guide": ((day[20], day[22]),)})
    table.answer("c", {"title:guide": ((day[8], day[9]), (day[12], None))})

    def answers(start: int, until: int | None) -> list[tuple[int, str]]:
        found = table.resolve(
            (("path:guide",), ("title:guide",)), "a", day[start], None if until is None else day[until]
        )
        assert [one.until for one in found[:-1]] == [one.start for one in found[1:]]
        assert found[-1].until == (None if until is None else day[until])
        return [(one.start.day - 1, one.document_id) for one in found]

    assert answers(0, None) == [(0, ""), (2, "b"), (4, ""), (5, "b"), (8, ""), (9, "b"), (12, ""), (20, "b"), (22, "")]
    assert answers(3, 5) == [(3, "b"), (4, "")]
    assert answers(6, 8) == [(6, "b")]
    assert answers(0, 2) == [(0, "")]


def test_one_more_among_many_who_share_a_name_changes_nothing_for_those_who_look_for_it() -> None:
    table = Aliases()
    table.seek("seeker", ["readme"])
    first, second = datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)
    told = [table.answer(owner, {"readme": ((second, None),)}) for owner in ("a", "b", "c", "d", "e")]
    assert told == [{"seeker"}] * 3 + [set()] * 2
    assert table.answer("early", {"readme": ((first, None),)}) == {"seeker"}
    found = table.resolve((("readme",),), "seeker", datetime(2023, 1, 1, tzinfo=UTC), None)
    assert [(one.start, one.document_id) for one in found[1:]] == [(first, "early"), (second, "")]
    for owner in ("a", "b", "c", "d"):
        table.answer(owner, {})
    table.answer("early", {})
    assert table.resolve((("readme",),), "seeker", second, None)[0].document_id == "e"
