"""Calls to providers of models: retries, credentials, bounds, and errors that can be shown.

No message of an error holds content, a credential or anything that the provider wrote back: it may quote either. For the
same reason nothing that httpx or the provider says is chained to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from services.kernel.credentials import Credentials
from services.kernel.errors import Failure, ProviderAway, ProviderRefused, Rejected, Unavailable

_MAX_RETRY_AFTER_S = 20.0
_LATER = frozenset({408, 409, 425, 429})
_DENIED = frozenset({401, 403})
_REFERENCES = ("env:", "file:")
# What says where a request ends and whom it is for: never a crate's to set.
_OURS = frozenset({"host", "content-length", "content-type", "transfer-encoding", "connection"})


class _TryAgain(Exception):  # noqa: N818  (not an error yet)
    """An attempt failed in a way that may pass."""

    def __init__(self, problem: str, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a provider's requests go.

    Attributes:
        name: Provider as messages name it.
        url: Address of the call.
        timeout_s: Seconds for one attempt.
        credential: "env:NAME", "file:path" or empty.
        headers: Further headers; a value that begins with "env:" or "file:" says where it is read from.
        advice: What to look at when the provider refuses a request.
    """

    name: str
    url: str
    timeout_s: float
    credential: str = ""
    headers: Mapping[str, str]
    advice: str


def call_url(base_url: str, call: str) -> str:
    """Address of a call below a provider's address, with or without its version part.

    Args:
        base_url: For example "https://api.example.com" or "https://api.example.com/v1".
        call: For example "embeddings".

    Returns:
        For example "https://api.example.com/v1/embeddings".
    """
    root = base_url.rstrip("/")
    last = root.rsplit("/", 1)[-1]
    versioned = last[:1] == "v" and last[1:].isdigit()
    return f"{root}/{call}" if versioned else f"{root}/v1/{call}"


def provider_name(kind: str, base_url: str) -> str:
    """How messages name a provider: by its host, never by its whole address."""
    return f"{kind} provider {urlsplit(base_url).hostname}"


class ProviderClient:
    """Sends JSON to one provider and gives back what it answers."""

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        transport: httpx.AsyncBaseTransport,
        credentials: Credentials,
        backoff_s: float = 0.5,
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._backoff_s = backoff_s
        # A client of its own: pooled connections of two providers must never be mixed up.
        self._client = httpx.AsyncClient(
            transport=transport, timeout=endpoint.timeout_s, follow_redirects=False, trust_env=False
        )

    @property
    def name(self) -> str:
        """Provider as messages name it."""
        return self._endpoint.name

    async def post(self, body: object, *, attempts: int, most_bytes: int) -> bytes:
        """Send a request, and again while its failure may pass.

        Args:
            body: What is sent, as JSON.
            attempts: How often at most.
            most_bytes: Longest answer that is read.

        Returns:
            Content of the answer.

        Raises:
            ProviderRefused: When the provider will never take it.
            ProviderAway: When it doesn't answer now, or denies access.
            Rejected: When its address or credential isn't allowed; nothing was sent.
            Unavailable: When its credential can't be read; nothing was sent.
        """
        problem = ""
        for attempt in range(attempts):
            try:
                return await self._attempt(body, most_bytes)
            except _TryAgain as again:
                problem, wait_s = again.problem, again.wait_s
            if attempt + 1 < attempts:
                await asyncio.sleep(max(wait_s, self._backoff_s * 2**attempt))
        raise ProviderAway(f"{self.name} {problem}, {attempts} times in a row: try later, or see whether it is up")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _attempt(self, body: object, most_bytes: int) -> bytes:
        headers = self._headers()
        failed: Failure | _TryAgain
        try:
            async with (
                asyncio.timeout(self._endpoint.timeout_s),
                self._client.stream("POST", self._endpoint.url, headers=headers, json=body) as answer,
            ):
                self._check_status(answer)
                return await self._read(answer, most_bytes)
        except (TimeoutError, httpx.TimeoutException):
            failed = _TryAgain(f"did not answer within {self._endpoint.timeout_s:g} s")
        except httpx.HTTPError as error:
            failed = _TryAgain(f"could not be reached ({type(error).__name__})")
        # Not within the block: what httpx says may quote the answer.
        raise failed

    def _check_status(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status == httpx.codes.OK:
            return
        if status in _LATER or status >= 500:
            raise _TryAgain(f"answered {status}", _retry_after_s(answer))
        if answer.is_redirect:
            raise ProviderRefused(
                f"{self.name} answered {status}, a redirect: set base_url to the final address", status
            )
        if status in _DENIED:
            # May pass: a credential that ran out is replaced without touching the documents that wait.
            raise ProviderAway(f"{self.name} answered {status}: check {self._endpoint.credential or 'its credential'}")
        raise ProviderRefused(f"{self.name} answered {status}: check {self._endpoint.advice}", status)

    async def _read(self, answer: httpx.Response, most_bytes: int) -> bytes:
        content = bytearray()
        async for block in answer.aiter_bytes():
            content += block
            if len(content) > most_bytes:
                raise ProviderAway(f"{self.name} answered with over {most_bytes} bytes: is base_url right?")
        return bytes(content)

    def _headers(self) -> dict[str, str]:
        """Read what is secret anew, so that it can be rotated without a restart."""
        headers = {}
        for name, value in self._endpoint.headers.items():
            if name.lower() in _OURS or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
                raise Rejected(f"{self.name}: header {name[:80]!r} can't be set: leave it out")
            headers[name.lower()] = self._secret(value) if value.startswith(_REFERENCES) else self._plain(name, value)
        if self._endpoint.credential:
            headers["authorization"] = f"Bearer {self._secret(self._endpoint.credential)}"
        return headers

    def _plain(self, name: str, value: str) -> str:
        if not value.isascii() or not value.isprintable():
            raise Rejected(f"{self.name}: header {name[:80]!r} has a value that no header takes: use printable ASCII")
        return value

    def _secret(self, reference: str) -> str:
        problem = self._credentials.problem(reference)
        if problem:
            # Accepted by an earlier release, or the operator has changed what is allowed.
            raise Rejected(f"{self.name}: {problem}")
        try:
            token = self._credentials.read(reference).strip()
        except (KeyError, OSError, UnicodeDecodeError) as error:
            reason = type(error).__name__
        else:
            if token and token.isascii() and token.isprintable():
                return token
            raise Unavailable(f"{self.name}: credential {reference} is empty or holds characters that no header takes")
        # Not within the block: an undecodable credential would be quoted.
        raise Unavailable(f"{self.name}: credential {reference} can't be read ({reason})")


def _retry_after_s(answer: httpx.Response) -> float:
    value = answer.headers.get("retry-after", "")
    return min(float(value), _MAX_RETRY_AFTER_S) if value.isascii() and value.isdigit() else 0.0
