"""Manifests: what a digest in a receipt stands for."""

from dataclasses import replace

from affidavit.verify.encoding import encode

from services.query.codec.digests import engine_digest, policy_digest
from services.query.domain.profile import PROFILES, V1, V3_1
from services.query.domain.values import Form


def test_profiles_are_fixed() -> None:
    """A change of any number is another policy: raise the profile's version with the digest, on purpose."""
    assert policy_digest(V1).hex() == "a3d628e0ea641e9b601e3973a2111632e184edf1e9077959de935a4eb17ebe86"
    assert policy_digest(V3_1).hex() == "6633fd02b2c6d16dc0574e1bf9395f421bb3df6c89314dfc3025542d91e4bd18"
    assert PROFILES == {"v1": V1, "v3.1": V3_1}


def test_every_field_moves_the_digest() -> None:
    digest = policy_digest(V1)
    assert policy_digest(replace(V1, rank_constant=61)) != digest
    assert policy_digest(replace(V1, features=replace(V1.features, reranking=True))) != digest
    assert policy_digest(replace(V1, evidence=replace(V1.evidence, shortlist=11))) != digest
    assert len(digest) == 32
    assert V3_1.living is not None
    living = replace(V3_1.living, title_common_ppm=71_000)
    assert policy_digest(replace(V3_1, living=living)) != policy_digest(V3_1)


def test_a_manifest_is_encodable_and_holds_what_the_seed_says() -> None:
    manifest = V1.as_map()
    assert encode({"profile": manifest})  # type: ignore[dict-item]  # plain values only
    assert manifest["rank_constant"] == 60
    assert manifest["features"]["receipts"] == 1  # type: ignore[index]  # a nested map
    weights = V1.weights.by_form()
    assert [(weights[form].vector, weights[form].keyword) for form in (Form.TEXT, Form.STRUCTURED, Form.INFORMAL)] == [
        (0.6, 0.4),
        (0.8, 0.2),
        (0.6, 0.4),
    ]


def test_the_engine_digest_depends_on_build_models_and_generation() -> None:
    digest = engine_digest("1.0", ("embedding:m:f",), 1)
    assert len({digest, engine_digest("1.1", ("embedding:m:f",), 1), engine_digest("1.0", (), 1)}) == 3
    assert digest != engine_digest("1.0", ("embedding:m:f",), 2)
