"""Train every mechanism on the same data, budget and seeds, and compare them.

    python recipes/attention_zoo/zoo.py [--data data/fsdd] [--runs runs/attention_zoo]
        [--only NAME ...] [--seeds N ...] [--threads N] [--measured results.json]
        [--key=value as LightningCLI takes it]

Runs go one by one; what is finished is skipped, what was killed goes on where it was saved, so the
command can be stopped and given again at any time. Then it measures and writes `report/` in the
folder of the runs: tables.md, wer.png, and for each row the alignment of one string of digits.
`--measured` takes the results.json of another report: its runs are not made again, so that a row
of your own is compared with those in this folder. Options that it does not know are passed on to
every training run.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # it runs as a script, and as a module

import torch
from PIL import Image  # matplotlib brings it

from asr.inference import bundle
from asr.inference.bundle import Bundle
from asr.inspection import figures, implicit_figure
from asr.inspection.saliency import with_saliency
from asr.inspection.spectrogram import spectrogram_of
from recipes.attention_zoo import costs, hearing, plan, report, variance
from recipes.attention_zoo.plan import Run

RESULT = "zoo.json"  # what was measured of a run, in its folder
#: the string that is drawn: of so many digits, the first of the test set
DRAWN = 6
#: of its pictures, an inch, and in all: a quarter of the bytes of the figure as it is
PIXELS, COLOURS = 100, 128


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def train(run: Run, args: argparse.Namespace, more: Sequence[str]) -> int:
    """Train a run to its end, from wherever it is; the exit status of training."""
    folder = args.runs / run.name
    if (folder / "report.json").is_file():
        return 0
    command = [sys.executable, "-m", "asr.training"]
    if (folder / "checkpoints" / "last.ckpt").is_file():
        say(f"== {run.name}: goes on")
        command += [f"--resume={folder}"]
    else:
        say(f"== {run.name}: begins")
        if folder.exists():  # killed before anything was saved
            shutil.rmtree(folder)
        command += [
            f"--config={plan.BASE}",
            f"--config={run.row.config}",
            f"--seed_everything={run.seed}",
            f"--name={run.name}",
            f"--runs={args.runs}",
            f"--threads={args.threads}",
            f"--data.pool=[{args.data / 'pool-train.jsonl'}]",
            f"--data.validation=[{args.data / 'valid.jsonl'}]",
            *more,
        ]
    return subprocess.run(command, check=False).returncode


def measure(run: Run, args: argparse.Namespace) -> dict[str, Any]:
    """What a trained run makes of the test sets; measured once, then read."""
    folder = args.runs / run.name
    path = folder / RESULT
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    say(f"== {run.name}: decodes the test sets")
    trained = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {
        "row": run.row.label,
        "seed": run.seed,
        **{key: trained[key] for key in ("steps", "training_seconds", "commit", "torch")},
    }
    made = bundle.load(folder / "bundle")
    if run.row.label == "hard":
        given = costs.batch(made, args.data)
        found["variance"] = variance.gradient_variance(made, given)
    found["groups"] = hearing.measure(made, args.data)
    written = path.with_suffix(".part")
    written.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    written.replace(path)  # whole, or not there
    return found


def known(path: Path | None) -> dict[str, Any]:
    """``results`` and ``costs`` of an earlier report; ValueError where the file is none."""
    if path is None:
        return {"results": {}, "costs": {}}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for runs in found["results"].values():
            for one in runs:
                _ = one["seed"], [one["groups"][group] for group in hearing.GROUPS]
        return {"results": dict(found["results"]), "costs": dict(found["costs"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a results.json of an earlier report: {error!r}") from error


def draw(run: Run, args: argparse.Namespace, folder: Path) -> None:
    """The attention of a run, explicit and implicit, on one string for all."""
    path = folder / f"{run.row.label}.png"
    if path.is_file():
        return
    made = bundle.load(args.runs / run.name / "bundle")
    sound = example(made, args.data)
    (found,) = hearing.decode(made, [sound], hearing.DECODINGS["attention"])
    record = with_saliency(found.record, made.model, sound.wave)
    picture = implicit_figure.draw(record, spectrogram_of(sound.wave), words=found.words)
    drawn = io.BytesIO()
    figures.save(picture, drawn, "png", dpi=PIXELS)
    folder.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(path, optimize=True)


def example(made: Bundle, data: Path) -> hearing.Sound:
    """The first test string of :data:`DRAWN` digits, or of as many as come closest to it."""
    name = next(iter(hearing.GROUPS.values()))
    found = [sound for batch in hearing.sounds(data / name, made, 60.0) for sound in batch]
    return min(found, key=lambda s: (abs(len(s.text.split()) - DRAWN), s.utterance.id))


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 where a run failed, 2 for usage, 130 when interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/fsdd"), help="prepared FSDD")
    parser.add_argument("--runs", type=Path, default=Path("runs/attention_zoo"))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows to train; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N",
                        help="of every row (default: 1, and 2 for some)")  # fmt: skip
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measured", type=Path, metavar="FILE",
                        help="results.json of a report: its runs are not made again")  # fmt: skip
    args, more = parser.parse_known_args(argv)
    try:
        runs = plan.runs(args.only, args.seeds)
        earlier = known(args.measured)
    except ValueError as error:
        parser.error(str(error))
    for name in ("pool-train.jsonl", "valid.jsonl", *hearing.GROUPS.values()):
        if not (args.data / name).is_file():
            parser.error(f"{args.data / name}: not there; python recipes/fsdd/prepare.py makes it")
    torch.set_num_threads(args.threads)
    args.runs = args.runs.resolve()
    failed = []
    results: dict[str, list[dict[str, Any]]] = {
        label: list(found) for label, found in earlier["results"].items()
    }
    made = {(label, one["seed"]) for label, found in results.items() for one in found}
    runs = [run for run in runs if (run.row.label, run.seed) not in made]
    for run in runs:
        status = train(run, args, more)
        if status == 130:
            return status
        if status:
            say(f"== {run.name}: failed, exit status {status}")
            failed.append(run)
            continue
        results.setdefault(run.row.label, []).append(measure(run, args))
    done = [run for run in runs if run not in failed]
    folder = args.runs / "report"
    for run in done:
        draw(run, args, folder)
    firsts = {run.row.label: args.runs / run.name / "bundle" for run in reversed(done)}
    say("== time and memory of a step")
    spent = {**earlier["costs"], **costs.measure(firsts, args.data, threads=args.threads)}
    for found in results.values():
        found.sort(key=lambda one: one["seed"])
    hard = results["hard"][0]["variance"] if "hard" in results else None
    report.write(folder, plan.rows(), results, spent, hard)
    everything = {"results": results, "costs": spent}
    (folder / "results.json").write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    print(folder / "tables.md")
    return 1 if failed else 0


if __name__ == "__main__":
    # Told to end, it leaves no training run behind: subprocess.run kills its child on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
