"""Older events of the log, turned into what this release expects of them.

An event type has one version at a time, in the topology. A change that old bytes can't express by themselves, such as a
field that must be filled, raises the version and adds one function here that turns the version before into it. Fields
are never renamed, re-typed or reused, so old bytes always parse as the present message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from google.protobuf.message import Message

Upcast: TypeAlias = Callable[[Message], None]
# By event name and version: changes a message of that version in place into one of the version after it.
UPCASTS: Mapping[tuple[str, int], Upcast] = {}


def upcast(message: Message, *, version: int, wanted: int, steps: Mapping[tuple[str, int], Upcast] = UPCASTS) -> None:
    """Bring a message up to a version, in place.

    Args:
        message: As its stored bytes parse.
        version: Version that it was written in, from 1.
        wanted: Version that this release reads.
        steps: What turns a version into the one after it.

    Raises:
        ValueError: When the event is newer than this release, or its version never existed.
        KeyError: When a step is missing.
    """
    if not 1 <= version <= wanted:
        raise ValueError(f"schema version {version} of {message.DESCRIPTOR.name} is unknown to this release")
    for number in range(version, wanted):
        steps[message.DESCRIPTOR.name, number](message)
