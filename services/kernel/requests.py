"""What no request may hold, whatever it asks for: enum numbers that stand for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

from services.kernel.errors import Rejected


def check_enums(request: Message) -> None:
    """Refuse an enum number that is unknown, or 0 where leaving the field out would say the same.

    Args:
        request: Any message; those within it are looked at too.

    Raises:
        Rejected: Naming the field and what may stand there.
    """
    if not _has_enums(request.DESCRIPTOR):
        return
    for path, field, enum, number in _values(request, ""):
        allowed = [value.name for value in enum.values if value.number]
        known = number in enum.values_by_number
        # A field with presence, or an entry of a list, that is there and says nothing contradicts itself.
        explicit = field.is_repeated or field.has_presence
        if not known or (number == 0 and explicit):
            said = "unknown" if not known else "given as unspecified, which says nothing: leave it out"
            raise Rejected(f"{path} {number} is {said}; use one of {', '.join(allowed)}")


def _values(message: Message, before: str) -> Iterator[tuple[str, FieldDescriptor, EnumDescriptor, int]]:
    """Enum fields that are set, with their paths."""
    for field, value in message.ListFields():
        path = f"{before}{field.name}"
        items: Any = value if field.is_repeated else (value,)
        if field.enum_type is not None:
            for item in items:
                yield path, field, field.enum_type, item
        elif field.message_type is not None and _has_enums(field.message_type):
            for item in items:
                yield from _values(item, f"{path}.")


@cache
def _has_enums(descriptor: Descriptor) -> bool:
    """Whether a message or one within it has an enum field: most have none, and aren't looked at."""
    seen, waiting = set(), [descriptor]
    while waiting:
        here = waiting.pop()
        seen.add(here.full_name)
        for field in here.fields:
            if field.enum_type is not None:
                return True
            # Entries of a map aren't messages of their own, and none of ours holds an enum.
            entry = field.message_type is not None and field.message_type.GetOptions().map_entry
            if field.message_type is not None and not entry and field.message_type.full_name not in seen:
                waiting.append(field.message_type)
    return False
