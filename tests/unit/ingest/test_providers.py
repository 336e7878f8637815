"""Providers: which are served, which addresses and credentials are allowed."""

from dataclasses import replace

import pytest

from services.ingest.domain.providers import (
    Provider,
    ProviderKind,
    ProviderPolicy,
    ProviderRole,
    check_propositions,
    check_provider,
    check_providers,
    check_url,
    default_providers,
    put_provider,
)
from services.ingest.domain.refusals import NotBuiltYet, Refused


def only_known(reference: str) -> str:
    """An operator who has set one file aside."""
    return "" if reference.startswith("env:") or reference == "file:/run/secrets/key" else f"{reference} is not allowed"


STRICT = ProviderPolicy(
    allow_loopback=False,
    allow_private=False,
    packaged_model="mini",
    packaged_dimension=384,
    check_credential=only_known,
)
LOCAL = replace(STRICT, allow_loopback=True)
OPEN = replace(LOCAL, allow_private=True)
REMOTE = Provider(
    role=ProviderRole.EMBEDDING,
    kind=ProviderKind.OPENAI_COMPATIBLE,
    base_url="https://models.example.org/v1",
    model="embed-3",
    credential="env:EMBED_KEY",
    dimension=1_024,
)
ANSWERS = Provider(
    role=ProviderRole.ANSWER,
    kind=ProviderKind.OPENAI_COMPATIBLE,
    base_url="https://models.example.org/v1",
    model="writer-1",
    credential="env:ANSWER_KEY",
    headers=(("x-key", "env:TEAM_KEY"), ("x-team", "a")),
    max_output_tokens=4_096,
    max_concurrency=2,
)
ONNX = Provider(role=ProviderRole.EMBEDDING, kind=ProviderKind.LOCAL_ONNX)


def test_a_crate_without_providers_gets_the_packaged_model() -> None:
    assert check_providers((), STRICT) == default_providers(STRICT)
    assert default_providers(STRICT) == (replace(ONNX, model="mini", dimension=384),)


def test_a_remote_provider_is_kept_as_it_is() -> None:
    assert check_providers((REMOTE,), STRICT) == (REMOTE,)
    assert check_provider(replace(REMOTE, credential=""), STRICT).credential == ""


def test_two_providers_of_a_role_are_refused() -> None:
    with pytest.raises(Refused, match="two providers have the same role"):
        check_providers((REMOTE, ONNX), STRICT)


def test_reranking_comes_later() -> None:
    with pytest.raises(NotBuiltYet, match="role rerank is not available yet"):
        check_provider(replace(REMOTE, role=ProviderRole.RERANK), STRICT)


