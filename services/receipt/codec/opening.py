"""Stored receipts and packs to bundles and views."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from affidavit.verify import bundle as bundles
from affidavit.verify.bundle import ERASED, WITHHELD, Disclosures, Gone, Opened, OpenedEvidence
from affidavit.verify.encoding import array, blob, decode, row, text, uint
from affidavit.verify.errors import Refused
from affidavit.verify.hashing import SALT_BYTES
from affidavit.verify.receipt import Receipt, parse

from services.receipt.domain.display import JsonValue, canonical_json

_SALT = blob(SALT_BYTES, SALT_BYTES)
_TEXT = row(_SALT, blob(0, bundles.MAX_BUNDLE_BYTES))
_ANSWER_PACK = row(
    _TEXT,
    _TEXT,
    _TEXT,
    row(_SALT, array(text(0, 10_000), bundles.MAX_REPAIRS)),
    row(_SALT, array(row(text(1, 255), uint(), uint()), bundles.MAX_CANDIDATES)),
)


def opened(
    cose: bytes,
    answer: Mapping[str, bytes] | None,
    evidence: Mapping[tuple[str, int], Mapping[str, bytes] | None],
) -> Disclosures:
    """Put the disclosures of a stored receipt together.

    Args:
        cose: The receipt.
        answer: Parts of the answer's pack; None when it was erased.
        evidence: Parts of each cited revision's pack, by document id and revision; None when it was erased.

    Returns:
        One place per commitment of the receipt.

    Raises:
        ValueError: When a pack isn't laid out as it was written.
    """
    gone = Gone(ERASED)
    places: list[OpenedEvidence | Gone] = [gone] * len(parse(cose).body["cit"])
    for (document_id, revision), parts in evidence.items():
        for name, body in (parts or {}).items():
            place = int(name)
            places[place] = OpenedEvidence(body[:SALT_BYTES], document_id, revision, body[SALT_BYTES:])
    if answer is None:
        return Disclosures(
            question=gone, answer=gone, raw_answer=gone, repairs=gone, candidates=gone, evidence=tuple(places)
        )
    try:
        pairs = decode(answer["answer"], _ANSWER_PACK, step="answer pack", limit=bundles.MAX_BUNDLE_BYTES)
    except (Refused, KeyError) as error:
        raise ValueError(f"the pack of the answer can't be read: {error}") from error
    question, delivered, raw, repairs, candidates = (Opened(*pair) for pair in pairs)
    return Disclosures(
        question=question,
        answer=delivered,
        raw_answer=raw,
        repairs=repairs,
        candidates=candidates,
        evidence=tuple(places),
    )


def bundle(cose: bytes, shown: Disclosures) -> bytes:
    """Write a bundle: the receipt and what is disclosed beside it."""
    return bundles.assemble(cose, shown)


def closed_bundle(cose: bytes) -> bytes:
    """Write a bundle that discloses nothing: all that a chain link needs."""
    return bundles.assemble(cose, Disclosures.none(citations=len(parse(cose).body["cit"]), why=WITHHELD))


def is_complete(shown: Disclosures) -> bool:
    """True when nothing was erased."""
    one_of_all = (shown.question, shown.answer, shown.raw_answer, shown.repairs, shown.candidates, *shown.evidence)
    return not any(isinstance(one, Gone) for one in one_of_all)


def parent_of(file: bytes) -> bytes | None:
    """Parent that a bundle names.

    Args:
        file: Any bytes.

    Returns:
        Its id, or None when the bytes are no bundle or it is the first of its chain.
    """
    try:
        receipt = bundles.parse_bundle(file).receipt
    except Refused:
        return None
    return receipt.parent if receipt.sequence else None


def view(cose: bytes, shown: Disclosures) -> str:
    """Show a receipt to a person.

    Args:
        cose: The receipt.
        shown: What is disclosed.

    Returns:
        Canonical JSON; texts that aren't UTF-8 are shown with replacement characters.
    """
    receipt = parse(cose)
    body = receipt.body
    issued_at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=body["iat"])
    shown_as: dict[str, JsonValue] = {
        "receipt_id": receipt.id.hex(),
        "version": body["v"],
        "issuer": receipt.issuer,
        "key_id": receipt.kid.hex(),
        "chain_id": receipt.chain.hex(),
        "sequence": receipt.sequence,
        "parent_id": receipt.parent.hex(),
        "issued_at": issued_at.isoformat().replace("+00:00", "Z"),
        "mode": {"requested": body["mod"]["req"], "applied": body["mod"]["app"], "reason": body["mod"]["why"]},
        "cursor": {"incarnation": body["cur"]["inc"].hex(), "position": body["cur"]["ssq"]},
        "policy_digest": body["pol"].hex(),
        "engine_digest": body["eng"].hex(),
        "question": _content(shown.question),
        "answer": _content(shown.answer),
        "answer_before_repair": _content(shown.raw_answer),
        "repairs": _content(shown.repairs),
        "candidates": _content(shown.candidates),
        "citations": _citations(receipt, shown),
    }
    if "llm" in body:
        shown_as["model"] = {"name": body["llm"]["mdl"], **_request_id(body["llm"])}
    return canonical_json(shown_as)


def _request_id(model: Mapping[str, str]) -> dict[str, JsonValue]:
    return {"request_id": model["rid"]} if "rid" in model else {}


def _content(one: Opened | Gone) -> JsonValue:
    if isinstance(one, Gone):
        return {"state": one.why}
    return {"state": "disclosed", "content": _readable(one.content)}


def _readable(content: Any) -> JsonValue:
    if isinstance(content, bytes):
        return content.decode("utf-8", "replace")
    if isinstance(content, list):
        return [_readable(item) for item in content]
    return content if isinstance(content, int | str) else None


def _citations(receipt: Receipt, shown: Disclosures) -> JsonValue:
    found: list[JsonValue] = []
    for citation, one in zip(receipt.body["cit"], shown.evidence, strict=True):
        place: dict[str, JsonValue] = {
            "role": citation["rol"],
            "ordinal": citation["idx"],
            "byte_start": citation["off"],
            "byte_end": citation["off"] + citation["len"],
            "commitment": citation["com"].hex(),
        }
        if isinstance(one, Gone):
            place["state"] = one.why
        else:
            place |= {
                "state": "disclosed",
                "document_id": one.document_id,
                "revision": one.revision,
                "text": one.content.decode("utf-8", "replace"),
            }
        found.append(place)
    return found
