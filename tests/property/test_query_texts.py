"""Any text may be a chunk or a question."""

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.query.domain.extractive import answer_text, compose, literal_spans, pieces
from services.query.domain.question import read_question
from services.query.domain.records import find_records
from services.query.domain.sentences import split_sentences
from services.query.domain.snippets import SNIPPET_CHARS, snippet
from services.query.domain.units import units_of
from services.query.domain.values import Form, Passage, RecordKey, Run, TermWeight
from services.query.domain.words import terms, words

SIGNS = st.text(st.sampled_from("ab A1.,:;!?\n\r\t-*#`~|\"'{}[]()\\/年月。はЖ—é"), max_size=200)
TEXTS = st.one_of(st.text(st.characters(exclude_categories=["Cs"]), max_size=100), SIGNS)
MEDIA = st.sampled_from(["text/csv", "application/json", "application/yaml", "text/plain"])


def chunk(text: str, form: Form, media_type: str, context: str = "") -> Passage:
    size = len(text.encode())
    runs = (Run(0, len(text), 0, len(text), 0, size, verbatim=True),) if text else ()
    return Passage(RecordKey("d", 1, 0), text, runs=runs, form=form, media_type=media_type, context=context)


@settings(deadline=None)
@given(TEXTS)
def test_sentences_are_in_order_trimmed_and_lose_no_word(text: str) -> None:
    found = split_sentences(text)
    assert all(0 <= item.start < item.end <= len(text) for item in found)
    assert all(left.end <= right.start for left, right in pairwise(found))
    assert all(text[item.start : item.end].strip() == text[item.start : item.end] for item in found)


@settings(deadline=None)
@given(TEXTS, MEDIA, SIGNS)
@example("- ", "application/yaml", "")
@example("- \n  \n- a: 1", "application/yaml", "")
def test_records_lie_in_the_text(text: str, media_type: str, context: str) -> None:
    for record in find_records(text, media_type=media_type, context=context):
        assert 0 <= record.start < record.end <= len(text)
        assert record.pairs


@settings(deadline=None)
@given(TEXTS, st.sampled_from(Form), MEDIA)
def test_every_unit_can_be_cited_byte_for_byte(text: str, form: Form, media_type: str) -> None:
    original = text.encode()
    places = compose(units_of(chunk(text, form, media_type)))
    for place in places:
        assert original[place.span.byte_start : place.span.byte_end].decode() == place.quote
        assert place.span.verbatim
    answer = answer_text(places, markers=True)
    assert "".join(pieces(answer)) == answer
    spans = literal_spans(places)
    assert all(0 <= start <= end <= len(answer) for start, end in spans)
    assert all(left[1] <= right[0] for left, right in pairwise(spans))


@settings(deadline=None)
@given(TEXTS)
def test_any_text_is_a_question(text: str) -> None:
    question = read_question(text, (), floor=0.4, generic=0.5)
    assert all(0.0 < term.weight <= 1.0 for term in question.terms)
    assert question.focus <= {term.term for term in question.terms}
    assert terms(text) == {word.term for word in words(text)}


@settings(deadline=None)
@given(TEXTS, st.text(max_size=5))
def test_snippets_are_one_short_line(text: str, term: str) -> None:
    held = Passage(RecordKey("d", 1, 0), text, terms=frozenset({term}))
    line = snippet(held, (TermWeight(term, 1.0, 1),))
    assert len(line) <= SNIPPET_CHARS
    assert len(line.splitlines()) <= 1
