from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from asr.data.augment import Augmentation
from asr.data.batching import as_is
from asr.data.pool import Clip, StringPool
from asr.data.strings import EVEN, Spacing, StringDataset, render
from asr.text import CharacterTokenizer
from asr.types import Batch

RATE = 8000
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SPEAKERS = ["ann", "bob", "cyd"]
STILL = {"noise": 0.0, "room": 0.0, "tilt": 0.0, "mulaw": 0.0, "gain": (0.0, 0.0), "word_gain": 0.0}


def value(speaker: str, word: str) -> float:
    return (1 + 10 * SPEAKERS.index(speaker) + WORDS.index(word)) / 64


@pytest.fixture(scope="module")
def pool() -> StringPool:
    """Words whose every sample tells who says what; a first and a last one mark where."""
    rng = np.random.default_rng(2)
    clips = []
    for speaker in SPEAKERS:
        for word in WORDS * 3:
            samples = np.full(rng.integers(2000, 6000), value(speaker, word), np.float32)
            samples[0] = samples[-1] = 63 / 64  # recordings end here, whatever the gap
            clips.append(Clip(word, speaker, samples, 1, len(samples) - 1))
    return StringPool.of(clips, RATE)


def heard(wave: np.ndarray) -> list[tuple[str, str, float, float]]:
    """Speaker, word, start and end of each constant stretch of an unspoilt wave."""
    names = {value(s, w): (s, w) for s in SPEAKERS for w in WORDS}
    position, found = 0, []
    for level, run in groupby(wave.tolist()):
        length = sum(1 for _ in run)
        if level in names:
            found.append((*names[level], position / RATE, (position + length) / RATE))
        position += length
    return found


def equal(a: Batch, b: Batch) -> bool:
    return all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y
        for x, y in zip(a, b, strict=True)
    )


def test_wordless_strings(pool: StringPool, letters: CharacterTokenizer) -> None:
    plain = StringDataset(pool, letters, batches=20, augmentation=None)
    some = StringDataset(pool, letters, batches=20, augmentation=None, wordless=0.25)
    empty = total = 0
    for index in range(20):
        one, other = plain[index], some[index]
        assert torch.equal(one.wave_lengths, other.wave_lengths)
        for row, text in enumerate(other.references):
            total += 1
            empty += not text
            assert text in ("", one.references[row])
            assert other.target_lengths[row] == len(letters.encode(text))
            assert bool(other.waves[row].any()) == bool(text)
    assert 0.1 < empty / total < 0.4
    noisy = Augmentation(**{**STILL, "noise": 1.0, "snr": (0.0, 0.0)})
    all_noise = StringDataset(pool, letters, batches=1, augmentation=noisy, wordless=1.0)[0]
    assert set(all_noise.references) == {""} and all_noise.waves.abs().mean() > 0.01
    with pytest.raises(ValueError, match="wordless must be a share"):
        StringDataset(pool, letters, batches=1, wordless=2.0)


def test_text_times_and_sound_agree(pool: StringPool, letters: CharacterTokenizer) -> None:
    dataset = StringDataset(pool, letters, batches=20, augmentation=None, curriculum=0.0)
    seen = set()
    for index in range(20):
        batch = dataset[index]
        assert batch.token_times is not None
        for row, text in enumerate(batch.references):
            words = heard(batch.waves[row].numpy())
            assert text.split() == [word for _, word, _, _ in words]
            assert len({speaker for speaker, _, _, _ in words}) == 1
            seen.add(words[0][0])
            tokens = letters.encode(text)
            assert batch.targets[row, : len(tokens)].tolist() == tokens
            assert batch.target_lengths[row] == len(tokens)
            expected = [words[0][2:]]
            for letter, (_, first, last) in zip(text, letter_words(text), strict=True):
                expected.append(
                    words[first][2:] if letter != " " else (words[last][3], words[first][2])
                )
            times = batch.token_times[row, : len(tokens)]
            torch.testing.assert_close(times, torch.tensor(expected[1:]), atol=1e-6, rtol=0)
            assert not batch.waves[row, batch.wave_lengths[row] :].any()
    assert seen == set(SPEAKERS)


