"""From a question to a cited, signed answer."""

from datetime import UTC, datetime

import pytest

from services.kernel.errors import NotAvailableYet, Rejected, Unavailable
from services.query.answering import Answerer, Ask
from services.query.codec.digests import engine_digest, policy_digest
from services.query.domain.crate import CrateRules, Turn
from services.query.domain.extractive import NO_ANSWER_TEXT
from services.query.domain.modes import AnswerMode
from services.query.domain.profile import V1
from services.query.domain.values import LaneFilter, Passage, RecordKind, RetrievalMode, Run
from services.query.investigation import Investigator
from services.query.living_answers import LivingEvidenceMaker
from services.query.retrieval import Retriever
from services.query.signing import Engine, Notary
from tests.unit.query.doubles import (
    AnswersDouble,
    CitationsDouble,
    Crates,
    EmbedderDouble,
    IndexDouble,
    OriginalsDouble,
    ReceiptsDouble,
)
from tests.unit.query.passages import passage

NOW = datetime(2025, 6, 1, tzinfo=UTC)
RELAY = passage("The kiosk is red. The relay listens on port 7443.", document="a")
GATE = passage("The west gate opens at 06:00.", document="b")
QUESTION = "Which port does the relay listen on?"


class World:
    """An answerer with all its neighbours."""

    def __init__(self, *passages: Passage) -> None:
        self.crates = Crates()
        self.index = IndexDouble(passages or (RELAY, GATE))
        self.embedder = EmbedderDouble()
        self.citations = CitationsDouble()
        self.originals = OriginalsDouble()
        self.receipts = ReceiptsDouble()
        self.answers = AnswersDouble()
        notary = Notary(
            originals=self.originals,
            receipts=self.receipts,
            embedder=self.embedder,
            answers=self.answers,
            engine=Engine("1.0", b"i" * 16, policy_digest, engine_digest),
            timeout_s=0.2,
        )
        retriever = Retriever(index=self.index, embedder=self.embedder, lane_timeout_s=5.0)
        investigator = Investigator(retriever=retriever, index=self.index)
        self.answerer = Answerer(
            retriever=retriever,
            living=LivingEvidenceMaker(investigator=investigator, embedder=self.embedder),
            embedder=self.embedder,
            crates=self.crates,
            citations=self.citations,
            notary=notary,
            new_id=lambda: "f" * 32,
            clock=lambda: NOW,
        )


async def test_an_answer_is_cited_signed_and_recorded() -> None:
    world = World()
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert answer.answered
    assert answer.text == "The relay listens on port 7443 [1]."
    (place,) = answer.places
    assert (place.span.byte_start, place.span.byte_end, place.span.verbatim) == (18, 49, True)
    assert (answer.receipt_id, answer.receipt, answer.receipt_status) == ("r" * 8, b"bundle", "signed")
    assert answer.notes == ("rerank: not configured",)
    (claim,) = world.receipts.claims
    assert claim.question == QUESTION
    assert (claim.answer_text, claim.raw_text) == (answer.text, answer.text)
    assert [(item.key.document_id, item.content) for item in claim.evidence] == [
        ("a", b"The relay listens on port 7443.")
    ]
    assert [key.document_id for key in claim.candidates] == ["a", "b"]
    assert (claim.position, claim.incarnation, claim.policy_digest) == (10, b"i" * 16, policy_digest(V1))
    assert claim.engine_digest == engine_digest("1.0", ("embedding:model:f",), 1)
    (fact,) = world.answers.facts
    assert (fact.status, fact.document_ids, fact.receipt_id, fact.issued_at) == ("answered", ("a",), "r" * 8, NOW)
    assert world.originals.read_spans == []


