"""Does training and decoding work on this machine, how fast, and the same as on a CPU?

    python recipes/benchmark/gpu_check.py [--device auto] [--sizes small medium] [--steps N]

Needs no data: batches of LibriSpeech's lengths are made up. For each size and precision it trains
a few steps and prints step time, hours of audio an hour, peak memory and the share of the device's
peak arithmetic that is used (matrix products and convolutions, forward and backward, counted by
torch). Then the model decodes, and its logits and texts are compared with the CPU's. JSON lines on
standard output; exit status 1 where a loss is not finite or CPU and device disagree.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import random
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch import Callback, LightningDataModule, Trainer
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

from asr.data.batching import as_is
from asr.nn.attention import Attention
from asr.nn.decoders import Speller
from asr.nn.encoders import Encoder
from asr.nn.las import LAS
from asr.search import SearchOptions, greedy, search
from asr.text import SentencePieceTokenizer, Tokenizer
from asr.training import losses
from asr.training.module import LASModule
from asr.types import Batch
from recipes.benchmark import generated

RATE = 16000
CONF = Path(__file__).parents[2] / "conf" / "size"
#: name of a GPU -> dense peak in TFLOP/s by precision, from NVIDIA's data sheets
PEAKS = {
    "H200": {"32-true": 67.0, "bf16-mixed": 989.0, "16-mixed": 989.0},
    "H100": {"32-true": 67.0, "bf16-mixed": 989.0, "16-mixed": 989.0},
    "A100": {"32-true": 19.5, "bf16-mixed": 312.0, "16-mixed": 312.0},
}
PRECISIONS = ["32-true", "bf16-mixed", "16-mixed"]
TOLERANCE = 2e-3  # largest difference of two logits
AGREEING = 0.75  # share of texts that must be the same: near ties may fall either way


def module(size: str, tokenizer: Tokenizer) -> LASModule:
    """What ``conf/size/<size>.yaml`` describes."""
    parts = yaml.safe_load((CONF / f"{size}.yaml").read_text(encoding="utf-8"))["model"]
    encoder, speller = parts.get("encoder", {}), parts.get("speller", {})
    attention = parts.get("attention", {})
    return LASModule(
        tokenizer,
        RATE,
        encoder=lambda dim: Encoder.build({"name": "conformer", **encoder}, dim),
        attention=lambda *dims: Attention.build({"name": "location_aware", **attention}, *dims),
        speller=lambda vocabulary, made, dim: Speller.resolve("recurrent")(
            vocabulary, made, dim, **speller
        ),
        learning_rate=1e-3,
        warmup_steps=10,
    )


class Made(LightningDataModule):
    """The same batches over and over."""

    def __init__(self, batches: list[Batch], steps: int) -> None:
        super().__init__()
        self.batches = [batches[step % len(batches)] for step in range(steps)]
        self.position = 0

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.batches, batch_size=None, collate_fn=as_is)  # type: ignore[arg-type]


class Times(Callback):
    """Seconds of each step, the device waited for; and whether the losses were finite."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds, self.finite = device, list[float](), True

    def on_train_batch_start(self, *_: Any) -> None:
        wait(self.device)
        self.began = time.perf_counter()

    def on_train_batch_end(self, trainer: Trainer, module: Any, outputs: Any, *_: Any) -> None:
        wait(self.device)
        self.seconds.append(time.perf_counter() - self.began)
        self.finite &= bool(torch.isfinite(outputs["loss"]))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def sensible(precision: str) -> bool:
    """Whether a CPU trains in it in a sensible time: in bfloat16 where it knows how to multiply."""
    if precision != "bf16-mixed":
        return True
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        matrix = torch.randn(512, 512).to(dtype)
        for _ in range(3):  # the last one counts
            began = time.perf_counter()
            matrix @ matrix
            seconds[dtype] = time.perf_counter() - began
    return seconds[torch.bfloat16] < 5 * seconds[torch.float32]


def operations(made: LASModule, batch: Batch, device: torch.device) -> int:
    """Floating-point operations of one step on a batch, forward and backward."""
    made.to(device).train()
    with FlopCounterMode(display=False) as counter:
        made.losses(on(batch, device), 0.5)["loss"].backward()
    made.zero_grad(set_to_none=True)
    return counter.get_total_flops()


def on(batch: Batch, device: torch.device) -> Batch:
    return Batch(*(x.to(device) if isinstance(x, torch.Tensor) else x for x in batch))


