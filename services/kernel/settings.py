"""Settings of a node: flags over `AFFIDAVIT_*` variables over `<data-dir>/affidavit.toml`."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from services.kernel.credentials import Credentials
from services.kernel.errors import Rejected

CONFIG_FILE = "affidavit.toml"
_PREFIX = "AFFIDAVIT_"


class LayeredSettings(BaseSettings):
    """Settings read from arguments, then the environment, then the file of the data folder.

    Attributes:
        data_dir: Folder of all state.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="ignore", frozen=True)
    data_dir: Path = Path("affidavit-data")

    def __init__(self, **given: Any) -> None:
        """Read all sources.

        Args:
            given: Values that come before the others.

        Raises:
            Rejected: When a source can't be read or a value isn't possible; the message names both.
        """
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise Rejected("; ".join(_explain(problem, given) for problem in error.errors())) from error
        except SettingsError as error:
            raise Rejected(f"settings can't be read: {error}; write tables and lists as JSON in variables") from error
        except tomllib.TOMLDecodeError as error:
            raise Rejected(f"{_file(given)} is not valid TOML: {error}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise Rejected(f"{_file(given)} can't be read: {error}") from error

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
        file = TomlConfigSettingsSource(settings_cls, toml_file=_file(init_settings()))
        return init_settings, env_settings, file


def check_names(folder: Path, known: Collection[str]) -> None:
    """Refuse a settings file that names what doesn't exist.

    Args:
        folder: Data folder.
        known: Names of all settings, of the node and of every role.

    Raises:
        Rejected: When a name is unknown; the message offers the nearest known one.
    """
    file = folder / CONFIG_FILE
    if not file.is_file():
        return
    for name in tomllib.loads(file.read_text()):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
            raise Rejected(f"{file} names the setting {name!r}, which does not exist: the nearest one is {near}")


def _file(given: dict[str, Any]) -> Path:
    return Path(given.get("data_dir") or os.environ.get(f"{_PREFIX}DATA_DIR") or "affidavit-data") / CONFIG_FILE


def _explain(problem: ErrorDetails, given: dict[str, Any]) -> str:
    name = ".".join(map(str, problem["loc"]))
    variable = f"{_PREFIX}{name.upper()}"
    if name in given:
        place = name
    elif variable in os.environ:
        place = variable
    else:
        place = f"{name} in {_file(given)}"
    return f"{place} can't be {problem['input']!r}: {problem['msg'][:1].lower()}{problem['msg'][1:]}"


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
    stream_replicas: int = Field(default=1, ge=1, le=5)
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
