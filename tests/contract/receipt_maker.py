"""Receipts for tests, made with the contracts' own building blocks and a throwaway key."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from affidavit.verify import bundle as bundles
from affidavit.verify import hashing, keys, receipt
from affidavit.verify.bundle import Disclosures, Opened, OpenedEvidence
from affidavit.verify.encoding import encode
from affidavit.verify.hashing import Purpose
from affidavit.verify.signature import key_id
from nacl.signing import SigningKey

ISSUER = "example.org/affidavit"
QUESTION = "How much saffron per cup?"
ANSWER = "Café Zoë keeps 0.0000001 g of saffron per cup ☕ [1]."
EVIDENCE = ("Café Zoë keeps 0.0000001 g of saffron per cup ☕.".encode(), b"Opening hours: 9-17.\r\n", b"")
Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Maker:
    """Makes receipts of one chain.

    Attributes:
        seed: Seed of the key and of every salt.
        issuer: Origin.
        evidence: Content of each citation.
    """

    seed: int = 1
    issuer: str = ISSUER
    evidence: tuple[bytes, ...] = EVIDENCE
    _salts: random.Random = field(default_factory=lambda: random.Random(7))

    @property
    def key(self) -> SigningKey:
        return SigningKey(random.Random(self.seed).randbytes(32))

    @property
    def public_key(self) -> bytes:
        return bytes(self.key.verify_key)

    @property
    def keys_file(self) -> bytes:
        return keys.render([keys.PinnedKey(self.issuer, self.public_key)])

    def disclosures(self) -> Disclosures:
        return Disclosures(
            question=Opened(self._salt(), QUESTION.encode()),
            answer=Opened(self._salt(), ANSWER.encode()),
            raw_answer=Opened(self._salt(), ANSWER.replace("[1]", "[[1]]").encode()),
            repairs=Opened(self._salt(), ["[[1]] became [1]"]),
            candidates=Opened(self._salt(), [["d" * 32, 1, 0], ["e" * 32, 2, 5]]),
            evidence=tuple(
                OpenedEvidence(self._salt(), f"{number:032x}", 1 + number, content)
                for number, content in enumerate(self.evidence)
            ),
        )

    def body(self, shown: Disclosures, *, sequence: int = 0, parent: bytes = receipt.NO_PARENT) -> dict[str, Any]:
        def commit(purpose: Purpose, one: object) -> bytes:
            assert isinstance(one, Opened)
            return hashing.commitment(purpose, one.salt, one.content)

        citations = []
        for number, one in enumerate(shown.evidence):
            assert isinstance(one, OpenedEvidence)
            commitment = hashing.evidence_commitment(
                one.salt,
                document_id=one.document_id,
                revision=one.revision,
                ordinal=number,
                byte_start=10 * number,
                content=one.content,
            )
            length = len(one.content)
            citations.append({"com": commitment, "idx": number, "len": length, "off": 10 * number, "rol": "support"})
        return {
            "v": 0,
            "iss": self.issuer,
            "chn": bytes(range(16)),
            "seq": sequence,
            "par": parent,
            "iat": 1_800_000_000_000 + sequence,
            "qry": commit(Purpose.QUESTION, shown.question),
            "ans": {
                "raw": commit(Purpose.RAW_ANSWER, shown.raw_answer),
                "rep": commit(Purpose.REPAIRS, shown.repairs),
                "txt": commit(Purpose.ANSWER, shown.answer),
            },
            "cur": {"inc": bytes(16), "ssq": 42},
            "cit": citations,
            "ret": {"can": commit(Purpose.CANDIDATES, shown.candidates)},
            "eng": b"\x01" * 32,
            "pol": b"\x02" * 32,
            "mod": {"app": "light", "req": "verified", "why": "mode_not_available"},
            "llm": {"mdl": "example-model", "rid": "r-1"},
        }

    def sign(self, body: dict[str, Any], *, kid: bytes | None = None, check: bool = True) -> bytes:
        kid = kid or key_id(self.public_key)
        payload = receipt.body_payload(body) if check else encode(body)
        signature = self.key.sign(receipt.signing_input(kid, payload)).signature
        return receipt.assemble(kid, payload, signature)

    def bundle(
        self, *, sequence: int = 0, parent: bytes = receipt.NO_PARENT, change: Change | None = None, check: bool = True
    ) -> bytes:
        shown = self.disclosures()
        body = self.body(shown, sequence=sequence, parent=parent)
        if change:
            change(body)
        return bundles.assemble(self.sign(body, check=check), shown)

    def chain(self, length: int) -> list[bytes]:
        """Bundles of the first receipts of a chain, in order."""
        files: list[bytes] = []
        parent = receipt.NO_PARENT
        for sequence in range(length):
            files.append(self.bundle(sequence=sequence, parent=parent))
            parent = bundles.parse_bundle(files[-1]).receipt.id
        return files

    def _salt(self) -> bytes:
        return self._salts.randbytes(32)


def reassembled(file: bytes, **changes: Any) -> bytes:
    """A bundle with other disclosures beside the same receipt."""
    read = bundles.parse_bundle(file)
    return bundles.assemble(read.receipt.cose, replace(read.disclosures, **changes))
