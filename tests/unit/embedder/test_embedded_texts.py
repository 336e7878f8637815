"""What is embedded for a chunk."""

from __future__ import annotations

from collections.abc import Sequence

from services.embedder.domain.texts import ChunkText, EmbeddedText, embedded_texts, text_key


def everything(texts: Sequence[str]) -> Sequence[bool]:
    return [True] * len(texts)


def short(texts: Sequence[str]) -> Sequence[bool]:
    return [len(text.split()) <= 4 for text in texts]


def only(title: str, chunk: ChunkText) -> str:
    (found,) = embedded_texts(title, [chunk], everything)
    return found.text


def test_nearest_heading_stands_before_the_text() -> None:
    assert only("Manual", ChunkText("Press the button.", ("Setup", "Power"))) == "Power\nPress the button."


def test_title_stands_in_where_there_is_no_heading() -> None:
    assert only("Manual", ChunkText("Press the button.")) == "Manual\nPress the button."


def test_text_stands_alone_without_heading_and_title() -> None:
    assert only("", ChunkText("Press the button.")) == "Press the button."
    assert only("  ", ChunkText("Press the button.", ("\n",))) == "Press the button."


def test_heading_is_not_repeated_when_the_text_begins_with_it() -> None:
    assert only("Manual", ChunkText("Power\n\nPress the button.", ("Power",))) == "Power\n\nPress the button."


def test_heading_goes_when_only_it_makes_the_text_too_long() -> None:
    found = embedded_texts("Manual", [ChunkText("one two three four"), ChunkText("one two three")], short)
    assert found == (
        EmbeddedText("one two three four", windowed=False),
        EmbeddedText("Manual\none two three", windowed=False),
    )


def test_text_that_is_too_long_alone_is_said_to_need_windows() -> None:
    assert embedded_texts("", [ChunkText("one two three four five")], short) == (
        EmbeddedText("one two three four five", windowed=True),
    )


def test_no_chunks_no_texts() -> None:
    assert embedded_texts("Manual", [], everything) == ()


def test_key_depends_on_model_and_text_and_on_where_one_ends() -> None:
    keys = {text_key("a", "b"), text_key("ab", ""), text_key("", "ab"), text_key("a", "c"), text_key("b", "b")}
    assert len(keys) == 5
    assert {len(key) for key in keys} == {32}
    assert text_key("model", "té\u00a0xt") == text_key("model", "té\u00a0xt")


def test_key_of_one_text_is_pinned() -> None:
    # Stored in every vectors pack: another function would lose all reuse.
    assert text_key("m", "t").hex() == "e1a43336043a67ebad1f75063d986bcbc4518e522c4e42876ea85ce05f9d930b"
