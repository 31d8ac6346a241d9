"""The folder of a run, and what a finished run leaves in it."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.utilities import move_data_to_device

from asr import evaluation
from asr.errors import InputError
from asr.inference import bundle
from asr.nn.las import LAS
from asr.search import SearchOptions, search
from asr.text import Tokenizer
from asr.training.data import SpeechData
from asr.training.validation import decoded

#: the key of a checkpoint under which a run keeps what resuming it needs
RUN_KEY = "asr_run"


class RunFolder:
    """Where a run keeps everything: ``config.yaml``, ``checkpoints/``, ``tensorboard/``,
    ``log.jsonl``; and once it is finished ``bundle/`` and ``report.json``.

    Raises InputError where another run is there already and this one does not resume it.
    """

    def __init__(self, path: Path, *, resuming: bool) -> None:
        if not resuming and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError(
                f"{path}: a run is there already; resume it with --resume={path}, "
                "or choose another --name"
            )
        self.path = path
        self.config = path / "config.yaml"
        self.checkpoints = path / "checkpoints"
        self.log = path / "log.jsonl"
        self.bundle = path / "bundle"
        self.report = path / "report.json"

    def make(self) -> None:
        """Create it, or say in one line why that cannot be."""
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be made ({error.strerror})") from None


def checkpoint_of(path: Path) -> Path:
    """The checkpoint that ``--resume`` means: a file, or a run folder's newest."""
    found = path / "checkpoints" / "last.ckpt" if path.is_dir() else path
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


@torch.inference_mode()
def evaluate(
    model: LAS, tokenizer: Tokenizer, data: SpeechData, options: SearchOptions, device: torch.device
) -> dict[str, Any]:
    """Decode the test sets (the validation set where there is none) and score them by id.

    ``wer``, ``substitutions`` ... of all sets together, and the same under ``sets`` for each.
    """
    loaders = dict(zip(data.test, data.test_dataloader(), strict=True)) or {
        "validation": data.val_dataloader()
    }
    model = model.to(device)
    references: dict[str, str] = {}
    texts: dict[str, str] = {}
    sets = []
    for name, loader in loaders.items():
        done = []
        for batch in loader:
            batch = move_data_to_device(batch, device)
            winners = [
                best[0]
                for best in search(model, model.encode(batch.waves, batch.wave_lengths), options)
            ]
            done += decoded(model, tokenizer, batch, winners)
        own = {d.id: d.reference for d in done}
        theirs = {d.id: d.text for d in done}
        sets.append({"set": name, **_figures(own, theirs)})
        references |= {f"{name}:{id}": text for id, text in own.items()}
        texts |= {f"{name}:{id}": text for id, text in theirs.items()}
    return {**_figures(references, texts), "sets": sets}


def _figures(references: Mapping[str, str], hypotheses: Mapping[str, str]) -> dict[str, Any]:
    report = evaluation.score(references, hypotheses)
    names = ("wer", "substitutions", "deletions", "insertions", "reference_words", "cer", "ser")
    figures = {name: getattr(report, name) for name in names}
    return {**figures, "utterances": len(references)}


def finish(
    folder: RunFolder,
    best: Path,
    data: SpeechData,
    *,
    device: torch.device,
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """Evaluate the chosen checkpoint, write ``bundle/`` and ``report.json``; the report."""
    chosen = bundle.from_checkpoint(best)
    model = chosen.model
    options = SearchOptions(**chosen.settings.search).resolve(has_ctc=model.ctc is not None)
    results = evaluate(model, chosen.tokenizer, data, options, device)
    facts = {
        **facts,
        "commit": commit(),
        "machine": f"{platform.machine()}, {device.type}",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    card = {
        **chosen.card,
        "results": results["sets"],
        **{key: value for key, value in facts.items() if value not in (None, "")},
    }
    bundle.save(
        folder.bundle,
        model.cpu(),
        chosen.tokenizer,
        card=card,
        settings=chosen.settings,
        overwrite=True,
    )
    report = {
        "schema": "asr-training/1",
        **results,
        "decoding": asdict(options),
        **facts,
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
