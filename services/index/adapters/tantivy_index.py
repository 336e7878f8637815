"""One tantivy index: the records of one kind of one generation of one crate. Blocking; the lane calls it in threads.

Fields and their weights in a query, chosen on SciFact's train queries (809 queries, nDCG@10, title and text of a document):

- `body` 1.0: terms of title, headings and text together. One field with everything (0.698) beats separate fields for
  title and text (0.695 at 0.3 to 1, 0.673 at equal weights), and one average length suits titles of any length.
- `title` 0.2: the title once more (0.702; 0.700 at 0.1 and 0.3, 0.690 at 0.5).
- `entities` 0.5: names, dates, numbers and ids of informal content. SciFact has none; half a body match is a choice.

tantivy's BM25 has k1 1.2 and b 0.75 built in. As in Lucene, its statistics count deleted records until their segment is
merged, so a score may differ a little from that of a fresh index; `statistics` counts live records only. Records of
revisions that aren't current count in scores, since they can be found too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tantivy
from tantivy import FieldType, Occur, Query

from services.index.domain.force import Force
from services.index.domain.records import (
    EVERY_REVISION,
    Form,
    KeywordRecord,
    LaneFilter,
    LaneHit,
    Reach,
    RevisionKey,
    hit_order,
    parts_of,
)

FIELD_WEIGHTS: Mapping[str, float] = {"body": 1.0, "title": 0.2, "entities": 0.5}

_TERMS = "terms"
_FORMS: tuple[Form, ...] = (Form.TEXT, Form.STRUCTURED, Form.INFORMAL)
_TIE_ROOM = 16
_MOST_TIES = 10_000
_SEGMENT_DIGITS = 32
_PAST = False
"""Of field `current`."""
_FORCE_FIELDS = ("effective_from", "in_force_until", "position", "current")


class TantivyIndex:
    """Records of one kind with their terms."""

    def __init__(self, folder: Path, *, heap_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._heap_bytes = heap_bytes
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, path=str(folder))
        # A new reader only when both indexes of a lane have committed.
        self._index.config_reader("manual")
        # The engine's own tokenizers cut or drop long terms; ours only parts at spaces.
        words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer(_TERMS, words)
        self._index.reload()
        # Any: the engine's own types leave out the count of a search result.
        self._searcher: Any = self._index.searcher()
        self._writer: Any = None

    def delete(self, document_id: str, revision: int) -> None:
        """Delete all records of a revision, or of all of them, at the next commit."""
        if revision == EVERY_REVISION:
            self._open_writer().delete_documents_by_term("document", document_id)
        else:
            self._open_writer().delete_documents_by_term("revision", _revision((document_id, revision)))

    def add(self, records: Iterable[KeywordRecord]) -> None:
        """Add records, at the next commit."""
        writer = self._open_writer()
        for record in records:
            writer.add_document(_document(record))

    def commit(self) -> None:
        """Make what was deleted and added durable. It becomes visible by `refresh`."""
        self._open_writer().commit()

    def refresh(self) -> None:
        """Let searches see the last commit."""
        self._index.reload()
        self._searcher = self._index.searcher()

    def release_writer(self) -> None:
        """Let go of the writer, its threads and memory; what isn't committed is undone."""
        self._writer = None

    def finish_merges(self) -> None:
        """Wait for running merges, then let go of the writer."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.wait_merging_threads()

    def rewriter(self) -> IndexRewriter:
        """Begin to replace everything. Until it has committed or is let go, the engine refuses any other writer."""
        self.finish_merges()
        return IndexRewriter(self._folder, self._index.writer(self._heap_bytes, 1))

    def search(self, terms: Mapping[str, int], lane_filter: LaneFilter, limit: int) -> list[LaneHit]:
        """Rank records by BM25.

        Args:
            terms: Term to how often it counts, at least one.
            lane_filter: Which records may be found; its kind is that of this index.
            limit: Most hits wanted.

        Returns:
            Hits in the order of `records.hit_order`. Where more than 10,000 records share the score of the last hit,
            which of them are shown is the engine's choice.
        """
        query = self._query(terms, lane_filter)
        searcher = self._searcher
        room = _TIE_ROOM
        while True:
            found = searcher.search(query, limit + room, count=False).hits
            # Only when the scores fall behind the last hit wanted is the choice among equals complete.
            if len(found) < limit + room or found[-1][0] < found[limit - 1][0] or room >= _MOST_TIES:
                break
            room = min(room * 8, _MOST_TIES)
        return sorted(_hits(searcher, found), key=hit_order)[:limit]

    def statistics(self, terms: Iterable[str], *, current: bool = False) -> dict[str, int]:
        """Count the live records that hold each term in any field.

        Args:
            terms: Terms.
            current: Count only records of current revisions.

        Returns:
            Count by term.
        """
        searcher = self._searcher
        past = self._past() if current else []
        counts: dict[str, int] = {}
        for term in terms:
            fields = [f for f in ("body", "entities") if searcher.doc_freq(f, term)]
            holds: Any = [(Occur.Should, Query.term_query(self._schema, f, term, "basic")) for f in fields]
            if holds and past:
                holds = [(Occur.Must, Query.boolean_query(holds)), *((Occur.MustNot, query) for query in past)]
            counts[term] = searcher.search(Query.boolean_query(holds), 1, count=True).count if holds else 0
        return counts

    def records(self) -> list[tuple[LaneHit, Force]]:
        """Every live record, without a score, in no order, and when it counts."""
        searcher = self._searcher
        if not self.count():
            return []
        found = searcher.search(Query.all_query(), self.count(), count=False).hits
        addresses = [address for _, address in found]
        hits = _hits(searcher, [(0.0, address) for address in addresses])
        columns = (searcher.fast_field_values(name, addresses) for name in _FORCE_FIELDS)
        return [
            (hit, Force(effective_from=start, in_force_until=end, position=position, current=current))
            for hit, start, end, position, current in zip(hits, *columns, strict=True)
        ]

    def count_current(self) -> int:
        """Number of live records of current revisions."""
        past = self._past()
        return self.count() - int(self._searcher.search(past[0], 1, count=True).count) if past else self.count()

    def count(self) -> int:
        """Number of live records."""
        return int(self._searcher.num_docs)

    def _open_writer(self) -> Any:
        if self._writer is None:
            self._writer = self._index.writer(self._heap_bytes, 1)
        return self._writer

    def _query(self, terms: Mapping[str, int], lane_filter: LaneFilter) -> Any:
        wanted = Query.boolean_query(
            [
                (Occur.Should, Query.boost_query(Query.term_query(self._schema, name, term, "freq"), weight * times))
                for term, times in terms.items()
                for name, weight in FIELD_WEIGHTS.items()
            ]
        )
        conditions: list[tuple[str, Sequence[str]]] = [
            ("form", lane_filter.forms),
            ("document", lane_filter.document_ids),
            ("source_domain", lane_filter.source_domains),
        ]
        clauses = [_must(self._any_of(name, values)) for name, values in conditions if values]
        clauses += self._reach(lane_filter)
        return Query.boolean_query([(Occur.Must, wanted), *clauses]) if clauses else wanted

    def _reach(self, asked: LaneFilter) -> list[tuple[Any, Any]]:
        """Clauses for reach, instant, position and the two lists.

        What is left out is mostly little, and then leaving it out costs less than letting all else in.
        """
        out = self._out_of_range(asked)
        if asked.without:
            out.append(self._any_of("revision", [_revision(key) for key in asked.without]))
        if asked.also and out:
            also = self._any_of("revision", [_revision(key) for key in asked.also])
            any_out = Query.boolean_query([(Occur.Should, query) for query in out])
            out = [Query.boolean_query([(Occur.Must, any_out), (Occur.MustNot, also)])]
        return [(Occur.MustNot, query) for query in out]

    def _out_of_range(self, asked: LaneFilter) -> list[Any]:
        out = self._past() if asked.reach is Reach.CURRENT else [self._range("effective_from", above=asked.as_of)]
        if asked.reach is Reach.IN_FORCE:
            ended = self._range("in_force_until", up_to=asked.as_of)
            if asked.at:
                known = self._range("until_known_from", up_to=asked.at)
                ended = Query.boolean_query([(Occur.Must, ended), (Occur.Must, known)])
            out.append(ended)
        if asked.at:
            out.append(self._range("position", above=asked.at))
        return out

    def _past(self) -> list[Any]:
        """Finds revisions that aren't current. Where there are none, a search costs what it costs without history."""
        if not self._searcher.doc_freq("current", _PAST):
            return []
        return [Query.term_query(self._schema, "current", _PAST, "basic")]

    def _range(self, name: str, *, above: int | None = None, up_to: int | None = None) -> Any:
        if above is None:
            return Query.range_query(self._schema, name, FieldType.Integer, upper_bound=up_to)
        return Query.range_query(self._schema, name, FieldType.Integer, lower_bound=above, include_lower=False)

    def _any_of(self, name: str, values: Sequence[str]) -> Any:
        if len(values) == 1:
            return Query.term_query(self._schema, name, values[0], "basic")
        return Query.term_set_query(self._schema, name, list(values))


