"""Packs: immutable blobs that hold all content of one step.

Layout: 32 random bytes, magic, version, length of the index, index (names and lengths, JSON), bodies. The id is the
BLAKE3 of the whole: it proves integrity, and once the pack is gone nothing of the content can be guessed from it.
"""

from __future__ import annotations

import json
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from blake3 import blake3
from google.protobuf.message import DecodeError, Message

from services.kernel.blobs import BlobStore
from services.kernel.errors import Corrupt

_MAGIC = b"AFPK"
_VERSION = 1
_SALT_BYTES = 32
_HEAD = struct.Struct(">4sHI")


@dataclass(frozen=True, slots=True)
class PackRef:
    """Reference to a pack.

    Attributes:
        id: BLAKE3 of the pack, 32 bytes.
        size_bytes: Its size.
    """

    id: bytes
    size_bytes: int


def build(parts: Mapping[str, bytes], salt: bytes) -> bytes:
    """Lay parts out as a pack.

    Args:
        parts: Bodies by name.
        salt: 32 random bytes.

    Returns:
        The pack.
    """
    index = json.dumps([[name, len(body)] for name, body in parts.items()]).encode()
    return b"".join((salt, _HEAD.pack(_MAGIC, _VERSION, len(index)), index, *parts.values()))


def parse(pack: bytes) -> dict[str, bytes]:
    """Take a pack apart.

    Args:
        pack: Whole pack.

    Returns:
        Bodies by name.

    Raises:
        ValueError: When it isn't one.
    """
    try:
        magic, version, index_bytes = _HEAD.unpack_from(pack, _SALT_BYTES)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError("not a pack of version 1")
        at = _SALT_BYTES + _HEAD.size
        index = json.loads(pack[at : at + index_bytes])
        at += index_bytes
        parts = {}
        for name, size in index:
            parts[name] = pack[at : at + size]
            at += size
    except (struct.error, TypeError) as error:
        raise ValueError("not a pack") from error
    if at != len(pack):
        raise ValueError("lengths don't add up")
    return parts


def read_part(message: Message, parts: Mapping[str, bytes], name: str) -> None:
    """Read a part that holds one protobuf message.

    Args:
        message: Filled in.
        parts: Bodies by name.
        name: Of the part.

    Raises:
        ValueError: When the part is missing or unreadable.
    """
    if name not in parts:
        raise ValueError(f"part {name!r} is missing")
    try:
        message.ParseFromString(parts[name])
    except DecodeError as error:
        raise ValueError(f"part {name!r} can't be read") from error


def pack_id(pack: bytes) -> bytes:
    """Content id of a pack, 32 bytes."""
    return blake3(pack).digest()


class PackStore:
    """Writes and reads packs below prefixes such as `crate/thing/1/step`."""

    def __init__(self, *, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def write(self, prefix: str, parts: Mapping[str, bytes]) -> PackRef:
        """Store a pack; when it returns, the pack is on disk.

        Args:
            prefix: Where it belongs; erasing a prefix removes all below it.
            parts: Bodies by name.

        Returns:
            Its reference.

        Raises:
            Unavailable: When the store can't write, for example on a full disk.
        """
        pack = build(parts, secrets.token_bytes(_SALT_BYTES))
        ref = PackRef(pack_id(pack), len(pack))
        await self._blobs.put(f"{prefix}/{ref.id.hex()}", pack)
        return ref

    async def read(self, prefix: str, ref_id: bytes) -> dict[str, bytes]:
        """Read a pack and check it against its id.

        Args:
            prefix: Where it was written.
            ref_id: Its id, 32 bytes.

        Returns:
            Bodies by name.

        Raises:
            NotFound: When there is none.
            Corrupt: When it isn't what was written.
        """
        name = f"{prefix}/{ref_id.hex()}"
        pack = await self._blobs.get(name)
        if pack_id(pack) != ref_id:
            raise Corrupt(f"pack {name} isn't what was written: ingest its document again, see `affidavit doctor`")
        try:
            return parse(pack)
        except ValueError as error:
            raise Corrupt(f"pack {name} can't be taken apart: {error}") from error

    async def ids(self, prefix: str) -> tuple[bytes, ...]:
        """Ids of the packs right below a prefix: for work that was interrupted before its event was appended.

        Args:
            prefix: Where they were written.

        Returns:
            32 bytes each, sorted; none when there is nothing.
        """
        names = await self._blobs.list_prefix(prefix)
        return tuple(bytes.fromhex(name.rsplit("/", 1)[-1]) for name in names)

    async def remove(self, prefix: str, ref_id: bytes) -> None:
        """Delete one pack that nothing refers to.

        Args:
            prefix: Where it was written.
            ref_id: Its id, 32 bytes; none there is fine.

        Raises:
            Unavailable: When the store can't delete.
        """
        await self._blobs.delete(f"{prefix}/{ref_id.hex()}")

    async def erase(self, prefix: str) -> None:
        """Delete every pack below a prefix, those that a crash left without an event included.

        Args:
            prefix: Where to delete; nothing there is fine.
        """
        await self._blobs.delete_prefix(prefix)
