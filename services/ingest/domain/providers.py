"""Providers of a crate: which are served, and which addresses and credentials they may name."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final
from urllib.parse import SplitResult, urlsplit

from services.ingest.domain.chunking import MIN_SIZE_CHARS
from services.ingest.domain.refusals import NotBuiltYet, Refused

MAX_TIMEOUT_S: Final = 600
MAX_DIMENSION: Final = 8_192
MAX_URL_CHARS: Final = 2_048
MAX_MODEL_CHARS: Final = 256
MAX_OUTPUT_TOKENS: Final = 131_072
MAX_CONCURRENCY: Final = 64
MAX_HEADERS: Final = 20
MAX_HEADER_CHARS: Final = 1_024
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_OUR_HEADERS: Final = frozenset(
    (
        *("authorization", "proxy-authorization", "cookie", "host", "user-agent", "accept", "accept-encoding"),
        *("content-length", "content-type", "content-encoding", "connection", "transfer-encoding", "te", "trailer"),
        *("upgrade", "expect"),
    )
)
_CREDENTIAL = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]{0,127}|file:[^\x00-\x1f]{1,1023}")
# Forms such as 127.1, 0x7f000001 or 2130706433, which resolvers take for IPv4 addresses.
_NUMERIC_HOST = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*\.?", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_LOCAL_NAMES: Final = (".localhost", ".local", ".internal", ".localdomain")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")


class ProviderRole(StrEnum):
    """What a provider is for."""

    EMBEDDING = "embedding"
    ANSWER = "answer"
    RERANK = "rerank"


class ProviderKind(StrEnum):
    """How a provider is reached."""

    LOCAL_ONNX = "local-onnx"
    OPENAI_COMPATIBLE = "openai-compatible"
    TRITON = "triton"
    COHERE_COMPATIBLE = "cohere-compatible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A model and where it is.

    Attributes:
        role: What it is for.
        kind: How it is reached.
        enabled: Whether it is used.
        base_url: Address; empty for a local model.
        model: Name of the model.
        credential: "env:NAME" or "file:path", never the credential itself; empty for none.
        max_input_chars: Most code points of one input; 0 for no limit.
        timeout_s: Seconds; 0 for 30.
        dimension: Length of the vectors.
        headers: Name and value of what every call to an answer provider carries; a value may be a reference.
        max_output_tokens: Most that an answer provider may write in one call; 0 for 2,048.
        max_concurrency: Calls to an answer provider side by side; 0 for 4.
    """

    role: ProviderRole
    kind: ProviderKind
    enabled: bool = True
    base_url: str = ""
    model: str = ""
    credential: str = ""
    max_input_chars: int = 0
    timeout_s: int = 0
    dimension: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    max_output_tokens: int = 0
    max_concurrency: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPolicy:
    """What the operator allows, and what is packaged.

    Attributes:
        allow_loopback: Whether a provider may be on this machine.
        allow_private: Whether a provider may be in a private network.
        packaged_model: Name of the embedding model that comes with the server.
        packaged_dimension: Length of its vectors.
        check_credential: What is wrong with a reference, or ""; files and variables are the operator's, not the crate's.
    """

    allow_loopback: bool
    allow_private: bool
    packaged_model: str
    packaged_dimension: int
    check_credential: Callable[[str], str]


def default_providers(policy: ProviderPolicy) -> tuple[Provider, ...]:
    """Providers of a crate for which none were named: the packaged embedding model."""
    return (_packaged(Provider(role=ProviderRole.EMBEDDING, kind=ProviderKind.LOCAL_ONNX), policy),)


def check_providers(wanted: tuple[Provider, ...], policy: ProviderPolicy) -> tuple[Provider, ...]:
    """Check the providers of a new crate.

    Args:
        wanted: As the caller names them; without one for embedding, the packaged model embeds.
        policy: What is allowed.

    Returns:
        The providers with their defaults filled in.

    Raises:
        Refused: When one can't be used, or two have the same role.
        NotBuiltYet: When one is of a role or kind that a later version serves.
    """
    checked = tuple(check_provider(provider, policy) for provider in wanted)
    if len({provider.role for provider in checked}) != len(checked):
        raise Refused("two providers have the same role: a crate has one provider per role")
    if any(provider.role is ProviderRole.EMBEDDING for provider in checked):
        return checked
    return (*default_providers(policy), *checked)


def check_propositions(providers: tuple[Provider, ...]) -> None:
    """Check that a crate with propositions has who writes and grades them.

    Args:
        providers: Of the crate, checked.

    Raises:
        Refused: When it has no enabled answer provider.
    """
    if not any(provider.role is ProviderRole.ANSWER and provider.enabled for provider in providers):
        raise Refused(
            "retrieval_strategy proposition needs an enabled answer provider, which writes and grades the propositions: "
            "give an openai-compatible one with base_url and model"
        )