async def test_without_evidence_there_is_a_signed_no_answer() -> None:
    world = World(GATE)
    world.index.cosine = 0.1
    answer = await world.answerer.ask(Ask("main", "What is the access phrase for the west gate?"))
    assert (answer.answered, answer.text, answer.places, answer.sources) == (False, NO_ANSWER_TEXT, (), ())
    assert answer.receipt_status == "signed"
    (claim,) = world.receipts.claims
    assert (claim.evidence, claim.answer_text, claim.raw_text) == ((), NO_ANSWER_TEXT, NO_ANSWER_TEXT)
    assert [key.document_id for key in claim.candidates] == ["b"]
    assert world.answers.facts[0].status == "no_answer"
    assert world.citations.drafts == []


async def test_admitted_passages_that_do_not_answer_give_a_no_answer() -> None:
    world = World(GATE)
    answer = await world.answerer.ask(Ask("main", "What is the access phrase for the west gate?"))
    assert not answer.answered
    assert world.embedder.embedded


async def test_a_query_without_a_word_is_a_no_answer() -> None:
    answer = await World().answerer.ask(Ask("main", "/"))
    assert not answer.answered
    assert answer.notes[1:] == ("keyword lane: the query holds no word", "vector lane: the query holds no word")


@pytest.mark.parametrize(
    ("failure", "delay_s", "reason"),
    [
        (Unavailable("the receipt service doesn't answer"), 0.0, "unsigned: the receipt service doesn't answer"),
        (None, 5.0, "unsigned: signing took longer than 0.2 s"),
    ],
)
async def test_light_answers_unsigned_when_signing_is_down(
    failure: Unavailable | None, delay_s: float, reason: str
) -> None:
    world = World()
    world.receipts.failure, world.receipts.delay_s = failure, delay_s
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert answer.answered
    assert (answer.receipt_id, answer.receipt, answer.receipt_status) == ("", b"", reason)
    assert world.answers.facts[0].receipt_id == ""


async def test_a_signal_that_is_not_recorded_is_noted() -> None:
    world = World()
    world.answers.failure = Unavailable("the log is away")
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert answer.answered
    assert answer.notes[-1] == "the signal AnswerIssued was not recorded: the log is away"


async def test_evidence_that_was_rewritten_is_read_from_the_original() -> None:
    runs = (Run(0, 49, 0, 60, 0, 60, verbatim=False),)
    rewritten = Passage(RELAY.key, RELAY.text, runs=runs, terms=RELAY.terms, ingested_position=1)
    world = World(rewritten)
    world.originals.body = b"x" * 60
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert not answer.places[0].span.verbatim
    assert world.originals.read_spans == [(RELAY.key, ((0, 60),))]
    assert world.receipts.claims[0].evidence[0].content == b"x" * 60


async def test_a_quote_that_does_not_fill_its_span_is_read_from_the_original() -> None:
    runs = (Run(0, 49, 0, 49, 0, 49, verbatim=True),)
    odd = Passage(RELAY.key, RELAY.text, runs=runs, terms=RELAY.terms, charset="utf-16-le", ingested_position=1)
    world = World(odd)
    world.originals.body = b"y" * 200
    await world.answerer.ask(Ask("main", QUESTION))
    assert set(world.receipts.claims[0].evidence[0].content) == {ord("y")}


async def test_settings_shape_the_reply_not_the_evidence() -> None:
    world = World()
    world.crates.held = CrateRules(
        mode=AnswerMode.LIGHT, inline_citations=False, structured_sources=False, answer_model="gpt"
    )
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert answer.text == "The relay listens on port 7443."
    assert [place.marker for place in answer.places] == [1]
    assert answer.sources == ()
    assert "answer provider gpt: not used in this version" in answer.notes
    assert world.receipts.claims[0].answer_text == answer.text
    assert world.receipts.claims[0].raw_text == "The relay listens on port 7443 [1]."


async def test_places_that_lost_their_marker_are_not_cited() -> None:
    world = World()
    world.citations.dropped = (1,)
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert (answer.answered, answer.text, answer.unsupported) == (False, NO_ANSWER_TEXT, ("lost",))
    assert world.receipts.claims[0].repairs == ("removed",)


