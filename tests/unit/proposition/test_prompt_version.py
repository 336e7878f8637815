"""The prompts that a generation fixes are those that are sent."""

from services import topology
from services.proposition.domain import prompts


def test_a_new_generation_names_the_prompts_that_are_sent() -> None:
    assert topology.PROMPT_VERSION == prompts.VERSION
