"""The committed digits corpus is what its manifest says; no synthesiser is needed."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

CORPUS = Path(__file__).parents[2] / "recipes" / "digits" / "corpus"
RATE = 16000
DIGITS = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
SAMPLE = slice(None, None, 23)  # decoding every file would be slow


@pytest.fixture(scope="module")
def lines() -> list[dict]:
    text = (CORPUS / "manifest.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def about() -> dict:
    return json.loads((CORPUS / "corpus.json").read_text())


def test_the_manifest_lists_exactly_the_files_there_are(lines: list[dict]) -> None:
    listed = [line["audio"] for line in lines]
    found = [str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.opus")]
    assert sorted(listed) == sorted(found)
    assert len({line["id"] for line in lines}) == len(lines)


def test_all_of_it_is_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) <= 8_000_000


def test_texts_are_the_words_and_the_words_are_in_order(lines: list[dict]) -> None:
    for line in lines:
        words = line["words"]
        assert line["text"] == " ".join(word["word"] for word in words), line["id"]
        assert {word["word"] for word in words} <= DIGITS, line["id"]
        assert 1 <= len(words) <= 8, line["id"]
        times = [0.0, *(word[edge] for word in words for edge in ("start", "end"))]
        times.append(line["duration"])
        assert times == sorted(times), line["id"]
        for word in words:
            assert 0.12 <= word["end"] - word["start"] <= 1.2, (line["id"], word)


def test_durations_and_rate_are_those_of_the_decoded_audio(lines: list[dict]) -> None:
    for line in lines[SAMPLE]:
        samples, rate = soundfile.read(CORPUS / line["audio"])
        assert rate == RATE and samples.ndim == 1, line["id"]
        assert len(samples) / RATE == pytest.approx(line["duration"], abs=0.001), line["id"]
        assert np.abs(samples).max() < 0.999, line["id"]


def test_sound_starts_and_ends_with_the_words(lines: list[dict]) -> None:
    """Outside the words there is only the noise floor; each word has sound close to both edges."""
    for line in lines[SAMPLE]:
        samples, _ = soundfile.read(CORPUS / line["audio"])
        speech = np.zeros(len(samples), bool)
        for word in line["words"]:
            start, end = (round(word[edge] * RATE) for edge in ("start", "end"))
            cut = samples[start:end]
            speech[start:end] = True
            loudest = np.abs(cut).max()
            for edge in (cut[: RATE // 25], cut[-RATE // 25 :]):
                assert np.abs(edge).max() > 0.005 * loudest, (line["id"], word)
            assert 10 * np.log10(np.mean(cut**2)) > -40, (line["id"], word)
        # Opus smears sound by a few milliseconds.
        near = np.convolve(speech, np.ones(RATE // 100), "same") > 0.5
        quiet = samples[~near]
        assert np.sqrt(np.mean(quiet**2)) < 0.05 * np.sqrt(np.mean(samples[speech] ** 2)), line[
            "id"
        ]


def test_held_out_speakers_are_held_out(lines: list[dict]) -> None:
    speakers = {
        split: {line["speaker"] for line in lines if line["split"] == split}
        for split in ("train", "valid", "test")
    }
    assert not speakers["test"] & (speakers["train"] | speakers["valid"])
    assert speakers["valid"] <= speakers["train"]
    assert len({line["voice"] for line in lines}) >= 10
    assert len(speakers["test"]) >= 3
    assert len({line["engine"] for line in lines if line["split"] == "test"}) >= 2


def test_every_voice_says_every_digit_about_equally_often(lines: list[dict]) -> None:
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for line in lines:
        count = counts.setdefault((line["split"], line["voice"]), dict.fromkeys(DIGITS, 0))
        for word in line["words"]:
            count[word["word"]] += 1
    for key, count in counts.items():
        assert max(count.values()) - min(count.values()) <= 1, (key, count)


def test_corpus_json_agrees_with_the_manifest(lines: list[dict], about: dict) -> None:
    for split, total in about["splits"].items():
        there = [line for line in lines if line["split"] == split]
        assert len(there) == total["strings"]
        assert sum(len(line["words"]) for line in there) == total["words"]
        assert sum(line["duration"] for line in there) == pytest.approx(total["seconds"])
    voices = {voice["name"]: voice for voice in about["voices"]}
    assert voices.keys() == {line["voice"] for line in lines}
    for line in lines:
        voice = voices[line["voice"]]
        assert (line["speaker"], line["engine"]) == (voice["speaker"], voice["engine"])
        assert voice["split"] == ("test" if line["split"] == "test" else "train")
