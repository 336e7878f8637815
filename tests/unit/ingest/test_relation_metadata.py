"""What documents of each format say of others arrives as metadata, several names joined by commas."""

from __future__ import annotations

import pytest

from services.ingest.domain.normalize import normalize


def metadata(text: str, name: str) -> dict[str, str]:
    return dict(normalize(text.encode(), source_id=name, media_type="", charset="").metadata)


MAIL = "From: a@example.org\nTo: b@example.org\nSubject: s\nDate: Fri, 2 Jan 2026 10:00:00 +0000\n"
LONG = ", ".join(f'"policy-number-{n}"' for n in range(100))


@pytest.mark.parametrize(
    ("text", "name", "key", "value"),
    [
        ("---\nsupersedes: [a.md, b.md]\n---\ntext", "x.md", "supersedes", "a.md, b.md"),
        ("---\nSuperseded-By:\n  - a\n  - b\n---\ntext", "x.md", "Superseded-By", "a, b"),
        ("+++\nreplaces = ['a', 'b']\n+++\ntext", "x.md", "replaces", "a, b"),
        ("Title: x\nSupersedes: a, b\n\ntext", "x.md", "Supersedes", "a, b"),
        ("Title: x\nReplaced-By: a\n\ntext", "x.txt", "Replaced-By", "a"),
        ("Implements: a\nEffective-From: 2021-03-01\n\ntext", "x.txt", "Effective-From", "2021-03-01"),
        ("PEP: 1\nSuperseded-By: 2, 3\n\ntext", "x.rst", "Superseded-By", "2, 3"),
        ("supersedes:\n  - a\n  - b\nrows:\n  - c\n", "x.yaml", "supersedes", "a, b"),
        ('{"supersedes": ["a", "b"], "rows": ["c"], "n": {"supersedes": ["d"]}}', "x.json", "supersedes", "a, b"),
        ('{"replaces": [245, 246]}', "x.json", "replaces", "245, 246"),
        ('{"supersededBy": "a", "x": 1}', "x.json", "supersededBy", "a"),
        (
            "<html><head><meta name='supersedes' content='a, b'></head><body>t</body></html>",
            "x.html",
            "supersedes",
            "a, b",
        ),
        (
            f"{MAIL}Superseded-By: x\n\ntext",
            "x.eml",
            "Superseded-By",
            "x",
        ),
    ],
)
def test_names_of_other_documents_arrive(text: str, name: str, key: str, value: str) -> None:
    assert metadata(text, name)[key] == value


def test_a_long_list_arrives_up_to_the_limit_of_a_value() -> None:
    found = metadata(f'{{"supersedes": [{LONG}], "other": [{LONG}], "last": "x"}}', "x.json")
    assert found["supersedes"].startswith("policy-number-0, policy-number-1, ")
    assert len(found["supersedes"]) <= 64_000
    assert found.keys() == {"supersedes", "last"}


@pytest.mark.parametrize("nothing", ["null", "[]", '""', '"none"'])
def test_nothing_is_no_document(nothing: str) -> None:
    assert "supersedes" not in metadata(f'{{"supersedes": {nothing}, "a": 1}}', "x.json")
    assert "supersedes" not in metadata(f"supersedes: {nothing}\na: 1\n", "x.yaml")


def test_a_long_list_of_documents_stays_whole() -> None:
    names = [f"policies/of-the-house/{number:04}.md" for number in range(900)]
    listed = "\n".join(f"- {name}" for name in names)
    assert metadata(f"---\nsupersedes:\n{listed}\n---\n# T\n", "a.md")["supersedes"].split(", ") == names
