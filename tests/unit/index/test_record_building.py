"""Records of both lanes from a revision's content."""

from __future__ import annotations

import numpy as np
import pytest

from services.index.domain.build import distinct_terms, keyword_records, vector_change
from services.index.domain.content import ChunkContent, Description, Evaluated, Statement
from services.index.domain.documents import Embedded
from services.index.domain.force import Force
from services.index.domain.records import Form, KeywordChange, Kind

DOC = "a" * 32


def fact(form: Form = Form.TEXT, count: int = 2) -> Embedded:
    return Embedded(
        document_id=DOC,
        revision=4,
        settings_digest="d",
        generation=1,
        chunks_pack=b"",
        vectors_pack=b"",
        chunk_count=count,
        model_id="m",
        dimension=2,
        form=form,
        position=9,
    )


def chunk(
    ordinal: int, text: str, *, overlap: int = 0, headings: tuple[str, ...] = (), context: str = ""
) -> ChunkContent:
    return ChunkContent(
        ordinal=ordinal,
        text=text,
        heading_path=headings,
        context=context,
        overlap_chars=overlap,
        encoded=text.encode(),
    )


def keyword_change(of: Embedded, told: Description, chunks: list[ChunkContent], force: Force) -> KeywordChange:
    return keyword_records(of, told, chunks, force).change(None)


FORCE = Force(effective_from=5, position=9)
TOLD = Description(title="Harbour rules", source_domain="port.example", headings=("Mooring", "Fees"))


def test_every_chunk_and_the_document_get_a_record() -> None:
    change = keyword_change(
        fact(), TOLD, [chunk(0, "boats moor here", headings=("Mooring",)), chunk(1, "fees apply")], FORCE
    )
    assert change.document_id == DOC
    assert [(r.record.kind, r.record.ordinal, r.record.revision) for r in change.records] == [
        (Kind.CHUNK, 0, 4),
        (Kind.CHUNK, 1, 4),
        (Kind.DOCUMENT, 0, 4),
    ]
    first, second, document = change.records
    assert first.record.source_domain == "port.example"
    assert list(first.headings) == ["moor"]
    assert list(second.headings) == []
    assert list(document.headings) == ["moor", "fee"]
    assert list(document.title) == list(first.title) == ["harbour", "rule"]
    assert list(document.text) == [*first.text, *second.text]


def test_the_document_holds_overlapping_text_once() -> None:
    change = keyword_change(
        fact(), TOLD, [chunk(0, "one two three"), chunk(1, "three four", overlap=len("three "))], FORCE
    )
    assert list(change.records[1].text) == ["three", "four"]
    assert list(change.records[-1].text) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("overlap", [len("three"), len("three ")])
def test_a_cut_on_either_side_of_a_space_is_a_cut_between_words(overlap: int) -> None:
    change = keyword_change(fact(), TOLD, [chunk(0, "one three"), chunk(1, "three four", overlap=overlap)], FORCE)
    assert list(change.records[-1].text) == ["one", "three", "four"]


def test_a_word_that_a_chunk_border_cuts_is_found_whole_in_the_document() -> None:
    change = keyword_change(
        fact(), TOLD, [chunk(0, "begin abcdef"), chunk(1, "begin abcdefghij end", overlap=len("begin abcdef"))], FORCE
    )
    assert "abcdefghij" in change.records[-1].text
    assert list(change.records[-1].text).count("begin") == 1


def test_context_is_found_with_the_chunk_and_only_there() -> None:
    change = keyword_change(fact(), TOLD, [chunk(0, "7;8", context="name;size"), chunk(1, "9;10")], FORCE)
    assert {"name", "size"} <= set(change.records[0].text)
    assert "name" not in change.records[-1].text


def test_informal_content_gets_entities() -> None:
    text = "Maria Keller confirmed order QX-9 for 12 March"
    informal = keyword_change(fact(Form.INFORMAL), TOLD, [chunk(0, text), chunk(1, text)], FORCE)
    assert informal.records[0].entities
    assert set(informal.records[-1].entities) == set(informal.records[0].entities)
    formal = keyword_change(fact(Form.TEXT), TOLD, [chunk(0, text), chunk(1, text)], FORCE)
    assert not any(record.entities for record in formal.records)


