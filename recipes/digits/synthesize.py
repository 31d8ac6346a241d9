"""Make the digits corpus: connected English digits said by Debian's free speech synthesisers.

    python recipes/digits/synthesize.py --out recipes/digits/corpus

Every word is synthesised on its own, trimmed to its sound and placed in a string by this script,
so the manifest knows to the sample when each word starts and ends. The seed fixes the texts, the
renditions asked for and the gaps; the sound itself, and so the word lengths, also depend on the
synthesisers' versions, which corpus.json records.
"""

import argparse
import json
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from engines import RATE, Rendition, say, versions
from voices import DIGITS, LICENCES, VOICES, Voice

SEED = 20
LONGEST = 8  # words in a string; every length from 1 is equally common
TRAIN_RECORDED, TRAIN_FORMANT, VALID, TEST = 24, 8, 2, 48  # strings a voice
WORD_SECONDS = (0.12, 1.2)  # what a digit can reasonably last
OPUS_LEVEL = 0.96  # libsndfile's compression level: 6 kb/s at 1, 256 kb/s at 0


@dataclass(frozen=True)
class Placed:
    """One word in its string, in samples."""

    word: str
    start: int
    end: int

    def described(self) -> dict:
        start, end = (round(t / RATE, 4) for t in (self.start, self.end))
        return {"word": self.word, "start": start, "end": end}


def texts(rng: np.random.Generator, strings: int, first: int) -> list[list[str]]:
    """Random digit strings: lengths cycle from `first`, digits are equally common overall."""
    lengths = rng.permutation((np.arange(strings) + first) % LONGEST + 1)
    total = int(lengths.sum())
    pool = iter(rng.permutation(np.resize(rng.permutation(len(DIGITS)), total)))
    return [[DIGITS[next(pool)] for _ in range(length)] for length in lengths]


def rendition(rng: np.random.Generator, voice: Voice, word: str) -> Rendition:
    """A random way of saying a word; training voices also vary the size of the speaker."""
    return Rendition(
        word=word,
        rate=float(rng.uniform(0.8, 1.25)),
        semitones=float(rng.normal(0, 2)),
        ending=str(rng.choice([".", ",", "?"], p=[0.5, 0.4, 0.1])),
        size=float(rng.uniform(0.9, 1.1)) if voice.split == "train" else 1.0,
        seed=int(rng.integers(2**31)),
    )


def place(
    rng: np.random.Generator, names: list[str], words: list[np.ndarray]
) -> tuple[np.ndarray, list[Placed]]:
    """Lay the words out on a quiet noise floor with random gaps; returns samples and places."""
    gaps = np.where(
        rng.random(len(words)) < 0.2,
        rng.uniform(0, 0.03, len(words)),
        rng.uniform(0.03, 0.4, len(words)),
    )
    gaps[0] = rng.uniform(0.05, 0.4)
    level = rng.uniform(-26, -20)  # of the whole string's speech, dB below full scale
    placed, pieces, now = [], [], 0
    for name, word, gap in zip(names, words, gaps, strict=True):
        silence = round(gap * RATE)
        placed.append(Placed(name, now + silence, now + silence + len(word)))
        gain = 10 ** ((level + rng.uniform(-2, 2)) / 20) / np.sqrt(np.mean(word**2))
        pieces += [np.zeros(silence), faded(word) * min(gain, 0.9 / np.abs(word).max())]
        now = placed[-1].end
    pieces.append(np.zeros(round(rng.uniform(0.05, 0.4) * RATE)))
    samples = np.concatenate(pieces)
    return samples + rng.normal(0, 10 ** (rng.uniform(-80, -65) / 20), len(samples)), placed


def faded(word: np.ndarray, seconds: float = 0.002) -> np.ndarray:
    """The word without a click at either cut."""
    ramp = np.minimum(1, np.arange(1, len(word) + 1) / (seconds * RATE))
    return word * ramp * ramp[::-1]


