"""Source packs in the kernel's pack store."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Final

from services.ingest.codec import content
from services.ingest.domain.documents import Manifest, Pack
from services.ingest.domain.refusals import Refused
from services.ingest.domain.values import SourceAddress
from services.kernel.errors import Corrupt, NotFound
from services.kernel.packs import PackStore

# Puts in flight between their pack and their projection; beyond that the projection reads the pack.
_REMEMBERED = 1_024


class PackSources:
    """See `Sources`."""

    def __init__(self, *, packs: PackStore) -> None:
        self._packs = packs
        self._recent: OrderedDict[bytes, Manifest] = OrderedDict()

    async def write(self, at: SourceAddress, manifest: Manifest, raw: bytes, normalized: bytes) -> Pack:
        """See `Sources`."""
        parts = {content.MANIFEST: content.manifest_bytes(manifest), content.NORMALIZED: normalized, content.RAW: raw}
        ref = await self._packs.write(_prefix(at), parts)
        # The projection asks for this manifest in a moment; reading a whole body back for it would be a waste.
        self._recent[ref.id] = replace(manifest, links=())
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        return Pack(ref.id, ref.size_bytes)

    async def manifest(self, at: SourceAddress, source: Pack) -> Manifest | None:
        """See `Sources`."""
        recent = self._recent.pop(source.id, None)
        if recent is not None:
            return recent
        try:
            return content.manifest_value(await self._part(at, source, content.MANIFEST))
        except (NotFound, Corrupt, Refused):
            # Erased later in the log, or lost: the steps that need the pack report the loss.
            return None

    async def raw(self, at: SourceAddress, source: Pack) -> bytes:
        """See `Sources`."""
        return await self._part(at, source, content.RAW)

    async def intact(self, at: SourceAddress, source: Pack, *, searchable: bool = False) -> bool:
        """See `Sources`."""
        sound = True
        try:
            await self._packs.read(_prefix(at), source.id)
        except (NotFound, Corrupt):
            sound = False
        for step in _LATER_STEPS:
            prefix = f"{at.crate_id}/{at.document_id}/{at.revision}/{step}"
            try:
                held = await self._packs.ids(prefix)
                for pack_id in held:
                    await self._packs.read(prefix, pack_id)
                sound = sound and bool(held or not searchable)
            except Corrupt:
                await self._packs.erase(prefix)
                sound = False
            except NotFound:
                # Erased meanwhile.
                sound = False
        return sound

    async def erase(self, crate_id: str, document_id: str, revision: int, *, whole: bool) -> None:
        """See `Sources`."""
        document = f"{crate_id}/{document_id}"
        if whole:
            await self._packs.erase(document)
            return
        for number in range(1, revision + 1):
            await self._packs.erase(f"{document}/{number}")

    async def write_secret(self, crate_id: str, secret: bytes) -> Pack:
        """See `Sources`."""
        ref = await self._packs.write(_secret_prefix(crate_id), {content.SECRET: secret})
        return Pack(ref.id, ref.size_bytes)

    async def secret(self, crate_id: str, pack: Pack) -> bytes:
        """See `Sources`."""
        parts = await self._packs.read(_secret_prefix(crate_id), pack.id)
        secret = parts.get(content.SECRET, b"")
        if len(secret) != content.SECRET_BYTES:
            raise Corrupt(f"the secret of crate {crate_id} isn't one: restore the blobs folder from a backup")
        return secret

    async def _part(self, at: SourceAddress, source: Pack, name: str) -> bytes:
        parts = await self._packs.read(_prefix(at), source.id)
        if name not in parts:
            raise Corrupt(f"the source pack of {at.document_id} revision {at.revision} has no part {name!r}")
        return parts[name]


# What the chunker and the embedder write below the same revision.
_LATER_STEPS: Final = ("chunks", "vectors")


def _prefix(at: SourceAddress) -> str:
    return f"{at.crate_id}/{at.document_id}/{at.revision}/source"


def _secret_prefix(crate_id: str) -> str:
    return f"{crate_id}/crate/1/secret"
