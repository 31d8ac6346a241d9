"""The folder of a run, and what a finished run leaves in it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from asr import evaluation
from asr.data import manifest
from asr.errors import InputError
from asr.inference import bundle
from asr.inference.bundle import Bundle
from asr.inference.transcriber import Transcriber
from asr.inspection.timing import estimate_shift
from asr.training.data import SpeechData
from asr.types import Seconds, Transcript, Waveform, Word

#: the key of a checkpoint under which a run keeps what resuming it needs
RUN_KEY = "asr_run"


class RunFolder:
    """Where a run keeps everything: ``config.yaml``, ``checkpoints/``, ``tensorboard/``,
    ``log.jsonl``; and once it is finished ``bundle/`` and ``report.json``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best.ckpt"
        self.last = self.checkpoints / "last.ckpt"
        self.log = path / "log.jsonl"
        self.bundle = path / "bundle"
        self.report = path / "report.json"

    @property
    def chosen(self) -> Path:
        """The checkpoint that a bundle is made of: the best, or the last where none was validated.

        Raises InputError where there is neither.
        """
        for path in (self.best, self.last):
            if path.is_file():
                return path
        raise InputError(f"{self.path}: no checkpoints/{self.best.name} in it; not a run's folder?")

    def made(self) -> Bundle:
        """The bundle of the chosen checkpoint, with what was measured of it where it was.

        Raises InputError where there is no checkpoint, or none that can be read.
        """
        chosen = bundle.from_checkpoint(self.chosen)
        if not self.bundle.is_dir():
            return chosen
        finished = bundle.load(self.bundle)
        own, theirs = chosen.model.state_dict(), finished.model.state_dict()
        same = own.keys() == theirs.keys() and all(
            torch.equal(tensor, theirs[name]) for name, tensor in own.items()
        )
        return finished if same else chosen  # a run that was resumed has other weights by now

    def refuse_another(self) -> None:
        """InputError where something is there already: a run begins in a folder of its own."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            remedy = (
                f"resume it with --resume={self.path}, or choose another --name"
                if self.last.is_file()
                else "choose another --name, or delete it: it has no checkpoint to go on from"
            )
            raise InputError(f"{self.path}: a run is there already; {remedy}")

    def make(self) -> None:
        """Create it, or say in one line why that cannot be."""
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror})") from None


def checkpoint_of(path: Path) -> Path:
    """The checkpoint that ``--resume`` means: a file, or a run folder's newest."""
    found = RunFolder(path).last if path.is_dir() else path
    if not found.is_file():
        raise InputError(f"{found}: no such checkpoint; give one, or the folder of a run")
    return found


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint of ours, read without running anything in it; InputError if it is none."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(f"{path}: not a checkpoint that can be read ({reason})") from None
    if not isinstance(content, dict) or not isinstance(content.get(RUN_KEY), dict):
        raise InputError(f"{path}: not a checkpoint of `asr train`")
    return content


def evaluate(transcriber: Transcriber, data: SpeechData) -> dict[str, Any]:
    """Transcribe the test sets (the validation set where there is none) and score them by id.

    ``wer``, ``substitutions`` ... of all sets together, and the same under ``sets`` for each, with
    ``onsets`` (:class:`asr.evaluation.OnsetReport`) where the manifest says when words begin.
    """
    loaders = dict(zip(data.test, data.test_dataloader(), strict=True)) or {
        "validation": data.val_dataloader()
    }
    references: dict[str, str] = {}
    texts: dict[str, str] = {}
    sets = []
    for name, loader in loaders.items():
        own, done = _transcribed(transcriber, loader)
        theirs = {t.id: t.text for t in done}
        onsets = {}
        if truth := _truth([name] if name in data.test else data.validation):
            heard = {t.id: [(w.word, w.start) for w in t.words] for t in done}
            onsets = {"onsets": evaluation.onset_errors(truth, heard).to_json()}
        sets.append({"set": name, **_figures(own, theirs), **onsets})
        references |= {f"{name}:{id}": text for id, text in own.items()}
        texts |= {f"{name}:{id}": text for id, text in theirs.items()}
    return {**_figures(references, texts), "sets": sets}


def onset_shift(transcriber: Transcriber, data: SpeechData) -> Seconds:
    """How much later than the sound this model attends, measured on the validation set.

    Over the words of utterances without an error; 0 where no word's time is known.
    """
    truth = _truth(data.validation)
    if not truth:
        return 0.0
    _, done = _transcribed(transcriber, data.val_dataloader())
    found: list[Word] = []
    known: list[Seconds] = []
    for transcript in done:
        said = truth.get(transcript.id, [])
        if [word for word, _ in said] == [w.word for w in transcript.words]:
            found += transcript.words
            known += [start for _, start in said]
    return round(estimate_shift(found, known), 4)


def _transcribed(
    transcriber: Transcriber, loader: DataLoader
) -> tuple[dict[str, str], list[Transcript]]:
    """References by id, and what the model made of them."""
    references: dict[str, str] = {}
    done: list[Transcript] = []
    for batch in loader:
        references |= dict(zip(batch.ids, batch.references, strict=True))
        done += transcriber(
            [
                Waveform(wave[: int(length)], transcriber.sample_rate, id)
                for id, wave, length in zip(batch.ids, batch.waves, batch.wave_lengths, strict=True)
            ]
        )
    return references, done


def _truth(paths: Sequence[str]) -> dict[str, list[tuple[str, Seconds]]]:
    """Words and their onsets by id, of utterances that have them."""
    utterances = [u for path in paths for u in manifest.read(path)]
    return {u.id: [(w.word, w.start) for w in u.words] for u in utterances if u.words}


def _figures(references: Mapping[str, str], hypotheses: Mapping[str, str]) -> dict[str, Any]:
    report = evaluation.score(references, hypotheses)
    names = ("wer", "substitutions", "deletions", "insertions", "reference_words", "cer", "ser")
    figures = {name: getattr(report, name) for name in names}
    return {**figures, "utterances": len(references)}


def finish(
    folder: RunFolder,
    data: SpeechData,
    *,
    device: torch.device,
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Evaluate the chosen checkpoint, write ``bundle/`` and ``report.json``; the report."""
    chosen = bundle.from_checkpoint(folder.chosen)
    shift = onset_shift(Transcriber(chosen, device=str(device)), data)
    chosen = replace(chosen, settings=replace(chosen.settings, onset_shift=shift))
    transcriber = Transcriber(chosen, device=str(device))
    results = evaluate(transcriber, data)
    options = transcriber.search.resolve(has_ctc=chosen.model.ctc is not None)
    facts = {
        **facts,
        "commit": commit(),
        "machine": f"{platform.machine()}, {device.type}",
        "python": platform.python_version(),
    }
    card = {
        **chosen.card,
        "results": results["sets"],
        **{key: value for key, value in facts.items() if value not in (None, "")},
    }
    bundle.save(
        folder.bundle,
        chosen.model.cpu(),
        chosen.tokenizer,
        card=card,
        settings=chosen.settings,
        overwrite=True,
    )
    report = {
        "schema": "asr-training/1",
        **results,
        "decoding": asdict(options),
        "onset_shift": shift,
        **facts,
        "torch": torch.__version__,
        "data": data.describe(),
    }
    folder.report.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return report


def commit() -> str:
    """The commit of the source that runs, with ``-dirty`` for changed files; empty if unknown."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
