from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from asr.errors import InputError
from asr.text import SentencePieceTokenizer
from asr.training.data import Consecutive, ManifestData, SpeechData, StringsData


def manifests(corpus: Path, **options: Any) -> ManifestData:
    path = [str(corpus / "strings.jsonl")]
    given = {"train": path, "validation": path, "sample_rate": 8000, "workers": 0, **options}
    return ManifestData(**given)


def strings(corpus: Path, **options: Any) -> StringsData:
    pool = [str(corpus / "pool.jsonl")]
    path = [str(corpus / "strings.jsonl")]
    return StringsData(**{"pool": pool, "validation": path, "workers": 0, **options})


def test_a_sampler_goes_on_where_the_run_is() -> None:
    position = 0
    sampler = Consecutive(4, lambda: position)
    seen = [list(sampler)]
    for position in (4, 6, 8):  # noqa: B007 (the sampler reads it)
        seen.append(list(sampler))
    assert seen == [[0, 1, 2, 3], [4, 5, 6, 7], [6, 7], [8, 9, 10, 11]]
    assert len(sampler) == 4


@pytest.mark.parametrize("make", [manifests, strings])
def test_validation_covers_each_utterance_once(corpus: Path, make: Any) -> None:
    data: SpeechData = make(corpus, batch_seconds=1.0)
    batches = list(data.val_dataloader())
    assert sorted(id for batch in batches for id in batch.ids) == [f"string{i}" for i in range(4)]
    texts = {id: text for b in batches for id, text in zip(b.ids, b.references, strict=True)}
    assert texts["string2"] == "ba cc ab"
    assert "hours" in data.describe()


def test_training_batches_depend_on_seed_and_position_alone(corpus: Path) -> None:
    def epoch(seed: int, position: int) -> list[Any]:
        data = manifests(corpus, seed=seed, batch_seconds=1.0)
        data.position = position
        torch.manual_seed(position)
        return [batch.ids for batch in data.train_dataloader()]

    assert epoch(1, 0) == epoch(1, 0)
    size = len(epoch(1, 0))
    assert sorted(sum(epoch(1, size), ())) == sorted(sum(epoch(1, 0), ()))
    assert any(epoch(1, 0) != epoch(1, size * n) for n in range(1, 6))
    assert epoch(1, size + 1) == epoch(1, size)[1:]


def test_tokenizers(corpus: Path, tmp_path: Path) -> None:
    assert manifests(corpus).tokenizer.vocabulary_size == 3 + len(" abc")
    assert strings(corpus).tokenizer.vocabulary_size == 3 + len(" abc")
    subwords = manifests(corpus, tokenizer="subwords", vocabulary_size=9).tokenizer
    assert isinstance(subwords, SentencePieceTokenizer) and subwords.vocabulary_size == 9
    subwords.save(tmp_path)
    assert manifests(corpus, tokenizer=str(tmp_path)).tokenizer.fingerprint == subwords.fingerprint
    with pytest.raises(InputError, match="valid: characters, subwords"):
        manifests(corpus, tokenizer="letters")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"validation": []}, "data.validation: a list of one or more"),
        ({"validation": "x.jsonl"}, "data.validation: a list of one or more"),
        ({"train": ["x.jsonl"]}, "data.train: x.jsonl: no such file"),
        ({"test": ["x.jsonl"]}, "data.test: x.jsonl: no such file"),
        ({"batch_seconds": 0.0}, "batch_seconds=0.0"),
        ({"shortest": 3.0, "longest": 2.0}, "shortest"),
        ({"sample_rate": 8}, "sample_rate=8"),
        ({"workers": -1}, "workers=-1"),
    ],
)
def test_bad_options_are_named(corpus: Path, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        manifests(corpus, **options)


def test_strings_need_the_length_of_the_run(corpus: Path) -> None:
    with pytest.raises(InputError, match=r"--trainer\.max_steps"):
        strings(corpus).train_dataloader()
