"""What holds of fusion whatever the lanes say."""

from hypothesis import given, settings
from hypothesis import strategies as st

from services.query.domain.fusion import LaneWeights, best_per_document, fuse
from services.query.domain.values import Form, LaneHit, RecordKey

K = 60
WEIGHTS = {
    Form.TEXT: LaneWeights(0.6, 0.4),
    Form.STRUCTURED: LaneWeights(0.8, 0.2),
    Form.INFORMAL: LaneWeights(0.6, 0.4),
}
# The form is the document's, so it follows from the id.
KEYS = st.builds(RecordKey, st.sampled_from("abcdefgh"), st.just(1), st.integers(0, 3))
HITS = st.builds(
    lambda key, score: LaneHit(key, score, list(Form)[ord(key.document_id) % 3]),
    KEYS,
    st.floats(0, 10, allow_nan=False),
)
LANES = st.lists(HITS, max_size=20)


@settings(deadline=None)
@given(LANES, LANES)
def test_every_record_comes_once_and_none_is_invented(keyword: list[LaneHit], vector: list[LaneHit]) -> None:
    found = fuse(keyword, vector, weights=WEIGHTS, k=K)
    keys = [item.key for item in found]
    assert len(keys) == len(set(keys))
    assert set(keys) == {hit.key for hit in (*keyword, *vector)}


@settings(deadline=None)
@given(LANES, LANES)
def test_the_score_is_the_sum_over_the_lists_that_hold_the_record(
    keyword: list[LaneHit], vector: list[LaneHit]
) -> None:
    for item in fuse(keyword, vector, weights=WEIGHTS, k=K):
        share = WEIGHTS[item.form]
        expected = share.keyword / (K + item.keyword_rank) if item.keyword_rank else 0.0
        expected += share.vector / (K + item.vector_rank) if item.vector_rank else 0.0
        assert abs(item.score - expected) < 1e-15
        assert (item.keyword_rank > 0) == any(hit.key == item.key for hit in keyword)
        assert (item.vector_rank > 0) == any(hit.key == item.key for hit in vector)


@settings(deadline=None)
@given(LANES, LANES)
def test_the_order_is_total(keyword: list[LaneHit], vector: list[LaneHit]) -> None:
    found = fuse(keyword, vector, weights=WEIGHTS, k=K)
    order = [(-item.score, item.best_rank, item.key) for item in found]
    assert order == sorted(order)
    assert fuse(keyword, vector, weights=WEIGHTS, k=K) == found


@settings(deadline=None)
@given(LANES, LANES)
def test_a_record_that_rises_in_a_lane_never_falls(keyword: list[LaneHit], vector: list[LaneHit]) -> None:
    distinct = list(dict.fromkeys(hit.key for hit in keyword))
    if len(distinct) < 2:
        return
    lifted = distinct[-1]
    first = [hit for hit in keyword if hit.key == lifted]
    raised = [*first, *(hit for hit in keyword if hit.key != lifted)]
    before = [item.key for item in fuse(keyword, vector, weights=WEIGHTS, k=K)].index(lifted)
    after = [item.key for item in fuse(raised, vector, weights=WEIGHTS, k=K)].index(lifted)
    assert after <= before


@settings(deadline=None)
@given(LANES, LANES)
def test_documents_come_once_in_the_order_of_their_best_record(keyword: list[LaneHit], vector: list[LaneHit]) -> None:
    found = fuse(keyword, vector, weights=WEIGHTS, k=K)
    documents = [item.key.document_id for item in best_per_document(found)]
    assert documents == list(dict.fromkeys(item.key.document_id for item in found))
