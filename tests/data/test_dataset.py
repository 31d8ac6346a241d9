from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch.utils.data import DataLoader

from asr.data.batching import as_is
from asr.data.dataset import Batches, ManifestDataset, sift
from asr.data.manifest import Utterance, WordTime
from asr.errors import InputError
from asr.text import CharacterTokenizer

RATE = 4000


def utterances(*durations: float) -> list[Utterance]:
    return [Utterance(f"u{i}", Path("none.wav"), d, "x") for i, d in enumerate(durations)]


@pytest.fixture
def many(letters: CharacterTokenizer) -> ManifestDataset:
    durations = np.random.default_rng(1).gamma(4.0, 3.0, 400)
    return ManifestDataset(utterances(*durations.tolist()), letters, RATE)


def padded(batches: Batches, index: int) -> float:
    members = batches.members(index)
    return len(members) * max(batches.dataset.utterances[m].duration for m in members)


def test_an_epoch_has_each_utterance_once_in_bounded_batches(many: ManifestDataset) -> None:
    batches = many.batches(100.0, seed=3)
    for epoch in (0, 1, 7):
        run = range(epoch * len(batches), (epoch + 1) * len(batches))
        assert sorted(m for i in run for m in batches.members(i)) == list(range(400))
        assert max(padded(batches, i) for i in run) <= 100.0
        waste = 1 - sum(u.duration for u in many.utterances) / sum(padded(batches, i) for i in run)
        assert waste < 0.12


def test_an_epoch_depends_on_seed_and_number_alone(many: ManifestDataset) -> None:
    one, other = many.batches(100.0, seed=3), many.batches(100.0, seed=3)
    n = len(one)
    whole = [one.members(i) for i in range(3 * n)]
    assert [other.members(i) for i in range(2 * n + 5, 3 * n)] == whole[2 * n + 5 :]
    assert whole[:n] != whole[n : 2 * n]
    assert {frozenset(b) for b in whole[:n]} != {frozenset(b) for b in whole[n : 2 * n]}
    different = many.batches(100.0, seed=4)
    assert [different.members(i) for i in range(n)] != whole[:n]


def test_short_ones_first_for_one_epoch(many: ManifestDataset) -> None:
    batches = many.batches(100.0, seed=3, short_first=True)
    n = len(batches)
    lengths = [padded(batches, i) / len(batches.members(i)) for i in range(2 * n)]
    assert all(lengths[i] <= 1.15 * min(lengths[i:n]) for i in range(n))  # but for a bucket's own
    assert lengths[n] > min(lengths[n:])
    assert sorted(m for i in range(n) for m in batches.members(i)) == list(range(400))
    usual = many.batches(100.0, seed=3)
    assert [usual.members(i) for i in range(n, 2 * n)] == [
        batches.members(i) for i in range(n, 2 * n)
    ]


def test_without_a_seed_the_longest_come_first(many: ManifestDataset) -> None:
    batches = many.batches(100.0)
    order = [m for i in range(len(batches)) for m in batches.members(i)]
    durations = [many.utterances[m].duration for m in order]
    assert durations == sorted(durations, reverse=True) and len(order) == 400
    with pytest.raises(IndexError):
        batches.members(len(batches))


def test_odd_sets(letters: CharacterTokenizer) -> None:
    def members(*durations: float) -> list[list[int]]:
        batches = ManifestDataset(utterances(*durations), letters, RATE).batches(10.0)
        return [batches.members(i) for i in range(len(batches))]

    assert members(1.0, 30.0, 2.0) == [[1], [2, 0]]  # over the bound: alone
    assert members(0.0, 0.0) == [[0, 1]]
    assert members(5.0, 5.0, 5.0) == [[0, 1], [2]]
    with pytest.raises(InputError, match="no utterances"):
        members()
    with pytest.raises(ValueError, match="seconds must be above 0"):
        ManifestDataset(utterances(1.0), letters, RATE).batches(0.0)


@pytest.fixture
def real(tmp_path: Path, letters: CharacterTokenizer) -> ManifestDataset:
    soundfile.write(tmp_path / "a.wav", np.arange(8000) / 10000, RATE, subtype="FLOAT")
    words = (WordTime("Ann,", 0.1, 0.2), WordTime("hi", 0.3, 0.4))
    return ManifestDataset(
        [
            Utterance("whole", tmp_path / "a.wav", 2.0, "Ann, hi!", words=words),
            Utterance("piece", tmp_path / "a.wav", 0.5, "Hi", start=1.0, end=1.5),
            Utterance("wrong", tmp_path / "a.wav", 0.5, "Hi"),
            Utterance("gone", tmp_path / "gone.wav", 0.5, "Hi"),
        ],
        letters,
        RATE,
    )


def test_items(real: ManifestDataset) -> None:
    whole, piece = real[0], real[1]
    assert whole.text == "ann hi" and [w.word for w in whole.words] == ["ann", "hi"]
    assert len(whole.wave) == 8000
    torch.testing.assert_close(piece.wave, whole.wave[4000:6000])
    batch = real.collate([whole, piece])
    assert batch.waves.shape == (2, 8000) and batch.wave_lengths.tolist() == [8000, 2000]
    assert batch.references == ("ann hi", "hi") and batch.ids == ("whole", "piece")
    assert batch.token_times is not None
    torch.testing.assert_close(batch.token_times[0, 4], torch.tensor([0.3, 0.4]))
    assert batch.token_times[1, :2].isnan().all()
    with pytest.raises(InputError, match=r"a\.wav: wrong lasts 2\.00 s, its manifest says 0\.50 s"):
        real[2]
    with pytest.raises(InputError, match=r"gone\.wav"):
        real[3]


def test_workers_make_the_same(real: ManifestDataset) -> None:
    dataset = ManifestDataset(real.utterances[:2], real.tokenizer, RATE)
    batches = dataset.batches(2.0, seed=1)
    alone = [batches[i] for i in range(4)]
    loader = DataLoader(batches, batch_size=None, sampler=range(4), num_workers=2, collate_fn=as_is)
    for a, b in zip(alone, loader, strict=True):
        assert a.ids == b.ids and torch.equal(a.waves, b.waves)


def test_what_cannot_be_trained_on_is_named(letters: CharacterTokenizer) -> None:
    texts = {
        "fine": (1.0, "ab"),
        "tight": (0.3, "abb"),
        "doubled": (0.3, "aabb"),
        "many": (0.3, "abcdefgh"),
        "short": (0.05, "a"),
        "long": (31.0, "a"),
        "mute": (1.0, " ?! "),
    }
    given = [Utterance(id, Path("a.wav"), d, text) for id, (d, text) in texts.items()]
    kept, rejected = sift(given, letters, frame_shift=0.06)
    assert [u.id for u in kept] == ["fine", "tight"]
    assert [str(r) for r in rejected] == [
        "doubled: infeasible for CTC (6 frames needed, 5 there)",
        "many: infeasible for CTC (8 frames needed, 5 there)",
        "short: too short (0.05 s, at least 0.1 s)",
        "long: too long (31.00 s, at most 30 s)",
        "mute: no text",
    ]
    assert len(sift(given, letters, frame_shift=0.06, shortest=0.0, longest=40.0)[0]) == 4
