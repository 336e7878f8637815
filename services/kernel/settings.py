"""Settings of a node: flags over `AFFIDAVIT_*` variables over `<data-dir>/affidavit.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from services.kernel.credentials import Credentials

CONFIG_FILE = "affidavit.toml"


class LayeredSettings(BaseSettings):
    """Settings read from arguments, then the environment, then the file of the data folder.

    Attributes:
        data_dir: Folder of all state.
    """

    model_config = SettingsConfigDict(env_prefix="AFFIDAVIT_", extra="ignore", frozen=True)
    data_dir: Path = Path("affidavit-data")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (fixed by the library; no .env file is read)
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (credentials are read at use instead)
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order of the sources."""
        given: dict[str, Any] = init_settings() | {}
        folder = Path(given.get("data_dir") or env_settings().get("data_dir") or "affidavit-data")
        file = TomlConfigSettingsSource(settings_cls, toml_file=folder / CONFIG_FILE)
        return init_settings, env_settings, file


class NodeSettings(LayeredSettings):
    """What every role of a node needs.

    Attributes:
        nats_url: Log.
        postgres_dsn: Tables.
        listen: Address that this process serves on.
        addresses: Address by role; a role that isn't listed is expected at `listen`.
        stream_replicas: Copies of each stream, 3 in a cluster.
        blobs_dir: Folder of packs; below the data folder by default.
        log_level: Lowest level shown.
    """

    nats_url: str = "nats://127.0.0.1:4222"
    postgres_dsn: str = "postgresql://postgres@127.0.0.1:5432/postgres"
    listen: str = "127.0.0.1:7401"
    addresses: dict[str, str] = {}
    stream_replicas: int = 1
    blobs_dir: Path | None = None
    log_level: str = "warning"

    @property
    def blobs(self) -> Path:
        """Folder of packs."""
        return self.blobs_dir or self.data_dir / "blobs"


class ProviderSettings(LayeredSettings):
    """What the operator allows the owners of crates to name, for those roles that check or call providers.

    Attributes:
        allow_loopback_providers: Whether a provider may be on this machine.
        allow_private_providers: Whether a provider may be in a private network.
        provider_credentials_dir: Folder whose files may be named as credentials; `credentials` in the data folder by
            default.
        provider_credential_prefix: Variables that begin so may be named as credentials.
        provider_credential_names: Further variables that may be.
    """

    allow_loopback_providers: bool = False
    allow_private_providers: bool = False
    provider_credentials_dir: Path | None = None
    provider_credential_prefix: str = "AFFIDAVIT_PROVIDER_"
    provider_credential_names: tuple[str, ...] = ()

    @property
    def credentials(self) -> Credentials:
        """What may be named."""
        folder = self.provider_credentials_dir or self.data_dir / "credentials"
        return Credentials(
            folder.absolute(), self.provider_credential_prefix, frozenset(self.provider_credential_names)
        )