def put_provider(
    current: tuple[Provider, ...], wanted: Provider, policy: ProviderPolicy, *, propositions: bool
) -> tuple[Provider, ...]:
    """Replace the provider of a role.

    Args:
        current: Providers of the crate.
        wanted: The new one.
        policy: What is allowed.
        propositions: Whether the crate's records are written by its answer provider.

    Returns:
        Providers after.

    Raises:
        Refused: When it can't be used.
        NotBuiltYet: When it would need the index to be built again.
    """
    checked = check_provider(wanted, policy)
    for held in current:
        if held.role is checked.role and (propositions or held.role is ProviderRole.EMBEDDING):
            _check_same_space(held, checked)
    return (*(held for held in current if held.role is not checked.role), checked)


def check_provider(provider: Provider, policy: ProviderPolicy) -> Provider:
    """Check one provider and fill in its defaults.

    Args:
        provider: As the caller names it.
        policy: What is allowed.

    Returns:
        The provider as it is stored.

    Raises:
        Refused: When a field can't be used.
        NotBuiltYet: When its role or kind is served by a later version.
    """
    if provider.role is ProviderRole.ANSWER:
        return _answering(provider, policy)
    if provider.role is not ProviderRole.EMBEDDING:
        raise NotBuiltYet(f"a provider of role {provider.role} is not available yet: leave it out")
    if provider.headers or provider.max_output_tokens or provider.max_concurrency:
        raise Refused("headers, max_output_tokens and max_concurrency are for answer providers: leave them out")
    if provider.kind not in (ProviderKind.LOCAL_ONNX, ProviderKind.OPENAI_COMPATIBLE):
        raise NotBuiltYet(
            f"an embedding provider of kind {provider.kind} is not available yet: use local-onnx or openai-compatible"
        )
    if not provider.enabled:
        raise NotBuiltYet(
            "a crate without an embedding provider is not available yet: "
            "leave it enabled and set retrieval_mode lexical to search by words alone"
        )
    _check_limits(provider)
    if provider.kind is ProviderKind.LOCAL_ONNX:
        return _packaged(provider, policy)
    return _remote(provider, policy)


def _answering(provider: Provider, policy: ProviderPolicy) -> Provider:
    if provider.kind is not ProviderKind.OPENAI_COMPATIBLE:
        raise NotBuiltYet(f"an answer provider of kind {provider.kind} is not available yet: use openai-compatible")
    if provider.dimension:
        raise Refused("dimension is for embedding providers: leave it out")
    if provider.max_output_tokens > MAX_OUTPUT_TOKENS:
        raise Refused(f"max_output_tokens {provider.max_output_tokens} is too large: at most {MAX_OUTPUT_TOKENS:,}")
    if provider.max_concurrency > MAX_CONCURRENCY:
        raise Refused(f"max_concurrency {provider.max_concurrency} is too large: at most {MAX_CONCURRENCY}")
    _check_limits(provider)
    _check_headers(provider.headers, policy)
    _check_remote(provider, policy)
    return provider


def _check_headers(headers: tuple[tuple[str, str], ...], policy: ProviderPolicy) -> None:
    if len(headers) > MAX_HEADERS:
        raise Refused(f"{len(headers)} headers were given: at most {MAX_HEADERS}")
    for name, value in headers:
        if not _HEADER.fullmatch(name):
            raise Refused("a header's name isn't usable: 1 to 64 letters, digits and hyphens")
        if name.lower() in _OUR_HEADERS:
            raise Refused(
                f"header {name} is set by the server: leave it out, and give a secret by the credential setting"
            )
        if len(value) > MAX_HEADER_CHARS or not (value.isascii() and value.isprintable() and value):
            raise Refused(
                f"the value of header {name} isn't usable: 1 to {MAX_HEADER_CHARS} printable ASCII characters"
            )
        if value.startswith(("env:", "file:")):
            _check_credential(value, policy)


def _check_credential(credential: str, policy: ProviderPolicy) -> None:
    if not _CREDENTIAL.fullmatch(credential):
        # The value isn't quoted back: it may be a credential that was pasted by mistake.
        raise Refused(
            'credential must name where the credential is read from: "env:NAME" or "file:name"; '
            "credentials themselves are never stored"
        )
    problem = policy.check_credential(credential)
    if problem:
        raise Refused(problem)


def _check_limits(provider: Provider) -> None:
    if provider.max_input_chars and provider.max_input_chars < MIN_SIZE_CHARS:
        raise Refused(
            f"max_input_chars {provider.max_input_chars} is too small: 0 for no limit, or at least {MIN_SIZE_CHARS}, "
            "the smallest chunk"
        )
    if provider.timeout_s > MAX_TIMEOUT_S:
        raise Refused(f"timeout_s {provider.timeout_s} is too long: at most {MAX_TIMEOUT_S} seconds, 0 means 30")
    if len(provider.model) > MAX_MODEL_CHARS or not provider.model.isprintable():
        raise Refused(f"model isn't usable: at most {MAX_MODEL_CHARS} printable characters")