def test_an_answer_provider_is_kept_beside_the_packaged_model() -> None:
    assert check_providers((ANSWERS,), STRICT) == (*default_providers(STRICT), ANSWERS)
    assert check_providers((ANSWERS, REMOTE), STRICT) == (ANSWERS, REMOTE)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kind": ProviderKind.LOCAL_ONNX}, "answer provider of kind local-onnx is not available yet"),
        ({"model": ""}, "model is empty"),
        ({"base_url": "http://10.0.0.1"}, "private or reserved network"),
        ({"dimension": 3}, "dimension is for embedding providers"),
        ({"max_output_tokens": 131_073}, "max_output_tokens 131073 is too large"),
        ({"max_concurrency": 65}, "max_concurrency 65 is too large"),
        ({"timeout_s": 601}, "timeout_s 601 is too long"),
        ({"credential": "sk-secret"}, "credential must name where"),
        ({"credential": "file:/etc/passwd"}, "/etc/passwd is not allowed"),
        ({"headers": (("Authorization", "Bearer sk"),)}, "header Authorization is set by the server"),
        ({"headers": (("X Team", "a"),)}, "a header's name isn't usable"),
        ({"headers": (("X-Team", "a\nb"),)}, "the value of header X-Team isn't usable"),
        ({"headers": (("X-Key", "file:/etc/passwd"),)}, "/etc/passwd is not allowed"),
        ({"headers": tuple((f"x-{n}", "v") for n in range(21))}, "21 headers were given"),
    ],
)
def test_answer_providers_that_can_t_be_used_are_refused(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(Refused, match=problem) as caught:
        check_provider(replace(ANSWERS, **changes), STRICT)  # type: ignore[arg-type]  # fields of mixed types
    assert "sk" not in str(caught.value)


@pytest.mark.parametrize("changes", [{"headers": (("x", "y"),)}, {"max_output_tokens": 1}, {"max_concurrency": 1}])
def test_what_is_for_answers_is_refused_elsewhere(changes: dict[str, object]) -> None:
    with pytest.raises(Refused, match="are for answer providers"):
        check_provider(replace(REMOTE, **changes), STRICT)  # type: ignore[arg-type]  # fields of mixed types


def test_propositions_need_an_enabled_answer_provider() -> None:
    check_propositions((REMOTE, ANSWERS))
    for missing in ((REMOTE,), (REMOTE, replace(ANSWERS, enabled=False))):
        with pytest.raises(Refused, match="needs an enabled answer provider"):
            check_propositions(missing)


@pytest.mark.parametrize("changes", [{"model": "other"}, {"base_url": "https://other.example.org"}, {"enabled": False}])
def test_who_wrote_the_propositions_of_a_crate_stays(changes: dict[str, object]) -> None:
    wanted = replace(ANSWERS, **changes)  # type: ignore[arg-type]  # fields of mixed types
    with pytest.raises(NotBuiltYet, match="changing the answer provider's"):
        put_provider((REMOTE, ANSWERS), wanted, STRICT, propositions=True)
    assert put_provider((REMOTE, ANSWERS), wanted, STRICT, propositions=False) == (REMOTE, wanted)
    patient = replace(ANSWERS, timeout_s=90, headers=(("x-team", "b"),), credential="")
    assert put_provider((REMOTE, ANSWERS), patient, STRICT, propositions=True) == (REMOTE, patient)


@pytest.mark.parametrize("kind", [ProviderKind.TRITON, ProviderKind.COHERE_COMPATIBLE])
def test_other_kinds_come_later(kind: ProviderKind) -> None:
    with pytest.raises(NotBuiltYet, match=f"kind {kind} is not available yet"):
        check_provider(replace(REMOTE, kind=kind), STRICT)


def test_a_disabled_embedding_provider_comes_later() -> None:
    with pytest.raises(NotBuiltYet, match="set retrieval_mode lexical"):
        check_provider(replace(ONNX, enabled=False), STRICT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_input_chars": 49}, "max_input_chars 49 is too small"),
        ({"timeout_s": 601}, "timeout_s 601 is too long"),
        ({"model": "x" * 257}, "model isn't usable"),
        ({"model": "a\nb"}, "model isn't usable"),
        ({"model": ""}, "model is empty"),
        ({"dimension": 0}, "dimension 0 isn't usable"),
        ({"dimension": 8_193}, "dimension 8193 isn't usable"),
        ({"base_url": ""}, "base_url must be an http or https address"),
        ({"base_url": "https://x/" + "a" * 2_048}, "base_url must be an http or https address"),
        ({"credential": "sk-very-secret"}, "credential must name where"),
        ({"credential": "env:"}, "credential must name where"),
        ({"credential": "env:A-B"}, "credential must name where"),
        ({"credential": "file:"}, "credential must name where"),
        ({"credential": "file:/etc/shadow"}, "file:/etc/shadow is not allowed"),
        ({"credential": "file:/a\x00b"}, "credential must name where"),
    ],
)
def test_fields_that_cannot_be_used(changes: dict[str, object], message: str) -> None:
    with pytest.raises(Refused, match=message) as refusal:
        check_provider(replace(REMOTE, **changes), STRICT)  # type: ignore[arg-type]  # the table mixes types
    assert not isinstance(refusal.value, NotBuiltYet)


def test_a_credential_given_by_mistake_is_not_repeated() -> None:
    with pytest.raises(Refused) as refusal:
        check_provider(replace(REMOTE, credential="sk-very-secret"), STRICT)
    assert "sk-very" not in str(refusal.value)


@pytest.mark.parametrize("credential", ["env:NAME", "env:_a1", "file:/run/secrets/key"])
def test_references_to_credentials(credential: str) -> None:
    assert check_provider(replace(REMOTE, credential=credential), STRICT).credential == credential


def test_the_ends_of_ranges_are_allowed() -> None:
    wide = replace(REMOTE, max_input_chars=50, timeout_s=600, dimension=8_192)
    assert check_provider(wide, STRICT) == wide
    assert check_provider(replace(wide, dimension=1), STRICT).dimension == 1