async def test_history_completes_a_question_that_leans_on_it() -> None:
    world = World()
    turns = (Turn("user", "Which port does the relay listen on?"), Turn("assistant", "7443"))
    answer = await world.answerer.ask(Ask("main", "And why?", history=turns))
    assert world.index.asked[0][1] == "Which port does the relay listen on? And why?"
    assert answer.notes[0] == "history: the last question was used to look for evidence"
    assert world.receipts.claims[0].question == "And why?"


async def test_history_is_ignored_where_the_crate_forbids_it() -> None:
    world = World()
    world.crates.held = CrateRules(mode=AnswerMode.LIGHT, allow_client_history=False)
    answer = await world.answerer.ask(Ask("main", "And why?", history=(Turn("user", "the relay port"),)))
    assert world.index.asked[0][1] == "And why?"
    assert answer.notes[0].startswith("history: ignored")


@pytest.mark.parametrize("turns", [(Turn("assistant", "7443"),), (Turn("user", "  "),), (Turn("user", "earlier"),)])
async def test_history_is_not_needed_by_a_question_that_stands_for_itself(turns: tuple[Turn, ...]) -> None:
    world = World()
    question = QUESTION if turns[0].text == "earlier" else "And why?"
    answer = await world.answerer.ask(Ask("main", question, history=turns))
    assert world.index.asked[0][1] == question
    assert answer.notes[0] == "history: not needed, the question stands for itself"


async def test_words_alone_weigh_evidence_when_its_meaning_cannot_be_had() -> None:
    world = World()
    world.embedder.words_failure = Unavailable("the embedder is away")
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert answer.answered
    assert answer.notes[-1] == "evidence was weighed by its words alone: the embedder is away"


async def test_lexical_questions_ask_no_embedder() -> None:
    world = World()
    answer = await world.answerer.ask(Ask("main", QUESTION, retrieval_mode=RetrievalMode.LEXICAL))
    assert answer.text == "The relay listens on port 7443 [1]."
    assert world.embedder.embedded == []
    assert "vector lane: retrieval mode is lexical" in answer.notes


async def test_semantic_questions_are_answered_without_the_keyword_lane() -> None:
    answer = await World().answerer.ask(Ask("main", QUESTION, retrieval_mode=RetrievalMode.SEMANTIC))
    assert answer.text == "The relay listens on port 7443 [1]."


async def test_the_mode_is_reported_and_refused_as_decided() -> None:
    world = World()
    world.crates.held = CrateRules()
    answer = await world.answerer.ask(Ask("main", QUESTION))
    assert (answer.mode.requested, answer.mode.applied) == (AnswerMode.VERIFIED, AnswerMode.LIGHT)
    assert answer.mode.reason == "mode_not_available"
    with pytest.raises(NotAvailableYet, match="audit"):
        await world.answerer.ask(Ask("main", QUESTION, mode=AnswerMode.AUDIT))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (Ask("main", " "), "question is empty"),
        (Ask("main", QUESTION, source_limit=33), "source_limit 33"),
        (Ask("main", QUESTION, lane_filter=LaneFilter(kind=RecordKind.DOCUMENT)), "made of chunks"),
    ],
)
async def test_bad_questions_are_refused(ask: Ask, message: str) -> None:
    with pytest.raises(Rejected, match=message):
        await World().answerer.ask(ask)


async def test_the_only_place_goes_to_what_is_there() -> None:
    answer = await World().answerer.ask(Ask("main", "When does the west gate open?", source_limit=1))
    assert answer.text == "The west gate opens at 06:00 [1]."


async def test_the_same_question_gives_the_same_bytes() -> None:
    answers = [await World().answerer.ask(Ask("main", QUESTION)) for _ in range(3)]
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].places == answers[1].places == answers[2].places
