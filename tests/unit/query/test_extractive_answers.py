"""Answers made of the evidence's own sentences."""

from dataclasses import replace

from services.query.domain.evidence import Scored
from services.query.domain.extractive import answer_text, choose, compose, literal_spans, pieces
from services.query.domain.outcomes import sources_of
from services.query.domain.snippets import SNIPPET_CHARS, snippet
from services.query.domain.units import Unit, units_of
from services.query.domain.values import TermWeight
from tests.unit.query.passages import passage


def unit(text: str, document: str = "doc") -> Unit:
    (found,) = units_of(passage(text, document=document))
    return found


def chosen(*scored: Scored) -> list[str]:
    return [item.text for item in choose(scored, most=3, margin=1.0, duplicate=0.8)]


def test_nothing_below_zero_answers() -> None:
    assert chosen(Scored(unit("Relay on."), -0.1)) == chosen() == []


def test_companions_lie_within_the_margin_and_under_the_limit() -> None:
    texts = ("Alpha one.", "Beta two.", "Gamma three.", "Delta four.")
    assert chosen(*(Scored(unit(text), 2.0) for text in texts)) == list(texts[:3])
    assert chosen(Scored(unit(texts[0]), 3.0), Scored(unit(texts[1]), 1.9)) == [texts[0]]


def test_near_duplicates_are_said_once_but_never_where_numbers_differ() -> None:
    same = [
        Scored(unit("Full-time staff have 25 days of annual leave.", "a"), 2.0),
        Scored(unit("Full-time staff have 25 days of annual leave!", "b"), 2.0),
        Scored(unit("Full-time staff have 28 days of annual leave.", "c"), 2.0),
    ]
    assert chosen(*same) == [same[0].unit.text, same[2].unit.text]


def test_the_overlap_of_two_chunks_is_said_once() -> None:
    cut, full = unit("The relay port is 7443"), unit("The relay port is 7443 and no other")
    assert chosen(Scored(full, 2.0), Scored(cut, 2.0)) == [full.text]
    assert chosen(Scored(cut, 2.0), Scored(full, 2.0)) == [cut.text]


def test_each_sentence_is_marked_before_its_stop_and_cited_where_it_stands() -> None:
    text = "It hums. The relay\nlistens on port 7443. Really?"
    hums, listens, really = units_of(passage(text))
    places = compose((listens, really, hums))
    assert answer_text(places, markers=True) == "The relay listens on port 7443 [1]. Really [2]? It hums [3]."
    assert answer_text(places, markers=False) == "The relay listens on port 7443. Really? It hums."
    assert [place.quote for place in places] == ["The relay\nlistens on port 7443.", "Really?", "It hums."]
    assert [text.encode()[p.span.byte_start : p.span.byte_end].decode() for p in places] == [p.quote for p in places]
    assert all(place.span.verbatim for place in places)


def test_a_record_gets_a_stop_and_stops_alone_stay() -> None:
    assert answer_text(compose((unit("port: 8080"),)), markers=True) == "port: 8080 [1]."
    assert answer_text(compose((unit("…"),)), markers=True) == "… [1]."


def test_brackets_of_the_documents_are_declared_as_quoted() -> None:
    first, second = unit('Part "QX-9" [2019] costs 40.'), unit("See [1].", "b")
    places = compose((first, second))
    text = answer_text(places, markers=True)
    outside = list(text)
    for start, end in literal_spans(places):
        outside[start:end] = " " * (end - start)
    assert "".join(outside).split() == ["[1]", "[2]"]


def test_what_cannot_be_located_is_not_cited() -> None:
    lost = passage("Lost words.")
    (nowhere,) = units_of(type(lost)(key=lost.key, text=lost.text))
    assert [place.marker for place in compose((nowhere, unit("Found.")))] == [1]
    assert compose((nowhere,)) == ()


def test_pieces_join_to_the_text() -> None:
    text = "The relay listens on port 7443 [1]. Really [2]? product: x; eol: 2 [3]."
    assert len(pieces(text)) == 3
    assert "".join(pieces(text)) == text
    assert pieces("") == ()


def test_sources_name_each_document_once_by_its_first_marker() -> None:
    places = compose((unit("Alpha.", "a"), unit("Beta.", "b"), unit("Gamma.", "a")))
    assert [(source.marker, source.passage.key.document_id) for source in sources_of(places)] == [(1, "a"), (2, "b")]


def test_a_proposition_is_its_chunks_snippet() -> None:
    chunk = passage("It listens there. It sleeps.")
    told = replace(chunk, statement="The relay of Aldgate\n listens on port 7443. " + "x" * 400)
    shown = snippet(told, (TermWeight("listen", 2.0, 1),))
    assert shown.startswith("The relay of Aldgate listens on port 7443. x")
    assert len(shown) == SNIPPET_CHARS


def test_snippets_show_why_a_chunk_was_found() -> None:
    chunk = passage("It hums. The relay listens\non port 7443. It sleeps happily.")
    assert snippet(chunk, (TermWeight("listen", 2.0, 1),)) == "The relay listens on port 7443. It sleeps happily."
    assert snippet(chunk, (TermWeight("happili", 2.0, 1),)) == "It sleeps happily."
    assert (
        snippet(chunk, (TermWeight("zebra", 2.0, 1),)) == "It hums. The relay listens on port 7443. It sleeps happily."
    )
    long = snippet(passage("word " * 200), ())
    assert len(long) == SNIPPET_CHARS
    assert long.endswith("word…")


def test_snippets_begin_where_most_of_the_query_stands_together() -> None:
    far = "The relay is old. " + "Nothing is said here. " * 20
    chunk = passage(far + "The port of the relay is 7443.")
    wanted = (TermWeight("relay", 1.0, 2), TermWeight("port", 1.0, 1))
    assert snippet(chunk, wanted) == "The port of the relay is 7443."
    unbroken = passage("x " * 300 + "relay")
    assert snippet(unbroken, wanted) == "relay"
    assert snippet(passage("The report is old, the port is new."), wanted).startswith("The report")


def test_a_text_that_changes_its_length_when_folded_is_shown_from_its_start() -> None:
    assert snippet(passage("Straße. The relay is on."), (TermWeight("relay", 1.0, 1),)) == "Straße. The relay is on."