def test_the_packaged_model_is_the_only_local_one() -> None:
    assert check_provider(replace(ONNX, model="mini", dimension=384), STRICT).model == "mini"
    for other in (replace(ONNX, model="large"), replace(ONNX, dimension=768)):
        with pytest.raises(Refused, match="local-onnx serves the packaged model mini with 384 dimensions"):
            check_provider(other, STRICT)
    for other in (replace(ONNX, base_url="https://x.org"), replace(ONNX, credential="env:A")):
        with pytest.raises(Refused, match="leave base_url and credential empty"):
            check_provider(other, STRICT)


def test_address_credential_timeout_and_limit_may_change() -> None:
    moved = replace(
        REMOTE,
        base_url="http://other.example.org",
        credential="file:/run/secrets/key",
        timeout_s=5,
        max_input_chars=500,
    )
    assert put_provider((REMOTE,), moved, STRICT, propositions=False) == (moved,)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (replace(REMOTE, model="embed-4"), "model from embed-3 to embed-4"),
        (replace(REMOTE, dimension=512), "dimension from 1024 to 512"),
        (ONNX, "kind from openai-compatible to local-onnx"),
    ],
)
def test_another_vector_space_needs_a_rebuild(wanted: Provider, field: str) -> None:
    with pytest.raises(NotBuiltYet, match=f"changing the embedding provider's {field} needs the index to be built"):
        put_provider((REMOTE,), wanted, STRICT, propositions=False)


def test_a_role_that_has_no_provider_gets_one() -> None:
    other = replace(REMOTE, role=ProviderRole.RERANK)
    assert put_provider((), REMOTE, STRICT, propositions=False) == (REMOTE,)
    assert put_provider((other,), REMOTE, STRICT, propositions=False) == (other, REMOTE)


@pytest.mark.parametrize(
    "url",
    [
        "https://models.example.org/v1",
        "http://models.example.org:8080",
        "https://93.184.216.34/v1",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/v1",
        "https://xn--bcher-kva.example./",
    ],
)
def test_public_addresses(url: str) -> None:
    check_url("base_url", url, STRICT)


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000/v1",
        "http://LOCALHOST./v1",
        "http://api.localhost",
        "http://127.0.0.1",
        "http://127.9.9.9",
        "http://[::1]:80",
        "http://[::ffff:127.0.0.1]",
    ],
)
def test_this_machine_only_where_allowed(url: str) -> None:
    with pytest.raises(Refused, match="this machine: the operator must set allow_loopback_providers"):
        check_url("base_url", url, STRICT)
    check_url("base_url", url, LOCAL)


@pytest.mark.parametrize(
    "url",
    [
        "http://10.0.0.1",
        "http://172.16.0.1",
        "http://192.168.1.1",
        "http://169.254.169.254/latest",
        "http://100.64.0.1",
        "http://0.0.0.0",
        "http://224.0.0.1",
        "http://[fe80::1%25eth0]",
        "http://[fc00::1]",
        "http://[::]",
        "http://[::ffff:10.0.0.1]",
        "http://[64:ff9b::a00:1]",
        "http://[2002:a00:1::]",
        "http://printer.local",
        "http://metadata.google.internal",
    ],
)
def test_private_networks_only_where_allowed(url: str) -> None:
    with pytest.raises(Refused, match="allow_private_providers"):
        check_url("base_url", url, LOCAL)
    check_url("base_url", url, OPEN)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("ftp://x.org", "scheme 'ftp': use https or http"),
        ("//x.org", "scheme ''"),
        ("x.org", "scheme ''"),
        ("file:///etc/passwd", "scheme 'file'"),
        ("https://user:pw@x.org", "holds a user name or password"),
        ("https://user@x.org", "holds a user name or password"),
        ("https://x.org/?key=1", "query or fragment"),
        ("https://x.org/#a", "query or fragment"),
        ("https://x.org:99999", "no valid address"),
        ("https://[::1", "no valid address"),
        ("https:// x.org", "a space, a backslash"),
        ("https://x.org\\@y.org", "a space, a backslash"),
        ("https://x.org/\n", "a space, a backslash"),
        ("https://", "has host ''"),
        ("http://127.1", "has host '127.1'"),
        ("http://2130706433", "has host '2130706433'"),
        ("http://0x7f000001", "has host '0x7f000001'"),
        ("http://0177.0.0.1", "has host '0177.0.0.1'"),
        ("http://bücher.example", "has host"),
    ],
)
def test_addresses_that_are_none(url: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_url("base_url", url, OPEN)