def _packaged(provider: Provider, policy: ProviderPolicy) -> Provider:
    if provider.base_url or provider.credential:
        raise Refused("a local-onnx provider runs in this server: leave base_url and credential empty")
    model = provider.model or policy.packaged_model
    dimension = provider.dimension or policy.packaged_dimension
    if (model, dimension) != (policy.packaged_model, policy.packaged_dimension):
        raise Refused(
            f"local-onnx serves the packaged model {policy.packaged_model} with {policy.packaged_dimension} dimensions, "
            f"not {model} with {dimension}: leave model and dimension empty, or use openai-compatible"
        )
    return replace(provider, model=model, dimension=dimension)


def _remote(provider: Provider, policy: ProviderPolicy) -> Provider:
    _check_remote(provider, policy)
    if not 1 <= provider.dimension <= MAX_DIMENSION:
        raise Refused(
            f"dimension {provider.dimension} isn't usable: an openai-compatible provider needs the length of its "
            f"vectors, 1 to {MAX_DIMENSION}"
        )
    return provider


def _check_remote(provider: Provider, policy: ProviderPolicy) -> None:
    if not provider.model:
        raise Refused("model is empty: an openai-compatible provider needs the name of its model")
    if provider.credential:
        _check_credential(provider.credential, policy)
    check_url("base_url", provider.base_url, policy)


def _check_same_space(held: Provider, wanted: Provider) -> None:
    answers = held.role is ProviderRole.ANSWER
    for field in ("kind", "model", "base_url", "enabled") if answers else ("kind", "model", "dimension"):
        before, after = getattr(held, field), getattr(wanted, field)
        if before != after:
            raise NotBuiltYet(
                f"changing the {held.role} provider's {field} from {before} to {after} needs the index to be built "
                "again, which is not available yet: create another crate with that provider"
            )


def check_url(field: str, url: str, policy: ProviderPolicy) -> None:
    """Check the address of a provider.

    A name that resolves to a private address is met where the connection is opened; here only what the URL says counts.

    Args:
        field: Name of the setting, for the message.
        url: Address.
        policy: What is allowed.

    Raises:
        Refused: When the address isn't plain http(s), holds credentials, or is in a range that isn't allowed.
    """
    if not url or len(url) > MAX_URL_CHARS:
        raise Refused(f"{field} must be an http or https address of 1 to {MAX_URL_CHARS} characters")
    parts = _split(field, url)
    if parts.scheme not in ("http", "https"):
        raise Refused(f"{field} has scheme {parts.scheme[:20]!r}: use https or http")
    if parts.username is not None or parts.password is not None:
        raise Refused(f"{field} holds a user name or password: use the credential setting instead")
    if parts.query or parts.fragment:
        raise Refused(f"{field} must not have a query or fragment: give the address that paths are added to")
    _check_host(field, parts.hostname or "", policy)


def _split(field: str, url: str) -> SplitResult:
    if not url.isprintable() or " " in url or "\\" in url:
        raise Refused(f"{field} holds a space, a backslash or an invisible character")
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        raise Refused(f"{field} is no valid address: {error}") from error
    return parts


def _check_host(field: str, host: str, policy: ProviderPolicy) -> None:
    try:
        address = _effective(ipaddress.ip_address(host.split("%", 1)[0]))
    except ValueError:
        _check_name(field, host, policy)
        return
    if address.is_loopback:
        _need(policy.allow_loopback, field, host, "this machine", "allow_loopback_providers")
    elif not address.is_global or address.is_multicast:
        _need(policy.allow_private, field, host, "a private or reserved network", "allow_private_providers")


def _check_name(field: str, host: str, policy: ProviderPolicy) -> None:
    if not _HOST.fullmatch(host) or _NUMERIC_HOST.fullmatch(host):
        raise Refused(f"{field} has host {host[:80]!r}: write a host name, a dotted IPv4 or a bracketed IPv6 address")
    name = f".{host.lower().rstrip('.')}"
    if name.endswith(".localhost"):
        _need(policy.allow_loopback, field, host, "this machine", "allow_loopback_providers")
    elif name.endswith(_LOCAL_NAMES):
        _need(policy.allow_private, field, host, "a private network", "allow_private_providers")


def _effective(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return inner
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _need(allowed: bool, field: str, host: str, place: str, setting: str) -> None:
    if not allowed:
        raise Refused(f"{field} names {host}, which is in {place}: the operator must set {setting} to allow that")