def strings(
    voice: Voice, split: str, count: int, first: int
) -> Iterator[tuple[np.ndarray, list[Placed]]]:
    """The samples and word places of a voice's strings in one split."""
    rng = np.random.default_rng([SEED, zlib.crc32(f"{voice.name}/{split}".encode())])
    wanted = texts(rng, count, first)
    flat = [rendition(rng, voice, word) for text in wanted for word in text]
    said = iter(say(voice, flat))
    for text in wanted:
        words = [next(said) for _ in text]
        for name, word in zip(text, words, strict=True):
            seconds = len(word) / RATE
            if not WORD_SECONDS[0] <= seconds <= WORD_SECONDS[1]:
                print(f"{voice.name}: {name} lasts {seconds:.2f} s, not {WORD_SECONDS}")
        yield place(rng, text, words)


def encode(path: Path, samples: np.ndarray) -> None:
    """Write Ogg Opus and check that what decodes is as long and not shifted."""
    soundfile.write(path, samples, RATE, format="OGG", subtype="OPUS", compression_level=OPUS_LEVEL)
    decoded, rate = soundfile.read(path)
    if rate != RATE or len(decoded) != len(samples):
        raise SystemExit(f"{path}: decodes to {len(decoded)} samples, not {len(samples)}")
    lag = shift(samples, decoded)
    if abs(lag) > 0.005 * RATE:
        raise SystemExit(f"{path}: decodes {lag / RATE * 1000:.1f} ms late, not within 5 ms")


def shift(a: np.ndarray, b: np.ndarray) -> int:
    """By how many samples b lags a: the peak of their cross-correlation."""
    size = 2 * len(a)
    product = np.fft.irfft(np.conj(np.fft.rfft(a, size)) * np.fft.rfft(b, size))
    peak = int(np.argmax(product))
    return peak if peak < len(a) else peak - size


def plan() -> Iterator[tuple[Voice, str, int]]:
    """Every voice with the splits it speaks in and how many strings it gives each."""
    for voice in VOICES:
        if voice.split == "test":
            yield voice, "test", TEST
        else:
            yield voice, "train", TRAIN_FORMANT if voice.engine == "espeak-ng" else TRAIN_RECORDED
            yield voice, "valid", VALID


def build(out: Path) -> dict:
    """Write the audio and the manifest; returns what corpus.json shall say."""
    found = versions(VOICES)
    totals: dict[str, dict[str, float]] = {}
    lines = []
    for voice, split, count in plan():
        total = totals.setdefault(split, {"strings": 0, "words": 0, "seconds": 0.0})
        (out / split).mkdir(parents=True, exist_ok=True)
        for k, (samples, placed) in enumerate(strings(voice, split, count, int(total["strings"]))):
            audio = f"{split}/{voice.name}-{k:02d}.opus"
            encode(out / audio, samples)
            line = {
                "id": f"{split}-{voice.name}-{k:02d}",
                "audio": audio,
                "duration": round(len(samples) / RATE, 4),
                "text": " ".join(p.word for p in placed),
                "speaker": voice.speaker,
                "split": split,
                "words": [p.described() for p in placed],
                "engine": voice.engine,
                "voice": voice.name,
            }
            lines.append(json.dumps(line))
            total["strings"] += 1
            total["words"] += len(placed)
            total["seconds"] = round(total["seconds"] + line["duration"], 4)
        print(f"{split:5} {voice.name}", flush=True)
    (out / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return {"seed": SEED, "rate": RATE, "packages": found, "splits": totals, "voices": described()}


def described() -> list[dict]:
    """The voices as corpus.json lists them."""
    return [
        {
            "name": v.name,
            "engine": v.engine,
            "voice": v.handle,
            "package": v.package,
            "speaker": v.speaker,
            "split": v.split,
            "licence": LICENCES[v.package],
            "accent": "native English" if v.words is None else "foreign",
        }
        for v in VOICES
    ]


LICENCE = (
    "All voices are from Debian main and may be redistributed. What a recorded voice says is under"
    " the licence of that voice's package, given with each voice; the full terms are in"
    " /usr/share/doc/PACKAGE/copyright."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).parent
    parser.add_argument("--out", type=Path, default=here / "corpus", help="replaced if it exists")
    out = parser.parse_args().out
    if out.exists():
        if not (out / "manifest.jsonl").exists():
            raise SystemExit(f"{out} has no manifest.jsonl: give a new folder or an older corpus")
        shutil.rmtree(out)
    record = build(out) | {"licence": LICENCE}
    (out / "corpus.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