def letter_words(text: str) -> list[tuple[str, int, int]]:
    """For each letter its word's number; for a space the next word's and the one before's."""
    numbers, word = [], 0
    for letter in text:
        word += letter == " "
        numbers.append((letter, word, word - 1 if letter == " " else word))
    return numbers


def test_times_follow_the_pace(pool: StringPool, letters: CharacterTokenizer) -> None:
    steps = []
    for speaker in SPEAKERS:
        for word in WORDS:
            samples = np.zeros(4000, np.float32)
            samples[1500:2500] = 0.5
            steps.append(Clip(word, speaker, samples, 1500, 2500))
    plan = Augmentation(speed=(0.8, 1.25), speed_share=1.0, word_speed=0.1, **STILL)
    dataset = StringDataset(
        StringPool.of(steps, RATE), letters, batches=4, augmentation=plan, curriculum=0.0
    )
    lengths = []
    for index in range(4):
        batch = dataset[index]
        assert batch.token_times is not None
        for row, text in enumerate(batch.references):
            loud = (batch.waves[row].numpy() > 0.25).astype(int)
            edges = np.flatnonzero(np.diff(loud)) + 1
            spans = edges.reshape(-1, 2) / RATE
            firsts = [i for i, c in enumerate(text) if i == 0 or text[i - 1] == " "]
            np.testing.assert_allclose(batch.token_times[row, firsts], spans, atol=1.5 / RATE)
            lengths += (spans[:, 1] - spans[:, 0]).tolist()
    assert min(lengths) < 0.125 * 0.85 and max(lengths) > 0.125 * 1.15


@pytest.mark.parametrize("most", [0.02, 0.5])
def test_edges_of_words_get_lost(letters: CharacterTokenizer, most: float) -> None:
    """Half of them, by up to ``word_cut`` or a quarter of the word; times are of what is left."""
    samples = np.zeros(4000, np.float32)
    samples[500:3500] = np.linspace(0.25, 0.75, 3000)
    clips = [Clip(word, "ann", samples.copy(), 500, 3500) for word in WORDS]
    plan = Augmentation(speed_share=0.0, word_speed=0.0, word_cut=most, **STILL)
    dataset = StringDataset(
        StringPool.of(clips, RATE), letters, batches=6, augmentation=plan, curriculum=0.0
    )
    lost = []
    for index in range(6):
        batch = dataset[index]
        assert batch.token_times is not None
        for row, text in enumerate(batch.references):
            wave = batch.waves[row].numpy()
            spans = np.flatnonzero(np.diff((wave > 0.2).astype(int))).reshape(-1, 2) + 1
            firsts = [i for i, c in enumerate(text) if i == 0 or text[i - 1] == " "]
            times = batch.token_times[row, firsts]
            np.testing.assert_allclose(times, spans / RATE, atol=1.5 / RATE)
            for start, end in spans:
                first, last = (wave[[start, end - 1]] - 0.25) / 0.5 * 3000
                lost.append((first, 3000 - last))
    cuts = np.array(lost)
    limit = min(most * RATE, 750)
    assert cuts.max() <= limit + 2 and (cuts.max(axis=0) > 0.8 * limit).all()
    assert np.abs((cuts < 2).mean(axis=0) - 0.5).max() < 0.1
    assert all(np.array_equal(samples, clip.samples) for clip in clips)


def test_batches_depend_on_seed_and_index_alone(
    pool: StringPool, letters: CharacterTokenizer
) -> None:
    def made(seed: int) -> StringDataset:
        return StringDataset(pool, letters, batches=6, words_per_batch=20, seed=seed)

    one = list(DataLoader(made(3), batch_size=None, collate_fn=as_is))
    several = list(DataLoader(made(3), batch_size=None, num_workers=2, collate_fn=as_is))
    resumed = list(DataLoader(made(3), batch_size=None, sampler=range(4, 6), collate_fn=as_is))
    assert len(one) == 6
    assert all(equal(a, b) for a, b in zip(one, several, strict=True))
    assert all(equal(a, b) for a, b in zip(one[4:], resumed, strict=True))
    assert not equal(one[0], made(4)[0]) and not equal(one[0], one[1])


