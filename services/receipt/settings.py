"""Settings of the receipt role."""

from __future__ import annotations

from pathlib import Path

from services.kernel.settings import LayeredSettings


class ReceiptSettings(LayeredSettings):
    """What receipt needs beside the node's settings.

    Attributes:
        keys_dir: Folder of the signing key; below the data folder by default.
        receipt_issuer: Origin that the first key is made for, for example "example.org/affidavit"; can't be changed
            later, since receipts state it. Empty: a name made of the key's id.
    """

    keys_dir: Path | None = None
    receipt_issuer: str = ""

    @property
    def keys(self) -> Path:
        """Folder of the signing key."""
        return self.keys_dir or self.data_dir / "keys"
