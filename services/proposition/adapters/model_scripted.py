"""A model that costs nothing and answers as it is told: for tests and demonstrations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from services.kernel.errors import ProviderAway, ProviderRefused, Rejected
from services.proposition.domain.grading import CRITERIA
from services.proposition.domain.prompts import Message, Schema
from services.proposition.ports import Completion

MODEL_ID = "scripted"
Answer = Callable[[Sequence[Message], Schema], "Completion | str"]


class ScriptedModel:
    """See ports.Model.

    Attributes:
        calls: Names of the schemas of all calls so far.
    """

    calls_at_once = 4

    def __init__(self, *, answer: Answer) -> None:
        """Keep the script.

        Args:
            answer: Gives the answer to messages and schema, or raises what a model raises.
        """
        self._answer = answer
        self.calls: list[str] = []

    @classmethod
    def of_list(cls, answers: Sequence[Completion | str]) -> ScriptedModel:
        """One that gives these answers in turn."""
        left = list(answers)
        return cls(answer=lambda _messages, _schema: left.pop(0))

    @classmethod
    def of_file(cls, path: Path) -> ScriptedModel:
        """One that looks its answers up in a file, anew for each call.

        Args:
            path: JSON, a list of objects; the first one that fits a call answers it. Each may have: "call"
                ("propositions" or "ratings"; any when absent), "contains" (text that the last message must hold), and
                one of "reply" (text, or JSON that becomes the text), "scores" (a number that every proposition gets in
                every score) and "error" ("away" or "refused"), and "truncated" (true or false).
        """
        return cls(answer=lambda messages, schema: _look_up(path, messages, schema))

    async def complete(self, messages: Sequence[Message], schema: Schema) -> Completion:
        """See Model."""
        self.calls.append(schema.name)
        answer = self._answer(messages, schema)
        return Completion(text=answer, model_id=MODEL_ID) if isinstance(answer, str) else answer

    async def close(self) -> None:
        """See Model."""


def _look_up(path: Path, messages: Sequence[Message], schema: Schema) -> Completion:
    asked = messages[-1].content
    for entry in _entries(path):
        if entry.get("call", schema.name) == schema.name and entry.get("contains", "") in asked:
            return _scripted(entry, asked)
    raise ProviderRefused(f"script {path.name} has no answer for a call for {schema.name}: add one")


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        entries = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Rejected(f"script {path} can't be read ({type(error).__name__}): write a JSON list") from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise Rejected(f"script {path} is no list of objects: write a JSON list")
    return entries


def _scripted(entry: dict[str, Any], asked: str) -> Completion:
    if entry.get("error") == "away":
        raise ProviderAway("the script says that the provider is away")
    if entry.get("error") == "refused":
        raise ProviderRefused("the script says that the provider refuses")
    reply = entry.get("reply", "")
    if "scores" in entry:
        scores = dict.fromkeys(CRITERIA, entry["scores"])
        reply = {"ratings": [{"ordinal": number} | scores for number in range(1, asked.count('{"ordinal": ') + 1)]}
    text = reply if isinstance(reply, str) else json.dumps(reply)
    return Completion(text=text, truncated=bool(entry.get("truncated")), model_id=MODEL_ID)
