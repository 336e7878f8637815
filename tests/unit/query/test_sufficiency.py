"""MiSES and fragility against brute force."""

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.query.domain.sufficiency import CitedDocument, weigh_sufficiency

documents = st.lists(
    st.tuples(st.sampled_from("pqr"), st.frozensets(st.sampled_from("abcd"))), min_size=0, max_size=7
).map(lambda rows: [CitedDocument(f"d{place}", *row) for place, row in enumerate(rows)])


def holds(chosen: tuple[CitedDocument, ...], every: list[CitedDocument], needed: int) -> bool:
    covered = {term for item in chosen for term in item.covered}
    wanted = {term for item in every for term in item.covered}
    return len({item.domain for item in chosen}) >= needed and wanted <= covered


@given(documents, st.integers(1, 3))
def test_the_verdict_equals_brute_force(cited: list[CitedDocument], needed: int) -> None:
    found = weigh_sufficiency(cited, domains_needed=needed)
    subsets = list(chain.from_iterable(combinations(cited, size) for size in range(len(cited) + 1)))
    enough = [subset for subset in subsets if holds(subset, cited, needed)]
    assert found.sufficient == holds(tuple(cited), cited, needed) == bool(enough)
    if enough:
        assert found.minimal == tuple(item.document_id for item in enough[0])
    broken = [item.document_id for item in cited if not holds(tuple(o for o in cited if o is not item), cited, needed)]
    assert list(found.load_bearing) == broken
    assert found.fragility == (len(broken) / len(cited) if cited else 0.0)


@pytest.mark.parametrize(
    ("domains", "fragility"), [("ab", 1.0), ("abcc", 0.0), ("aabcdd", 0.0)], ids=["F1", "F2", "F3"]
)
def test_calibration_of_two_four_and_six_documents(domains: str, fragility: float) -> None:
    cited = [CitedDocument(f"{place}", domain, frozenset({"zone"})) for place, domain in enumerate(domains)]
    assert weigh_sufficiency(cited, domains_needed=2).fragility == fragility
