"""The model that stands in for a provider."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from services.kernel.errors import ProviderAway, ProviderRefused, Rejected
from services.proposition.adapters.model_scripted import ScriptedModel
from services.proposition.domain import prompts, reading
from services.proposition.domain.evaluation import Source
from services.proposition.ports import Completion

SOURCE = Source(text="The depot opened in 1998.")
GENERATION, GRADING = prompts.generation(SOURCE), prompts.grading(SOURCE, ["One.", "Two."])


async def generated(model: ScriptedModel) -> Completion:
    return await model.complete(GENERATION, prompts.PROPOSITIONS)


async def test_answers_are_given_in_turn_and_counted() -> None:
    model = ScriptedModel.of_list(["a", Completion(text="b", truncated=True)])
    assert [(await generated(model)).text, (await generated(model)).truncated] == ["a", True]
    assert model.calls == ["propositions", "propositions"]
    await model.close()


async def test_a_file_answers_by_what_is_asked_and_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    model = ScriptedModel.of_file(path)
    entries: list[dict[str, object]] = [
        {"contains": "another depot", "reply": "no"},
        {"call": "ratings", "scores": 9},
        {"contains": "depot opened", "reply": {"propositions": ["One."]}, "truncated": True},
    ]
    path.write_text(json.dumps(entries))
    answer = await generated(model)
    assert (answer.text, answer.truncated, answer.model_id) == ('{"propositions": ["One."]}', True, "scripted")
    ratings = await model.complete(GRADING, prompts.RATINGS)
    assert len(reading.ratings(ratings.text, 2)) == 2
    for entry, kind in (
        (entries[0], ProviderRefused),
        ({"error": "refused"}, ProviderRefused),
        ({"error": "away"}, ProviderAway),
    ):
        path.write_text(json.dumps([entry]))
        with pytest.raises(kind):
            await generated(model)


@pytest.mark.parametrize("content", [None, "{", "{}", "[1]"])
async def test_a_script_that_is_none_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Rejected, match="write a JSON list"):
        await generated(ScriptedModel.of_file(path))
