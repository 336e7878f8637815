"""The packaged model itself: files, numbers, windows, determinism."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from services.embedder.adapters.model_onnx import MODEL_SHA256, TOKENIZER_SHA256, ModelFiles, OnnxModel
from services.embedder.domain.models import Purpose
from services.embedder.domain.vectors import unit_rows
from services.embedder.main import check_model
from services.embedder.scheduler import BatchScheduler
from services.kernel.errors import Corrupt, Unavailable

LONG = " ".join(f"Section {number} says how valve {number} is opened and closed again." for number in range(60))
TEXTS = (
    "a",
    "How do I annotate a variable?",
    "Variable annotations were added in Python 3.6; the syntax is described in PEP 526.",
    "The pump is serviced twice a year. " * 12,
    "日本語の文書も検索できます。",
    "Zażółć gęślą jaźń \U0001f600 naïve",
    LONG,
    "PEP 440",
)


async def open_model(threads: int = 2, overlap_tokens: int = 32) -> OnnxModel:
    return await OnnxModel.open(files=ModelFiles.installed(), threads=threads, overlap_tokens=overlap_tokens)


@pytest.fixture(scope="module")
def model() -> Iterator[OnnxModel]:
    opened = asyncio.run(open_model())
    yield opened
    asyncio.run(opened.close())


async def vectors(model: OnnxModel, *texts: str) -> NDArray[np.float32]:
    return unit_rows(await model.embed(texts, Purpose.DOCUMENT), count=len(texts), dimension=384)


async def test_related_texts_are_closer_than_unrelated_ones(model: OnnxModel) -> None:
    question, answer, other = await vectors(model, TEXTS[1], TEXTS[2], TEXTS[3])
    assert question @ answer > 0.5
    assert question @ answer > question @ other + 0.3


async def test_numbers_agree_with_the_reference_within_int8_weights(model: OnnxModel) -> None:
    # Measured with the fp32 weights of sentence-transformers on the same tokens and pooling.
    first, second = await vectors(model, "The cat sits on the mat.", "A cat is sitting on a rug.")
    assert float(first @ second) == pytest.approx(0.76888, abs=0.004)
    assert first[:5] == pytest.approx([0.13418, -0.03290, -0.02480, 0.04144, -0.03635], abs=0.004)


async def test_a_text_has_the_same_bits_alone_and_in_any_company(model: OnnxModel) -> None:
    alone = np.concatenate([await vectors(model, text) for text in TEXTS])
    together = await vectors(model, *TEXTS)
    assert together.tobytes() == alone.tobytes()
    backwards = await vectors(model, *reversed(TEXTS))
    assert backwards[::-1].tobytes() == alone.tobytes()


async def test_bits_don_t_depend_on_threads_or_neighbours(model: OnnxModel) -> None:
    alone = await vectors(model, *TEXTS)
    other = await open_model(threads=1)
    assert (await vectors(other, *TEXTS)).tobytes() == alone.tobytes()
    await other.close()
    scheduler = BatchScheduler(model=model)
    crowd = await asyncio.gather(*(scheduler.embed(TEXTS, Purpose.DOCUMENT) for _ in range(4)))
    assert {rows.tobytes() for rows in crowd} == {alone.tobytes()}


def test_fits_counts_the_model_s_own_tokens(model: OnnxModel) -> None:
    # 254 words and the two special tokens are 256; one Hangul syllable may be three tokens.
    texts = ["a " * 254, "a " * 255, "a" * 254, "한 " * 100, "文" * 254, "文" * 255, ""]
    assert list(model.fits(texts)) == [True, False, True, False, True, False, True]


async def test_text_beyond_the_limit_still_counts(model: OnnxModel) -> None:
    start = "The pump is serviced twice a year. " * 60
    plain, ended = await vectors(model, start, start + "Penguins breed in Antarctica. " * 30)
    (penguins,) = await vectors(model, "Penguins breed in Antarctica.")
    assert ended @ penguins > plain @ penguins + 0.1


async def test_every_window_weighs_by_its_tokens(model: OnnxModel) -> None:
    text = " ".join("word" for _ in range(300))
    halves = await model.embed([" ".join("word" for _ in range(166))], Purpose.DOCUMENT)
    whole = await model.embed([text], Purpose.DOCUMENT)
    # 300 tokens make two windows of 166 equal ones: their mean is the vector of one.
    assert np.allclose(whole, halves, atol=1e-6)


async def test_empty_text_and_odd_characters_give_vectors(model: OnnxModel) -> None:
    found = await vectors(model, "", "\x00\ufffd", "\u202e\ufeff", "🀀" * 300)
    assert np.isfinite(found).all()


async def test_fingerprint_covers_what_changes_the_numbers(model: OnnxModel) -> None:
    other = await open_model(threads=1, overlap_tokens=16)
    same = await open_model(threads=1)
    assert other.fingerprint != model.fingerprint
    assert same.fingerprint == model.fingerprint
    assert len(model.fingerprint) == 64
    await other.close()
    await same.close()


def damaged(tmp_path: Path) -> Path:
    content = bytearray(ModelFiles.installed().weights.read_bytes())
    content[1_000_000] ^= 1
    wrong = tmp_path / "model.onnx"
    wrong.write_bytes(content)
    return wrong


async def test_a_wrong_file_is_refused_by_name_and_digests(tmp_path: Path) -> None:
    wrong = damaged(tmp_path)
    with pytest.raises(Corrupt) as refused:
        await OnnxModel.open(files=ModelFiles.installed(wrong), threads=1, overlap_tokens=32)
    message = str(refused.value)
    assert str(wrong) in message
    assert f"must be {MODEL_SHA256} and is " in message
    assert message.count(MODEL_SHA256) == 1


async def test_a_wrong_tokenizer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    files = ModelFiles(ModelFiles.installed().weights, tmp_path / "tokenizer.json")
    with pytest.raises(Corrupt, match=TOKENIZER_SHA256):
        await OnnxModel.open(files=files, threads=1, overlap_tokens=32)


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"none\.onnx can't be read: No such file"):
        await OnnxModel.open(files=ModelFiles.installed(tmp_path / "none.onnx"), threads=1, overlap_tokens=32)


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        Unavailable, match=r"onnxruntime or tokenizers is missing: install affidavit-server\[embedded\]"
    ):
        await open_model()
    monkeypatch.setattr("services.embedder.adapters.model_onnx._PACKAGE", "no_such_package")
    with pytest.raises(Unavailable, match="package no_such_package isn't installed"):
        ModelFiles.installed()


def test_doctor_s_check_sees_a_wrong_file_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_model(tmp_path) == ""
    monkeypatch.setenv("AFFIDAVIT_EMBEDDER_MODEL_FILE", str(damaged(tmp_path)))
    assert "is not the file of all-MiniLM-L6-v2-int8" in check_model(tmp_path)
    monkeypatch.setenv("AFFIDAVIT_EMBEDDER_MODEL", "constant-384")
    assert check_model(tmp_path) == ""
