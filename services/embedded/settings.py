"""Settings of every role, checked before anything is started."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator

from services import topology
from services.kernel import addresses
from services.kernel.errors import Rejected
from services.kernel.settings import LayeredSettings, NodeSettings, check_names


def check(settings: NodeSettings) -> None:
    """Read every role's settings as the role itself will.

    Args:
        settings: The node's.

    Raises:
        Rejected: When a name is unknown or a value is not possible.
    """
    kinds = tuple(_kinds())
    known = set(NodeSettings.model_fields).union(*(kind.model_fields for kind in kinds))
    check_names(settings.data_dir, known)
    for kind in kinds:
        kind(data_dir=settings.data_dir)
    addresses.parse(settings.listen)
    if any(character < " " or "\ud800" <= character <= "\udfff" for character in str(settings.data_dir)):
        # The servers' own settings hold the path as text.
        raise Rejected(f"data folder {settings.data_dir} has a name that can't be written down: choose another one")
    if settings.log_level.upper() not in logging.getLevelNamesMapping():
        raise Rejected(f"log_level can't be {settings.log_level!r}: choose debug, info, warning or error")


def _kinds() -> Iterator[type[LayeredSettings]]:
    for role in topology.ROLE_NAMES:
        module = importlib.import_module(f"services.{role}.settings")
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, LayeredSettings) and found is not LayeredSettings:
                yield found
