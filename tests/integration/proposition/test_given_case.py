"""A passage whose propositions come in untidy JSON, one of them unsupported; see tests/unit for the reading alone."""

from __future__ import annotations

import httpx

from tests.integration.proposition.chat_double import Call, rated, reply
from tests.integration.proposition.proposition_world import World

PASSAGE = (
    "The Aldgate depot opened in 1998. It was rebuilt in 2011 after a flood, and since then it stores only dry goods."
)
UNTIDY = """Here is the result for {passage}:
```json
{"propositions": [
  {"text": "The Aldgate depot opened in 1998."},
  {"text": "The Aldgate depot was rebuilt in 2011 after a flood."},
  {"text": "Since 2011 the Aldgate depot stores only dry goods."},
  {"text": "The Aldgate depot is the largest depot in the country."},
],}
```
Tell me if [more] is needed."""


def answer(call: Call) -> httpx.Response:
    if not call.grades:
        return reply(UNTIDY)
    ratings = rated(3)["ratings"] + [rated(1, fidelity=1)["ratings"][0] | {"ordinal": 4}]
    return reply({"ratings": ratings})


async def test_four_items_are_read_with_one_call_and_the_unsupported_one_is_rejected(world: World) -> None:
    world.chat.script = answer
    message = await world.run([PASSAGE])
    assert [call.grades for call in world.chat.calls] == [False, True]
    assert (message.accepted_count, message.rejected_count, message.call_count) == (3, 1, 2)
    (stored,) = await world.stored(message)
    assert [each.accepted for each in stored.propositions] == [True, True, True, False]
    assert stored.propositions[3].text == "The Aldgate depot is the largest depot in the country."
    assert stored.propositions[3].fidelity == 1
    assert not any(each.text.startswith("It ") for each in stored.propositions)
    world.calls()
    again = await world.run([PASSAGE], revision=2)
    assert (world.calls(), again.accepted_count, again.reused_count) == (0, 3, 1)