def test_distinct_terms_are_sorted_and_cover_every_field() -> None:
    change = keyword_change(fact(), TOLD, [chunk(0, "boats boats", headings=("Mooring",), context="size")], FORCE)
    assert distinct_terms(change.records[0]) == "boat harbour moor rule size"


def test_the_document_vector_is_the_normalised_mean() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    change = vector_change(fact(), TOLD, vectors, FORCE)
    assert [(record.kind, record.ordinal) for record in change.records] == [
        (Kind.CHUNK, 0),
        (Kind.CHUNK, 1),
        (Kind.DOCUMENT, 0),
    ]
    assert change.vectors is not None
    assert change.vectors.dtype == np.float32
    np.testing.assert_allclose(change.vectors, [[1, 0], [0, 1], [0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_a_vector_without_length_is_left_to_the_keyword_lane() -> None:
    vectors = np.array([[0.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    change = vector_change(fact(), TOLD, vectors, FORCE)
    assert [(record.kind, record.ordinal) for record in change.records] == [(Kind.CHUNK, 1), (Kind.DOCUMENT, 0)]
    assert change.vectors is not None
    np.testing.assert_allclose(change.vectors, [[0, 2], [0, 1]])


def test_vectors_that_cancel_out_leave_the_document_without_one() -> None:
    change = vector_change(fact(), TOLD, np.array([[1.0, 0.0], [-1.0, 0.0]], dtype=np.float32), FORCE)
    assert [record.kind for record in change.records] == [Kind.CHUNK, Kind.CHUNK]


def test_without_any_length_nothing_is_added() -> None:
    change = vector_change(fact(), TOLD, np.zeros((2, 2), dtype=np.float32), FORCE)
    assert change.records == ()
    assert change.vectors is None


STATEMENTS = Evaluated(
    alone=frozenset({2}),
    statements=(
        Statement(0, 1, "Boats moor at the north quay."),
        Statement(0, 2, "Maria Keller runs the quay."),
    ),
)


def test_propositions_take_the_place_of_their_chunk() -> None:
    chunks = [chunk(0, "they moor there", headings=("Mooring",)), chunk(1, "left out"), chunk(2, "stands alone")]
    records = keyword_records(fact(count=3), TOLD, chunks, FORCE)
    change = records.change(STATEMENTS)
    assert [(each.record.kind, each.record.ordinal, each.record.statement) for each in change.records] == [
        (Kind.CHUNK, 2, 0),
        (Kind.CHUNK, 0, 1),
        (Kind.CHUNK, 0, 2),
        (Kind.DOCUMENT, 0, 0),
    ]
    alone, first, _, document = change.records
    assert (alone, document) == (records.chunks[2], records.document), "what is no proposition is as it always was"
    assert "quay" in first.text
    assert "they" not in first.text
    assert (first.title, first.headings) == (records.chunks[0].title, records.chunks[0].headings)
    assert first.entities == ()


def test_entities_of_a_proposition_are_its_own() -> None:
    told = keyword_records(fact(Form.INFORMAL, 1), TOLD, [chunk(0, "Ask for berth QX-9")], FORCE).change(
        Evaluated(frozenset(), (Statement(0, 1, "Maria Keller runs the quay."),))
    )
    assert any("keller" in entity for entity in told.records[0].entities)
    assert not any("qx" in entity for entity in told.records[0].entities)


def test_vectors_of_propositions_follow_those_of_the_chunks() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8], [0.0, 0.0]], dtype=np.float32)
    change = vector_change(fact(count=3), TOLD, vectors, FORCE, STATEMENTS)
    assert [(record.kind, record.ordinal, record.statement) for record in change.records] == [
        (Kind.CHUNK, 2, 0),
        (Kind.CHUNK, 0, 1),
        (Kind.DOCUMENT, 0, 0),
    ]
    assert change.vectors is not None
    np.testing.assert_allclose(change.vectors[:2], np.array([[0.0, 1.0], [0.6, 0.8]]))
    without = vector_change(fact(count=3), TOLD, vectors[:3], FORCE)
    assert without.vectors is not None
    np.testing.assert_array_equal(change.vectors[-1], without.vectors[-1], "documents are found as ever")


def test_a_document_without_any_record_below_it_is_found_as_a_whole() -> None:
    change = vector_change(fact(count=1), TOLD, np.array([[1, 0]], dtype=np.float32), FORCE, Evaluated(frozenset(), ()))
    assert [record.kind for record in change.records] == [Kind.DOCUMENT]
