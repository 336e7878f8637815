"""What no request may hold, whatever it asks for: enum numbers that stand for nothing, times that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from services.kernel.errors import Rejected

_FIRST_S: Final = -62_135_596_800
_LAST_S: Final = 253_402_300_799
_SECOND_NS: Final = 1_000_000_000


def check(request: Message) -> None:
    """Refuse what no request may hold.

    Args:
        request: Any message; those within it are looked at too.

    Raises:
        Rejected: Naming the field and what may stand there.
    """
    check_enums(request)
    check_times(request)


def check_times(request: Message) -> None:
    """Refuse a time outside of the years 1 to 9999, or whose nanoseconds are more than a second.

    Args:
        request: Any message; those within it are looked at too.

    Raises:
        Rejected: Naming the field.
    """
    for path, stamp in _times(request, ""):
        if not (_FIRST_S <= stamp.seconds <= _LAST_S and 0 <= stamp.nanos < _SECOND_NS):
            raise Rejected(
                f"{path} isn't a time between the years 1 and 9999: send seconds since 1970 and nanos of 0 to "
                f"{_SECOND_NS - 1}"
            )


def check_enums(request: Message) -> None:
    """Refuse an enum number that is unknown, or 0 where leaving the field out would say the same.

    Args:
        request: Any message; those within it are looked at too.

    Raises:
        Rejected: Naming the field and what may stand there.
    """
    if not _has(request.DESCRIPTOR, _is_enum):
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
        elif field.message_type is not None and _has(field.message_type, _is_enum):
            for item in items:
                yield from _values(item, f"{path}.")


def _times(message: Message, before: str) -> Iterator[tuple[str, Timestamp]]:
    """Times that are set, with their paths."""
    if not _has(message.DESCRIPTOR, _is_time):
        return
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        items: Any = value if field.is_repeated else (value,)
        for item in items:
            if isinstance(item, Timestamp):
                yield f"{before}{field.name}", item
            else:
                yield from _times(item, f"{before}{field.name}.")


def _is_time(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == Timestamp.DESCRIPTOR.full_name


def _is_enum(field: FieldDescriptor) -> bool:
    return field.enum_type is not None


@cache
def _has(descriptor: Descriptor, wanted: Callable[[FieldDescriptor], bool]) -> bool:
    """Whether a message or one within it has such a field: most have none, and aren't looked at."""
    seen, waiting = set(), [descriptor]
    while waiting:
        here = waiting.pop()
        seen.add(here.full_name)
        for field in here.fields:
            if wanted(field):
                return True
            # Entries of a map aren't messages of their own, and none of ours holds an enum or a time.
            entry = field.message_type is not None and field.message_type.GetOptions().map_entry
            if field.message_type is not None and not entry and field.message_type.full_name not in seen:
                waiting.append(field.message_type)
    return False
