"""How fast batches are made, and what share of its time training waits for them.

    python recipes/benchmark/loader.py [--manifest M.jsonl] [--workers 0 1 2] [--size small]

One JSON line a measurement. `loading` makes batches and does nothing else; `waiting` is the share
of wall time that a training loop (forward, backward, step of the model of `--size`) spends until
its next batch is there. Without a manifest, recordings of LibriSpeech's lengths are made up and
written as FLAC first. Speed and noise are perturbed unless `--plain`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import soundfile
import torch
from torch.utils.data import DataLoader

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.data import manifest
from asr.data.augment import Perturbation
from asr.data.batching import as_is
from asr.data.dataset import Batches, ManifestDataset
from asr.data.manifest import Utterance
from asr.text import CharacterTokenizer
from asr.types import Batch
from recipes.benchmark import generated
from recipes.benchmark.gpu_check import RATE, module, on, wait


def recordings(folder: Path, count: int) -> list[Utterance]:
    """``count`` made-up utterances as FLAC files."""
    generator = random.Random(1)
    made = []
    for number, seconds in enumerate(generated.lengths(count)):
        path = folder / f"{number}.flac"
        soundfile.write(path, generated.sound(seconds, RATE, number).numpy(), RATE)
        made.append(Utterance(str(number), path, seconds, generated.text(seconds, generator)))
    return made


def loader(batches: Batches, workers: int, count: int) -> Iterator[Batch]:
    return iter(
        DataLoader(
            batches,
            batch_size=None,
            collate_fn=as_is,
            sampler=range(count),
            num_workers=workers,
            pin_memory=torch.cuda.is_available(),
        )
    )


def seconds_of(batch: Batch) -> float:
    return float(batch.wave_lengths.sum()) / RATE


def loading(batches: Batches, workers: int, count: int) -> float:
    """Hours of audio loaded an hour, after the first batch."""
    source = loader(batches, workers, count)
    next(source)
    began = time.perf_counter()
    heard = sum(seconds_of(batch) for batch in source)
    return heard / (time.perf_counter() - began)


def waiting(
    batches: Batches, workers: int, count: int, size: str, device: torch.device
) -> tuple[float, float]:
    """Share of the time spent waiting for batches, and hours of audio trained on an hour."""
    made = module(size, batches.dataset.tokenizer).to(device).train()
    optimizer = made.configure_optimizers()
    source = loader(batches, workers, count)
    waited = heard = 0.0
    began = time.perf_counter()
    for number in range(count):
        asked = time.perf_counter()
        batch = on(next(source), device)
        if number:
            waited += time.perf_counter() - asked
            heard += seconds_of(batch)
        made.losses(batch, 0.5)["loss"].backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        wait(device)
        if not number:  # workers and device are warm now
            began = time.perf_counter()
    total = time.perf_counter() - began
    return waited / total, heard / total


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--size", default="small")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch-seconds", type=float, default=120.0)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--plain", action="store_true", help="without perturbation")
    args = parser.parse_args()
    device = torch.device(args.device)
    with tempfile.TemporaryDirectory() as folder:
        if args.manifest:
            utterances = manifest.read(args.manifest)
        else:
            per_batch = args.batch_seconds / 12
            utterances = recordings(Path(folder), max(4, round(args.batches * per_batch)))
        dataset = ManifestDataset(
            utterances,
            CharacterTokenizer(f" '{generated.LETTERS}"),
            RATE,
            perturbation=None if args.plain else Perturbation(),
        )
        batches = dataset.batches(args.batch_seconds, seed=1)
        common = {"batch_seconds": args.batch_seconds, "batches": args.batches}
        for workers in args.workers:
            own = {"workers": workers, "perturbed": not args.plain, **common}
            speed = loading(batches, workers, args.batches)
            show("loading", speed, "h/h", **own)
            share, speed = waiting(batches, workers, args.batches, args.size, device)
            own |= {"size": args.size, "device": device.type}
            show("waiting", share, "share", **own)
            show("training", speed, "h/h", **own)


def show(metric: str, value: float, unit: str, **more: object) -> None:
    line = {"name": "asr", "metric": metric, "value": round(value, 4), "unit": unit} | more
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