def test_short_strings_come_first(pool: StringPool, letters: CharacterTokenizer) -> None:
    dataset = StringDataset(pool, letters, batches=100, curriculum=0.5, augmentation=None)
    assert [dataset.longest(i) for i in (0, 7, 8, 49, 50, 99)] == [2, 2, 3, 8, 8, 8]
    longest = [max(len(text.split()) for i in r for text in dataset[i].references)
               for r in (range(7), range(20, 25), range(90, 99))]  # fmt: skip
    assert longest[0] <= 2 < longest[1] < longest[2] == 8
    assert StringDataset(pool, letters, batches=9, max_words=1, curriculum=1.0).longest(0) == 1
    assert StringDataset(pool, letters, batches=9, curriculum=0.0).longest(0) == 8


def test_little_is_padding_and_lengths_are_balanced(
    pool: StringPool, letters: CharacterTokenizer
) -> None:
    dataset = StringDataset(pool, letters, batches=80, curriculum=0.0)
    lengths: Counter[int] = Counter()
    waste, words = [], []
    for index in range(80):
        batch = dataset[index]
        waste.append(1 - batch.wave_lengths.sum().item() / batch.waves.numel())
        counts = [len(text.split()) for text in batch.references]
        words.append(sum(counts))
        lengths.update(counts)
    assert np.mean(waste) < 0.06 and max(waste) < 0.35
    assert min(words) > 45 and max(words) <= 60
    assert set(lengths) == set(range(1, 9))
    assert max(lengths.values()) < 3 * min(lengths.values())


def test_gaps_reach_from_none_to_long(pool: StringPool, letters: CharacterTokenizer) -> None:
    dataset = StringDataset(pool, letters, batches=30, augmentation=None, curriculum=0.0)
    gaps, edges = [], []
    for index in range(30):
        batch = dataset[index]
        for wave, length in zip(batch.waves.numpy(), batch.wave_lengths.tolist(), strict=True):
            words = heard(wave)
            gaps += [b[2] - a[3] for a, b in pairwise(words)]
            edges += [words[0][2], length / RATE - words[-1][3]]
    assert min(gaps) < 0.005 and max(gaps) > 1.1 and 0.1 < np.median(gaps) < 0.4
    assert min(edges) < 0.02 and 0.55 < max(edges) < 0.61
    tight = Spacing(edges=(0.0, 0.0), gaps=((0.2, 0.2),))
    batch = StringDataset(pool, letters, batches=1, spacing=tight, augmentation=None)[0]
    words = heard(batch.waves[-1].numpy())
    assert words[0][2] == pytest.approx(1 / RATE)
    assert all(b[2] - a[3] == pytest.approx(0.2 + 2 / RATE) for a, b in pairwise(words))


def test_rendered_strings(pool: StringPool) -> None:
    one = render(pool, (7, 1), 25, speaker="bob")
    assert len(one.words) == 25 and one.text == " ".join(w.word for w in one.words)
    words = heard(one.samples)
    assert {speaker for speaker, _, _, _ in words} == {"bob"}
    assert [w.word for w in one.words] == [word for _, word, _, _ in words]
    np.testing.assert_allclose([(w.start, w.end) for w in one.words], [w[2:] for w in words])
    gaps = [b[2] - a[3] for a, b in pairwise(words)]
    low, high = EVEN.gaps[0]
    assert low <= min(gaps) and max(gaps) <= high + 2 / RATE + 1e-9
    again = render(pool, (7, 1), 25, speaker="bob")
    assert again.words == one.words and np.array_equal(again.samples, one.samples)
    assert render(pool, (7, 2), 25, speaker="bob").text != one.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"batches": 0},
        {"words_per_batch": 0},
        {"max_words": 0},
        {"curriculum": 1.5},
        {"seed": -1},
    ],
)
def test_wrong_parameters_are_named(
    pool: StringPool, letters: CharacterTokenizer, wrong: dict
) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        StringDataset(pool, letters, **({"batches": 5} | wrong))


def test_wrong_spacing_and_index(pool: StringPool, letters: CharacterTokenizer) -> None:
    for wrong in ({"edges": (0.5, 0.1)}, {"gaps": ((-1.0, 0.0),)}, {"gaps": ()}):
        with pytest.raises(ValueError, match="shortest"):
            Spacing(**wrong)
    with pytest.raises(IndexError):
        StringDataset(pool, letters, batches=2)[2]