class IndexRewriter:
    """New segments for all records: the engine can't be told to merge, and keeps the terms of deleted records until then.

    Searches see the old segments until the commit, and a crash before it leaves them as they were.
    """

    def __init__(self, folder: Path, writer: Any) -> None:
        self._writer: Any = writer
        # Files of segments begin with the segment's id.
        self._old = [path for path in folder.iterdir() if len(path.name.split(".")[0]) == _SEGMENT_DIGITS]
        writer.delete_all_documents()

    def add(self, records: Iterable[KeywordRecord]) -> None:
        """Add records, at the commit."""
        for record in records:
            self._writer.add_document(_document(record))

    def commit(self) -> None:
        """Put what was added in the place of everything, durably."""
        self._writer.commit()

    def sweep(self) -> int:
        """Delete the old files that no searcher uses any more.

        Returns:
            How many are left.
        """
        self._writer.garbage_collect_files()
        return sum(path.exists() for path in self._old)

    def close(self) -> None:
        """Let go of the writer: what isn't committed is undone, and others may write."""
        self._writer = None


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    for name in ("document", "revision", "form", "source_domain"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in FIELD_WEIGHTS:
        builder.add_text_field(name, tokenizer_name=_TERMS, index_option="freq")
    # What a hit needs, in columns: reading stored documents would cost a block of text for each hit.
    for name in ("id_high", "id_low", "place"):
        builder.add_unsigned_field(name, fast=True)
    for name in ("effective_from", "in_force_until", "until_known_from", "position"):
        builder.add_integer_field(name, fast=True)
    builder.add_boolean_field("current", indexed=True, fast=True)
    return builder.build()


def _document(added: KeywordRecord) -> Any:
    record = added.record
    document = tantivy.Document()
    document.add_text("document", record.document_id)
    document.add_text("revision", _revision((record.document_id, record.revision)))
    document.add_text("form", record.form.value)
    document.add_text("source_domain", record.source_domain)
    document.add_text("body", " ".join((*added.title, *added.headings, *added.text)))
    document.add_text("title", " ".join(added.title))
    if added.entities:
        document.add_text("entities", " ".join(added.entities))
    document.add_unsigned("id_high", int(record.document_id[:16], 16))
    document.add_unsigned("id_low", int(record.document_id[16:], 16))
    document.add_unsigned("place", (record.revision << 34) | (record.place << 2) | _FORMS.index(record.form))
    document.add_integer("effective_from", record.force.effective_from)
    document.add_integer("in_force_until", record.force.in_force_until)
    document.add_integer("until_known_from", record.force.until_known_from)
    document.add_integer("position", record.force.position)
    document.add_boolean("current", record.force.current)
    return document


def _revision(key: RevisionKey) -> str:
    return f"{key[0]}/{key[1]}"


def _must(query: Any) -> tuple[Any, Any]:
    # A constant of zero leaves the scores as they are.
    return Occur.Must, Query.const_score_query(query, 0.0)


def _hits(searcher: Any, found: Sequence[tuple[float, Any]]) -> Iterable[LaneHit]:
    addresses = [address for _, address in found]
    columns = zip(
        *(searcher.fast_field_values(name, addresses) for name in ("id_high", "id_low", "place")), strict=True
    )
    for (score, _), (high, low, place) in zip(found, columns, strict=True):
        ordinal, statement = parts_of((place >> 2) & 0xFFFF_FFFF)
        yield LaneHit(f"{high:016x}{low:016x}", place >> 34, ordinal, score, _FORMS[place & 3], statement)