def train(
    size: str, precision: str, batches: list[Batch], tokenizer: Tokenizer, steps: int, device: Any
) -> tuple[LASModule, list[dict[str, Any]]]:
    """Train a few steps as ``asr train`` does; what there is to say of them."""
    torch.manual_seed(1)
    made = module(size, tokenizer)
    flops = statistics.mean(operations(made, batch, device) for batch in batches)
    heard = statistics.mean(float(batch.wave_lengths.sum()) / RATE for batch in batches)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    times = Times(device)
    trainer = Trainer(
        accelerator="gpu" if device.type == "cuda" else "cpu",
        devices=1,
        precision=precision,  # type: ignore[arg-type]
        max_steps=steps,
        gradient_clip_val=1.0,
        callbacks=[times],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(made, datamodule=Made(batches, steps))
    # The first round of the batches sets things up; the mean of each batch's median is a step.
    rounds = [times.seconds[at : at + len(batches)] for at in range(0, steps, len(batches))]
    rounds = rounds[1:] or rounds
    step = statistics.mean(statistics.median(own) for own in zip(*rounds, strict=False))
    peak = _peak(device, precision)
    common = {"size": size, "precision": precision, "device": _name(device)}
    found = [
        ("parameters", sum(p.numel() for p in made.model.parameters()), "1"),
        ("step_time", round(step, 4), "s"),
        ("audio_hours_per_hour", round(heard / step, 1), "h/h"),
        ("step_operations", round(flops / 1e12, 6), "TFLOP"),
        ("finite_losses", int(times.finite and made.non_finite == 0), "bool"),
    ]
    if device.type == "cuda":
        found.append(
            ("peak_memory", round(torch.cuda.max_memory_allocated(device) / 2**30, 2), "GiB")
        )
    if peak:
        found.append(("flop_utilisation", round(flops / step / (peak * 1e12), 4), "share"))
    return made, [
        {"name": "asr", "metric": metric, "value": value, "unit": unit, **common}
        for metric, value, unit in found
    ]


@torch.no_grad()
def compare(made: LASModule, batch: Batch, device: torch.device) -> list[tuple[str, float, str]]:
    """How far the device's logits and texts are from the CPU's, of the same weights."""
    torch.backends.cudnn.allow_tf32 = False
    results = []
    for place in (torch.device("cpu"), device):
        model: LAS = made.model.to(place).eval()
        given = on(batch, place)
        encoded = model.encode(given.waves, given.wave_lengths)
        inputs, _, _ = losses.teacher(given.targets, given.target_lengths)
        logits = model.speller(encoded, inputs, given.target_lengths + 1).logits.cpu()
        ctc = model.ctc_log_probs(encoded).cpu()
        wait(place)
        began = time.perf_counter()
        beam = search(model, encoded, SearchOptions(beam_size=4, ctc_weight=0.3))
        wait(place)
        seconds = time.perf_counter() - began
        texts = [made.tokenizer.decode(h.tokens) for h in greedy(model, encoded)]
        texts += [made.tokenizer.decode(row[0].tokens) for row in beam]
        results.append((logits, ctc, texts, seconds))
    (logits, ctc, texts, _), (logits2, ctc2, texts2, seconds) = results
    same = sum(a == b for a, b in zip(texts, texts2, strict=True)) / len(texts)
    audio = float(batch.wave_lengths.sum()) / RATE
    return [
        ("logits_difference", float((logits - logits2).abs().max()), "1"),
        ("ctc_difference", float((ctc - ctc2).abs().max()), "1"),
        ("same_texts", same, "share"),
        ("beam_audio_hours_per_hour", round(audio / seconds, 1), "h/h"),
    ]


def _peak(device: torch.device, precision: str) -> float | None:
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peaks[precision] for key, peaks in PEAKS.items() if key in name), None)


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--sizes", nargs="+", default=["small", "medium"])
    parser.add_argument(
        "--precisions", nargs="+", choices=PRECISIONS, help="default: all there are"
    )
    parser.add_argument("--steps", type=int, help="default: 20 on a GPU, 2 on a CPU")
    parser.add_argument(
        "--batch-seconds", type=float, help="default: 300 on a GPU, 15 on a CPU", metavar="S"
    )
    parser.add_argument("--subwords", type=int, default=1000)
    args = parser.parse_args()
    if args.device == "auto":
        args.device = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(args.device, 0) if args.device == "cuda" else torch.device("cpu")
    on_gpu = device.type == "cuda"
    args.steps = args.steps or (20 if on_gpu else 2)
    args.batch_seconds = args.batch_seconds or (300.0 if on_gpu else 15.0)
    asked = args.precisions or [name for name in PRECISIONS if on_gpu or sensible(name)]
    precisions = [name for name in asked if on_gpu or name != "16-mixed"]
    generator = random.Random(5)
    texts = [generated.text(seconds, generator) for seconds in generated.lengths(300)]
    tokenizer = SentencePieceTokenizer.train(texts, args.subwords)
    count = min(4, args.steps)
    batches = generated.batches(tokenizer, RATE, seconds=args.batch_seconds, count=count)
    args.steps -= args.steps % count
    short = min(12.0, args.batch_seconds / 4)
    few = generated.of([short / 4, short / 2, short], tokenizer, RATE, generator, "few")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    began, right = time.perf_counter(), True
    for size in args.sizes:
        for precision in precisions:
            made, lines = train(size, precision, batches, tokenizer, args.steps, device)
            for line in lines:
                print(json.dumps(line), flush=True)
                right &= line["metric"] != "finite_losses" or line["value"] == 1
            if precision != "32-true":
                continue
            for metric, value, unit in compare(made, few, device):
                line = {"name": "asr", "metric": metric, "value": value, "unit": unit}
                print(json.dumps(line | {"size": size, "device": _name(device)}), flush=True)
                right &= not metric.endswith("_difference") or value <= TOLERANCE
                right &= metric != "same_texts" or value >= AGREEING
    took = {"metric": "wall_time", "value": round(time.perf_counter() - began, 1), "unit": "s"}
    print(json.dumps({"name": "asr", **took}))
    print("gpu_check: all is well" if right else "gpu_check: FAILED, see above", file=sys.stderr)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
