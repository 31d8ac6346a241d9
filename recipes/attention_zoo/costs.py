"""What a training step of each trained model costs: time in turn, memory in a process of its own.

python recipes/attention_zoo/costs.py BUNDLE --data data/fsdd     prints the peak memory in bytes
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.data.pool import StringPool
from asr.data.strings import StringDataset
from asr.inference import bundle
from asr.inference.bundle import Bundle
from asr.training import losses
from asr.types import Batch
from recipes.benchmark import measuring

WORDS = 40  # of a batch, as in training


def batch(found: Bundle, data: Path, words: int = WORDS) -> Batch:
    """The same training batch for every model: strings of the full length range, of one seed."""
    pool = StringPool([str(data / "pool-train.jsonl")], found.model.sample_rate)
    made = StringDataset(pool, found.tokenizer, batches=1, words_per_batch=words, curriculum=0.0)
    return made[0]


def step(found: Bundle, given: Batch) -> Callable[[], None]:
    """Forward, backward and the optimiser's step of the loss that all runs were trained on.

    Without augmentation and guide, which cost every model the same.
    """
    model = found.model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    inputs, outputs, mask = losses.teacher(given.targets, given.target_lengths)

    def once() -> None:
        encoded = model.encode(given.waves, given.wave_lengths)
        spelled = model.speller(encoded, inputs, given.target_lengths + 1)
        loss = losses.cross_entropy(spelled.logits, outputs, mask, 0.1)
        if model.ctc is not None:
            log_probs = model.ctc_log_probs(encoded)
            loss = (
                loss
                + losses.ctc(log_probs, encoded.lengths, given.targets, given.target_lengths).loss
            )
        token_log_probs = losses.token_log_probs(spelled.logits, outputs)
        own = model.speller.attention.loss(spelled.terms, mask, token_log_probs)
        optimizer.zero_grad()
        (loss if own is None else loss + own).backward()
        optimizer.step()

    return once


def measure(
    bundles: Mapping[str, Path], data: Path, *, repeats: int = 5, threads: int = 2
) -> dict[str, dict[str, Any]]:
    """By label: parameters in all and of the attention, ``step_ms``, ``memory_mib``."""
    found = {label: bundle.load(path) for label, path in bundles.items()}
    steps = {label: step(each, batch(each, data)) for label, each in found.items()}
    times = measuring.interleaved(steps, repeats)
    return {
        label: {
            "parameters": sum(p.numel() for p in each.model.parameters()),
            "attention_parameters": sum(
                p.numel() for p in each.model.speller.attention.parameters()
            ),
            "step_ms": 1000 * statistics.median(times[label]),
            "memory_mib": _memory(bundles[label], data, threads) / measuring.MIB,
        }
        for label, each in found.items()
    }


def _memory(path: Path, data: Path, threads: int) -> float:
    command = [sys.executable, __file__, str(path), "--data", str(data), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr.strip()[-500:]}")
    return float(done.stdout.split()[-1])


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--data", type=Path, default=Path("data/fsdd"))
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    found = bundle.load(args.bundle)
    big = step(found, batch(found, args.data))
    print(measuring.peak_memory(big, step(found, batch(found, args.data, words=1))))


if __name__ == "__main__":
    measuring.quiet()
    main()
