"""Settings of the embedder role."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from services.kernel.settings import ProviderSettings


class EmbedderSettings(ProviderSettings):
    """What the embedder needs beside the node's settings.

    Attributes:
        embedder_model: Local model: the packaged one, or one that costs nothing, for benchmarks and tests.
        embedder_model_file: Weights of the packaged model, where the package can't be installed.
        embedder_threads: Texts of documents that are computed side by side, each on one thread.
        embedder_window_overlap_tokens: Tokens that neighbouring windows of an over-long text share.
        embedder_documents: Documents in work at once; they take turns at the model.
        embedder_partial_texts: Texts after which a long document's vectors are kept, so that a crash loses no more.
        embed_cache_dir: Folder that keeps vectors across runs. For audits and benchmarks only: erasing a document
            doesn't reach it.
    """

    embedder_model: Literal["all-MiniLM-L6-v2-int8", "constant-384", "hash-384"] = "all-MiniLM-L6-v2-int8"
    embedder_model_file: Path | None = None
    embedder_threads: int = Field(default=2, ge=1, le=64)
    embedder_window_overlap_tokens: int = Field(default=32, ge=0, le=127)
    embedder_documents: int = Field(default=16, ge=1, le=256)
    embedder_partial_texts: int = Field(default=1_024, ge=1, le=100_000)
    embed_cache_dir: Path | None = None
