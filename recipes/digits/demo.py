"""python recipes/digits/demo.py: the whole path in a few minutes, from the embedded digits.

Prepares the corpus, trains conf/digits.yaml on it, prints the WER on voices that training never
heard, transcribes a recording with the starter model, and leaves demo/attention.html. It goes into
data/digits and demo/, which are made anew. Options are passed on to training,
--trainer.max_steps=300 for instance.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from asr.cli.main import main as asr
from asr.training.cli import main as train

HERE = Path(__file__).parent
DEMO = Path("demo")


def step(title: str) -> None:
    """Say what comes next, on standard error like all progress."""
    print(f"\n== {title}", file=sys.stderr, flush=True)


def done(status: int) -> None:
    """Go on after success only; whoever failed has said why."""
    if status:
        sys.exit(status)


def main(options: list[str]) -> None:
    """Run the whole path; exits with the status of the first step that fails."""
    data, run = Path("data/digits"), DEMO / "run"
    shutil.rmtree(run, ignore_errors=True)

    step("prepare the embedded corpus")
    done(asr(["prepare", "digits", str(HERE / "corpus"), "-o", str(data)]))

    step("train on it (under five minutes on two cores)")
    config = HERE.parents[1] / "conf" / "digits.yaml"
    done(train([f"--config={config}", f"--runs={DEMO}", "--name=run", *options]))

    step("what it made of voices it never heard")
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    print(
        f"held-out voices: WER {report['wer']:.2%} ({report['substitutions']} substitutions, "
        f"{report['deletions']} deletions, {report['insertions']} insertions in "
        f"{report['reference_words']} words), {report['training_seconds']:.0f} s of training"
    )

    test = [json.loads(line) for line in (data / "test.jsonl").open(encoding="utf-8")]
    spoken = max((u for u in test if len(u["text"].split()) <= 6), key=lambda u: u["duration"])
    recording = str(data / spoken["audio"])

    step("transcribe a recording with the starter model")
    print(f"said: {spoken['text']}\nheard: ", end="", flush=True)
    done(asr(["transcribe", recording]))

    step("see and hear where the new model listened")
    page = DEMO / "attention.html"
    done(asr(["inspect", recording, "--model", str(run / "bundle"), "--output", str(page),
              "--on-exists", "overwrite"]))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
