from __future__ import annotations

import json

import pytest

from services.ingest.domain.normalize import conversation, records
from services.ingest.domain.normalize.model import InvalidDocument
from tests.unit.ingest.normalized_spans import read, shape, texts

CHAT = "[2024-05-01 12:01] Ann Lee: Is the pump rated?\nIt is P-4.\n\n[12:02:30] Bob: 16 bar\r\n[1/5/24, 12:03 PM]  Ann Lee: thanks\n"


def test_chat_lines() -> None:
    document = read(CHAT, "chat.txt")
    assert shape(document) == [
        ("record", "[2024-05-01 12:01] Ann Lee: Is the pump rated?\nIt is P-4."),
        ("record", "[12:02:30] Bob: 16 bar"),
        ("record", "[1/5/24, 12:03 PM]  Ann Lee: thanks"),
    ]
    assert document.metadata == (("participants", "Ann Lee, Bob"),)
    assert (document.form, document.media_type) == ("informal", "text/plain")


def test_chat_lines_without_name_or_type() -> None:
    assert read(CHAT, "export").form == "informal"


def test_lines_before_the_first_message_are_kept() -> None:
    assert texts(read("\n[12:01] a: hi\n", "c.txt")) == ["[12:01] a: hi"]
    read_first = conversation.read_chat_text(read("Chat export\n[12:01] a: hi\n", "c.txt"))  # type: ignore[arg-type]
    assert [block.text_start for block in read_first.blocks] == [0, 12]


@pytest.mark.parametrize(
    "text",
    ["[note] Ann: hi\n", "[12:01] no colon here\n", "intro\n[12:01] a: hi\n", "[12:01] a: hi\n" + "prose line\n" * 9],
)
def test_what_is_no_chat(text: str) -> None:
    assert read(text, "c.txt").form == "text"


def test_many_names_are_bounded() -> None:
    document = read("".join(f"[12:01] name{number}: hi\n" for number in range(60)), "c.txt")
    assert dict(document.metadata)["participants"].count("name") == 50


def test_too_many_messages_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "MAX_RECORDS", 2)
    with pytest.raises(InvalidDocument, match="more than"):
        read(CHAT, "chat.txt")
    assert records.MAX_RECORDS > 2


@pytest.mark.parametrize(
    "messages",
    [
        [{"from": "Ann", "text": "hi", "time": 1}, {"from": "Bob", "text": "x" * 3_000, "time": 2}],
        {"chat": "c", "messages": [{"author": {"name": "A"}, "content": "hi", "timestamp": "t"}]},
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    ],
)
def test_chat_json(messages: object) -> None:
    document = read(json.dumps(messages, indent=1), "chat.json")
    assert document.form == "informal"
    count = len(messages["messages"]) if isinstance(messages, dict) else len(messages)  # type: ignore[arg-type]
    assert len([block for block in document.blocks if block.context]) == count


@pytest.mark.parametrize("other", [[{"name": "x", "price": 1}], [{"text": "x", "name": "y"}], ["a"], []])
def test_other_json_lists_are_no_chat(other: object) -> None:
    assert read(json.dumps(other), "a.json").form == "structured"


MINUTES = """# Weekly

Date: 2024-05-01
Attendees: Ann, Bob

## Decisions

- The pump stays.

## Action items

- Bob orders a valve.
"""


@pytest.mark.parametrize("name", ["notes.md", "notes.txt"])
def test_meeting_notes(name: str) -> None:
    document = read(MINUTES, name)
    assert document.form == "informal"
    assert document.metadata == (("date", "2024-05-01"), ("attendees", "Ann, Bob"))


def test_attendees_in_a_list() -> None:
    text = "---\ndate: 2024-05-02\n---\n# W\n\n**Present:**\n\n- Ann\n- Bob\n\ntext\n\n**Date:** 1 May\n\n**Actions:** none\n"
    document = read(text, "n.md")
    assert document.metadata == (("date", "2024-05-02"), ("present", "Ann, Bob"))
    assert document.form == "informal"


def test_a_list_of_attendees_may_end_the_notes() -> None:
    assert read("Actions: a\nAttendees:\n- Ann\n- Bob", "n.txt").metadata == (("attendees", "Ann, Bob"),)


@pytest.mark.parametrize(
    "text",
    [
        "# Policy\n\nDecisions: none\n\nDate: today\n",
        "# Visit\n\nAttendees: Ann\n",
        "# Paper\n\nParticipants were told. Actions followed.\n",
        "## Attendees of the event\n\n## Actions taken later\n",
    ],
)
def test_what_is_no_meeting(text: str) -> None:
    assert read(text, "a.md").form == "text"
