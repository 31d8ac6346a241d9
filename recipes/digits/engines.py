"""Say single words with Debian's speech synthesisers and cut each to its real start and end."""

import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from voices import Voice

RATE = 16000
FRAME = RATE // 200  # 5 ms, the grain of the trimming
TRIM_DB = 40.0  # a frame this far below the loudest one counts as silence
ESPEAK_WPM = 150
VOWELS = frozenset("aeiouEO")
SPAN_BEFORE, SPAN_AFTER = 0.02, 0.03  # sound spills this much over festival's phone times
FESTIVAL_SAVE = """
(define (save utt path)
  (utt.synth utt)
  (utt.save.wave utt path 'riff)
  (format t "SPAN %f %f\\n"
    (item.feat (utt.relation.first utt 'Segment) "end")
    (item.feat (item.prev (utt.relation.last utt 'Segment)) "end")))"""
CONTOURS = {".": (1.08, 0.86), ",": (1.0, 1.0), "?": (0.95, 1.2)}  # pitch at start and end


@dataclass(frozen=True)
class Rendition:
    """How one word is to be said."""

    word: str
    rate: float  # speed, 1 = the engine's own
    semitones: float  # pitch shift
    ending: str  # "." falls, "," stays, "?" rises
    size: float  # vocal tract length: pitch and formants go down as it goes up
    seed: int  # for the engines whose phone durations we set ourselves


def versions(voices: Sequence[Voice]) -> dict[str, str]:
    """The installed version of every Debian package the voices need."""
    found = {}
    for package in sorted({v.package for v in voices} | {v.engine for v in voices}):
        try:
            query = subprocess.run(
                ["dpkg-query", "-W", "-f", "${Version}", package],
                capture_output=True,
                text=True,
            )
        except FileNotFoundError:
            raise SystemExit("dpkg-query not found: this script needs Debian's packages") from None
        if query.returncode or not query.stdout:
            raise SystemExit(f"{package} is not installed: apt-get install {package}")
        found[package] = query.stdout
    return found


def say(voice: Voice, renditions: Sequence[Rendition]) -> list[np.ndarray]:
    """The words, 16 kHz mono float, each trimmed to its sound."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{i}.wav") for i in range(len(renditions))]
        if voice.engine == "festival":
            spans = _festival(voice, renditions, paths)
        else:
            command = _espeak if voice.engine == "espeak-ng" else _flite
            for rendition, path in zip(renditions, paths, strict=True):
                _run([*command(voice, rendition), str(path)], voice)
            spans = [(0.0, np.inf)] * len(paths)
        return [
            _trim(_load(path, span, rendition.size))
            for rendition, path, span in zip(renditions, paths, spans, strict=True)
        ]


def _run(command: list[str], voice: Voice) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode or "ERROR" in done.stderr:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
        raise SystemExit(f"{voice.name}: {command[0]} failed: {reason}")
    return done.stdout


def _espeak(voice: Voice, r: Rendition) -> list[str]:
    pitch = round(np.clip(50 + 6 * r.semitones, 0, 99))
    speed = round(ESPEAK_WPM * r.rate)
    text = r.word + r.ending
    return ["espeak-ng", "-v", voice.handle, "-s", str(speed), "-p", str(pitch), text, "-w"]


def _flite(voice: Voice, r: Rendition) -> list[str]:
    return [
        "flite", "-voice", voice.handle,
        "--setf", f"duration_stretch={1 / r.rate:.4f}",
        "--setf", f"int_f0_target_mean={_pitch(voice, r):.2f}",
        "-t", r.word + r.ending, "-o",
    ]  # fmt: skip


def _festival(
    voice: Voice, renditions: Sequence[Rendition], paths: Sequence[Path]
) -> list[tuple[float, float]]:
    """One festival process says all the words, for its start-up takes longer than a word.

    Returns when each word's phones start and end: the pauses of some recorded voices are too noisy
    to be told from speech by loudness.
    """
    lines = [FESTIVAL_SAVE, f"(voice_{voice.handle})"]
    if voice.method == "hts":
        lines.append("(set! voice_params hts_engine_params)")
    for r, path in zip(renditions, paths, strict=True):
        spoken = voice.words[r.word] if voice.words else r.word
        if voice.method == "phones":
            utterance = f"(Utterance Segments ({_segments(voice, r, spoken)}))"
        else:
            utterance = f'(Utterance Text "{spoken}{r.ending}")'
        if voice.method == "hts":
            lines.append(
                "(set! hts_engine_params (append voice_params"
                f' \'(("-r" {r.rate:.4f}) ("-fm" {r.semitones:.3f}))))'
            )
        elif voice.method == "text":
            lines.append(f"(Parameter.set 'Duration_Stretch {1 / r.rate:.4f})")
            lines.append(
                f"(set! int_lr_params '((target_f0_mean {_pitch(voice, r):.2f})"
                " (target_f0_std 14) (model_f0_mean 170) (model_f0_std 34)))"
            )
        lines.append(f'(save {utterance} "{path}")')
    script = paths[0].with_name("say.scm")
    script.write_text("\n".join(lines))
    report = [line.split() for line in _run(["festival", "-b", str(script)], voice).splitlines()]
    times = [(float(line[1]), float(line[2])) for line in report if line[:1] == ["SPAN"]]
    return [(max(0.0, start - SPAN_BEFORE), end + SPAN_AFTER) for start, end in times]


def _segments(voice: Voice, r: Rendition, spoken: str) -> str:
    """Phones with durations and pitch targets, as festival's Segments utterances want them."""
    rng = np.random.default_rng(r.seed)
    choices = spoken.split("|")
    phones = choices[rng.integers(len(choices))].split()
    start, end = CONTOURS[r.ending]
    silence = "pau" if voice.handle.startswith(("telugu", "msu")) else "#"
    parts = [f"({silence} 0.2)"]
    usual = [0.15 if phone[0] in VOWELS else 0.09 for phone in phones]
    if phones[-1][0] in VOWELS:
        usual[-1] = 0.22  # an open last syllable is drawn out: "two", "three", "zero"
    shapes = np.linspace(start, end, len(phones))
    for phone, length, shape in zip(phones, usual, shapes, strict=True):
        seconds = length / r.rate * rng.uniform(0.8, 1.2)
        parts.append(f"({phone} {seconds:.4f} (0 {shape * _pitch(voice, r):.2f}))")
    return " ".join([*parts, f"({silence} 0.2)"])


def _pitch(voice: Voice, r: Rendition) -> float:
    return voice.f0 * 2 ** (r.semitones / 12)


def _load(path: Path, span: tuple[float, float], size: float) -> np.ndarray:
    samples, rate = soundfile.read(path, dtype="float32")
    start, end = (round(min(t, len(samples) / rate) * rate) for t in span)
    return soxr.resample(samples[start:end], rate / size, RATE)


def _trim(samples: np.ndarray) -> np.ndarray:
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    power = np.mean(frames**2, axis=1)
    loud = np.flatnonzero(power > power.max() * 10 ** (-TRIM_DB / 10))
    return samples[loud[0] * FRAME : (loud[-1] + 1) * FRAME]
