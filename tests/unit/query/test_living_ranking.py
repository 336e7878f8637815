"""How profile v3.1 ranks documents, and which of them may answer as such."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.kernel.errors import PreconditionFailed
from services.query.answering import Ask
from services.query.domain.admission import Admitted, common_terms
from services.query.domain.fusion import Fused
from services.query.domain.intent import read_intent
from services.query.domain.living import LivingState, Moment, Reach, Relation, RelationType, Role, StateReport, View
from services.query.domain.modes import AnswerMode
from services.query.domain.pool import Item, Pool, barred_versions, title_share, with_titles
from services.query.domain.profile import V3_1
from services.query.domain.question import content_terms
from services.query.domain.values import Form, LaneAnswer, LaneFilter, Passage, RetrievalMode, TermWeight
from services.query.domain.versions import current_member, is_prerelease
from services.query.retrieval import Request, Retriever
from services.query.searching import Look, Searcher
from tests.unit.query.doubles import IndexDouble
from tests.unit.query.passages import passage
from tests.unit.query.test_answering_flow import NOW
from tests.unit.query.test_living_answers import cited, world

_PAST = datetime(2024, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


class Founded(IndexDouble):
    """An index whose documents came into force on the day of the test."""

    async def search_keyword(
        self, crate_id: str, query: str, lane_filter: LaneFilter, limit: int, view: View
    ) -> LaneAnswer:
        answer = await super().search_keyword(crate_id, query, lane_filter, limit, view)
        return answer if (view.moment.as_of or NOW) >= NOW else replace(answer, hits=())


def asked(text: str) -> frozenset[str]:
    return frozenset(content_terms(text))


@pytest.mark.parametrize(
    ("title", "question", "share"),
    [
        ("Acme Terms of Service", "How old must one be under Acme's Terms of Service?", 1.0),
        ("Acme Privacy Statement", "Where does Acme explain rights under privacy law?", 0.0),
        ("Misinformation and Disinformation at Acme", "What about misinformation and disinformation?", 1.0),
        ("Mirror infrastructure of the house", "Which document describes the mirror infrastructure?", 2 / 3),
        ("Relay policy 2024", "Which relay is red?", 0.0),
    ],
)
def test_a_title_names_a_document_by_words_that_tell_documents_apart(title: str, question: str, share: float) -> None:
    assert title_share(title, asked(question), asked("Acme")) == pytest.approx(share)


def test_words_of_most_records_are_common() -> None:
    weights = (TermWeight("acme", 0.05, 95), TermWeight("relay", 4.0, 1), TermWeight("unheard", 0.0, 0))
    assert common_terms(weights, 0.07) == {"acme"}
    assert common_terms((), 0.07) == frozenset()


def test_a_named_document_is_lifted_and_known_as_named() -> None:
    def item(document: str, title: str, score: float) -> Item:
        one = passage("Text.", document=document, title=title)
        return Item(Admitted(Fused(one.key, score, Form.TEXT), one, 1.0), None)

    pool = Pool((item("other", "Gate hours", 0.030), item("named", "Relay ports", 0.025)))
    lifted = with_titles(pool, asked("Which relay ports are open?"), frozenset(), least=0.6, bonus=0.012)
    assert [(one.document_id, one.named) for one in lifted.items] == [("named", True), ("other", False)]


@pytest.mark.parametrize(
    ("question", "documents"),
    [
        ("Where is it laid down how leave is requested?", True),
        ("Where are the form fields described?", True),
        ("Where is the lost property office?", False),
        ("Which policy covers leave?", True),
    ],
)
def test_a_question_for_a_place_asks_for_no_document(question: str, *, documents: bool) -> None:
    assert read_intent(question).documents is documents


def relay(text: str, document: str) -> Passage:
    return passage(text, document=document, title="Relay conduct and manners")


async def test_a_document_that_the_question_names_answers_as_such_unless_it_asks_for_a_number() -> None:
    made = world(relay("Whoever works there is kind to all others.", "manners"))
    answer = await made.answerer.ask(Ask("main", "What is forbidden by relay conduct and manners?"))
    assert [document for document, _ in cited(answer)] == ["manners"]
    answer = await made.answerer.ask(Ask("main", "How many floors have relay conduct and manners?", explain=True))
    assert not answer.answered
    assert [one.reason for one in answer.explanation] == ["admitted, but no sentence of it answers"]


async def test_of_documents_that_rank_alike_the_one_whose_words_answer_goes_first() -> None:
    about = passage("The relay. The relay is a fine thing. Ports are fine things too.", document="a", title="Relay")
    made = world(about, passage("The relay listens on port 7443.", document="b", title="Relay"))
    answer = await made.answerer.ask(Ask("main", "Which port does the relay listen on?"))
    assert cited(answer)[0][0] == "b"


async def test_a_time_in_the_words_at_which_nothing_held_gives_way_and_says_so() -> None:
    made = world(passage("The fleet burned 5,240 tonnes of diesel in 2024.", document="burned"))
    made.index.__class__ = Founded
    question = "How much diesel did the fleet burn in 2024?"
    answer = await made.answerer.ask(Ask("main", question, retrieval_mode=RetrievalMode.LEXICAL))
    assert answer.text.startswith("The fleet burned 5,240 tonnes of diesel in 2024")
    assert answer.notes[0].startswith("rerank")
    assert (
        "nothing matches as of 2024-12-31, the time that the words name: what is in force now is used" in answer.notes
    )
    assert answer.moment == Moment(NOW, 10)
    named = await made.answerer.ask(Ask("main", question, moment=Moment(_PAST), retrieval_mode=RetrievalMode.LEXICAL))
    assert not named.answered, "a moment that the caller names is kept"


async def test_a_search_gives_way_likewise() -> None:
    index = Founded((passage("The fleet burned 5,240 tonnes of diesel in 2024.", document="burned"),))
    searcher = Searcher(retriever=Retriever(index=index, embedder=None, lane_timeout_s=5.0), clock=lambda: NOW)  # type: ignore[arg-type]  # lexical
    request = Request("main", "diesel burned as of 2024", RetrievalMode.LEXICAL, LaneFilter(), V3_1, 10)
    found = await searcher.search(Look(request))
    assert [result.passage.key.document_id for result in found.results] == ["burned"]
    assert found.notes[0].startswith("nothing matches as of 2024-12-31")
    kept = await searcher.search(Look(request, moment=Moment(_PAST)))
    assert kept.results == ()
    assert Reach.EVERY in {view.reach for view in index.views}


def member(document: str, *, version: str = "", draft: bool = False, day: int = 1) -> StateReport:
    effective = datetime(2024, 1, day, tzinfo=UTC)
    return StateReport(
        document, 1, LivingState.ACTIVE, family="leave", version=version, not_in_force_yet=draft, effective_at=effective
    )


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        (member("later", version="2.0", draft=True, day=2), "now"),
        (member("later", version="2.0-beta1", day=2), "now"),
        (member("later", version="2.0", day=2), "later"),
    ],
)
def test_a_draft_or_pre_release_takes_no_release_s_place(later: StateReport, kept: str) -> None:
    now = member("now", version="1.10")
    items = [
        Item(Admitted(Fused(one.key, 0.03, Form.TEXT), one, 1.0), state)
        for one, state in ((passage("28 days.", document="now"), now), (passage("31 days.", document="later"), later))
    ]
    barred = barred_versions(Pool(tuple(items)), "", (), margin=0.1)
    assert {"now", "later"} - barred == {kept}
    assert current_member((now, later)) == (later if kept == "later" else now)


def test_among_pre_releases_the_newest_is_the_current_one() -> None:
    older, newer = member("a", version="1.0-rc1"), member("b", version="1.0-rc2", day=2)
    assert current_member((older, newer)) == newer
    assert [is_prerelease(text) for text in ("1.0-rc1", "2.0b2", "3.0-draft", "1.0", "2024-05-31", "")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("answers", ["for", "against"])
async def test_both_sides_are_shown_whichever_answers_best(answers: str) -> None:
    texts = {"for": "The bollard at the quay is painted red.", "against": "The bollard at the quay is not painted red."}
    first, second = answers, "against" if answers == "for" else "for"
    made = world(
        passage(texts[first], document=first, title="Bollard"),
        passage(texts[second].replace("bollard at the quay", "thing"), document=second, title="Other"),
    )
    made.index.reports = {
        "for": replace(member("for"), state=LivingState.CONTESTED, family=""),
        "against": replace(member("against"), family=""),
    }
    made.index.edges = (Relation("against", RelationType.CONTRADICTS, "for"),)
    answer = await made.answerer.ask(Ask("main", "How is the bollard at the quay painted?"))
    assert dict(cited(answer)) == {first: Role.SUPPORT, second: Role.CONTRA}


async def test_documents_in_a_circle_are_no_two_sources_that_agree() -> None:
    made = world(
        replace(passage("The kiosk opens at seven.", document="a"), source_domain="a.example"),
        replace(passage("The kiosk opens at nine.", document="b"), source_domain="b.example"),
        mode=AnswerMode.AUDIT,
    )
    made.index.reports = {
        one: replace(
            member(one), state=LivingState.CONTESTED, family="", rule="supersedes_cycle", other_document_id=other
        )
        for one, other in (("a", "b"), ("b", "a"))
    }
    with pytest.raises(PreconditionFailed, match="insufficient_evidence"):
        await made.answerer.ask(Ask("main", "When does the kiosk open?"))
