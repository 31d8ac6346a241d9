"""The comparison of mechanisms: every one has a run, runs are resumed, and tables say what is."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from asr.data import manifest
from asr.data.batching import batch
from asr.data.manifest import Utterance, WordTime
from asr.glimpses import Frontend, LogMel
from asr.inference import bundle
from asr.inference.bundle import Bundle, Settings
from asr.nn.attention import Attention, Hard
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer, Encoder
from asr.nn.encoders.selfattention import Mask, Position
from asr.nn.las import LAS
from asr.text import CharacterTokenizer
from asr.training import names
from asr.types import Word
from recipes.attention_zoo import costs, hearing, plan, report, variance, zoo

ROOT = Path(__file__).parents[2]
RATE = 8000
TOKENIZER = CharacterTokenizer(" abc")


def small(attention: str = "location_aware") -> Bundle:
    torch.manual_seed(1)
    model = LAS(
        RATE,
        TOKENIZER.vocabulary_size,
        frontend=partial(LogMel, bins=12),
        encoder=partial(Conformer, dim=12, blocks=1, heads=2, kernel=3, channels=3),
        attention=partial(Attention.resolve(attention), dim=8),
        speller=partial(Recurrent, dim=12, embedding=4),
    ).eval()
    return Bundle(model, TOKENIZER, Settings(), {}, attention, "")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two 'words' of tones by two 'speakers', and strings of them, laid out as FSDD is."""
    folder = tmp_path_factory.mktemp("tones")
    time = np.arange(int(0.24 * RATE)) / RATE
    shape = 0.3 * np.hanning(len(time))

    def tone(word: str, pitch: float) -> np.ndarray:
        hertz = pitch * np.where(time < 0.12, *{"ab": (400, 900), "ca": (1500, 400)}[word])
        return (shape * np.sin(2 * np.pi * hertz * time)).astype(np.float32)

    pool = []
    for speaker, pitch in (("low", 1.0), ("high", 1.1)):
        for word in ("ab", "ca"):
            path = folder / f"{speaker}-{word}.wav"
            soundfile.write(path, tone(word, pitch), RATE)
            pool.append(Utterance(path.stem, path, 0.24, word, speaker))
    manifest.write(folder / "pool-train.jsonl", pool)
    silence = np.zeros(int(0.1 * RATE), np.float32)
    for name, texts in (
        ("valid", ["ab ca", "ca"]),
        ("test", ["ab", "ca ab", "ab ca ab"]),
        ("test-9-15", ["ab ca " * 4 + "ab"]),
        ("test-16-25", ["ca ab " * 8]),
    ):
        strings = []
        for number, text in enumerate(texts):
            parts, words = [silence], []
            for word in text.split():
                start = sum(map(len, parts)) / RATE
                words.append(WordTime(word, start, start + 0.24))
                parts += [tone(word, 1.0), silence]
            path = folder / f"{name}-{number}.wav"
            soundfile.write(path, np.concatenate(parts), RATE)
            seconds = sum(map(len, parts)) / RATE
            strings.append(
                Utterance(path.stem, path, seconds, text.strip(), "low", words=tuple(words))
            )
        manifest.write(folder / f"{name}.jsonl", strings)
    return folder


def test_every_mechanism_has_a_row_and_a_configuration() -> None:
    found = plan.rows()
    by_part = {part: {r.name for r in found if r.part == part} for part in ("attention", "encoder")}
    assert by_part["attention"] == set(Attention.registry)
    kinds = {*Encoder.registry, *Position.registry, *Mask.registry}
    assert by_part["encoder"] == kinds - {"conformer", "relative", "full"}  # location_aware's own
    assert {r.name for r in found if r.part == "frontend"} == set(Frontend.registry) - {"log_mel"}
    assert len(found) == len({row.label for row in found}) >= 24
    for row in found:
        (content,) = names.read(row.config)
        said = json.dumps(names.shortened(content))
        assert row.name in said, row.label


def test_the_order_of_runs_and_their_seeds() -> None:
    runs = plan.runs()
    assert len(runs) == len(plan.rows()) + len(plan.TWICE)
    assert {run.row.label for run in runs[: len(plan.TWICE)]} == set(plan.TWICE)
    assert {run.row.label for run in runs if run.seed == 2} == set(plan.TWICE)
    chosen = plan.runs(["encoder-rotary", "dot"], [3, 4])
    assert [run.name for run in chosen] == [
        "dot-3",
        "encoder-rotary-3",
        "dot-4",
        "encoder-rotary-4",
    ]
    with pytest.raises(ValueError, match="dott: no such row; valid: additive, "):
        plan.runs(["dott"])


def test_a_finished_run_is_skipped_and_a_killed_one_goes_on(tmp_path, monkeypatch) -> None:
    called: list[list[str]] = []

    def fake(command: list[str], check: bool) -> subprocess.CompletedProcess:
        called.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(zoo.subprocess, "run", fake)
    args = argparse.Namespace(runs=tmp_path, data=Path("data/fsdd"), threads=1)
    run = plan.runs(["additive"], [1])[0]
    folder = tmp_path / "additive-1"

    assert zoo.train(run, args, ["--trainer.max_steps=3"]) == 0
    (command,) = called
    assert command[1:3] == ["-m", "asr.training"] and "--seed_everything=1" in command
    assert f"--config={plan.CONF / 'attention' / 'additive.yaml'}" in command
    assert command[-1] == "--trainer.max_steps=3"

    folder.mkdir()
    (folder / "config.yaml").touch()  # killed before the first checkpoint
    zoo.train(run, args, [])
    assert not folder.exists() and "--name=additive-1" in called[-1]

    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "last.ckpt").touch()
    zoo.train(run, args, ["--trainer.max_steps=3"])
    assert called[-1][3:] == [f"--resume={folder}"]

    (folder / "report.json").write_text("{}")
    assert zoo.train(run, args, []) == 0 and len(called) == 3


def test_usage_errors(tmp_path, capsys) -> None:
    for argv, message in ((["--only", "dott"], "dott: no such row"), ([], "recipes/fsdd/prepare")):
        with pytest.raises(SystemExit) as stopped:
            zoo.main(["--data", str(tmp_path), *argv])
        assert stopped.value.code == 2 and message in capsys.readouterr().err


def test_what_another_report_has_measured_is_not_measured_again(
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = tmp_path / "results.json"
    results = {label: [measured(0.5, 1)] for label in ("none", "additive", "dot")}
    spent = {"none": {"parameters": 7, "attention_parameters": 0, "step_ms": 1.0, "memory_mib": 2}}
    before.write_text(json.dumps({"results": results, "costs": spent}))
    trained: list[str] = []
    monkeypatch.setattr(zoo, "train", lambda run, *_: trained.append(run.name) or 0)
    monkeypatch.setattr(zoo, "measure", lambda run, _: measured(0.1, run.seed))
    monkeypatch.setattr(zoo, "draw", lambda *_: None)
    monkeypatch.setattr(costs, "measure", lambda firsts, *_, **__: {})
    command = ["--data", str(data), "--runs", str(tmp_path), "--measured", str(before)]
    assert zoo.main([*command, "--only", "none", "additive", "--seeds", "2", "1"]) == 0
    assert trained == ["additive-2", "none-2"]
    found = json.loads((tmp_path / "report" / "results.json").read_text())
    assert {label: [one["seed"] for one in f] for label, f in found["results"].items()} == {
        "none": [1, 2], "additive": [1, 2], "dot": [1]
    }  # fmt: skip
    assert found["costs"] == spent
    for broken in ("[]", "{", '{"results": {"dot": [{}]}, "costs": {}}'):
        before.write_text(broken)
        with pytest.raises(SystemExit) as stopped:
            zoo.main(command)
        message = capsys.readouterr().err
        assert stopped.value.code == 2 and f"{before}: not a results.json" in message


def test_what_is_measured_of_a_model(data: Path) -> None:
    found = hearing.measure(small(), data, seconds=10.0)
    assert list(found) == ["1-8", "9-15", "16-25"]
    counts = {group: found[group]["attention"]["reference_words"] for group in found}
    assert counts == {"1-8": 6, "9-15": 9, "16-25": 16}
    for group in found.values():
        assert set(group) - {"explained"} == {"attention", "with_ctc", "windowed"}
        for decoding in ("attention", "with_ctc", "windowed"):
            one = group[decoding]
            errors = one["substitutions"] + one["deletions"] + one["insertions"]
            assert one["wer"] == pytest.approx(errors / one["reference_words"])
            assert 0 <= one["monotonicity"] <= 1 and 0 <= one["coverage"] <= 1
    json.dumps(found, allow_nan=False)
    assert "windowed" not in hearing.measure(small("additive"), data, seconds=10.0)["1-8"]


def test_a_window_holds_the_attention_back_and_is_taken_away_again() -> None:
    model = small().model
    states = model.encode(0.1 * torch.randn(1, 32000), torch.tensor([32000]))  # 100 frames
    inputs, lengths = torch.tensor([[1, 3]]), torch.tensor([2])
    with hearing.held_back(model) as held:
        assert held and model.speller.attention.window == 25
        assert (model.speller(states, inputs, lengths).weights[0, 0, 0] > 0).sum() == 26
    assert model.speller.attention.window == 0
    assert (model.speller(states, inputs, lengths).weights > 0).all()
    with hearing.held_back(small("additive").model) as held:
        assert not held


def test_attention_inside_its_word_is_found_there(data: Path) -> None:
    """A hypothesis as if it had been recognised, with weights where the words are."""
    made = small()
    batches = [sound for each in hearing.sounds(data / "test.jsonl", made, 10.0) for sound in each]
    sound = next(s for s in batches if s.text == "ca ab")
    (found,) = hearing.decode(made, [sound], hearing.DECODINGS["attention"])
    assert hearing.explain(made, sound, found) is None  # what an untrained model writes is wrong
    ids = (*TOKENIZER.encode("ca ab"), 1)
    frames = found.record.weights.shape[-1]
    weights = torch.zeros(len(ids), 1, frames)
    centres = (torch.arange(frames) + 0.5) * found.record.frame_shift
    for row, word in zip(range(len(ids)), [0, 0, 0, 1, 1, 1], strict=True):
        span = sound.utterance.words[word]
        weights[row, 0, int((centres - (span.start + span.end) / 2).abs().argmin())] = 1.0
    weights[3] = weights[3].flip(-1)  # the first letter of the second word listens elsewhere
    record = replace(
        found.record, ids=ids, tokens=tuple(TOKENIZER.token(id) for id in ids), weights=weights
    )
    words = tuple(Word(word.word, word.start, word.end, 1.0) for word in sound.utterance.words)
    right = found._replace(words=words, record=record)
    explained = hearing.explain(made, sound, right)
    assert explained is not None and explained["explicit_inside"] == pytest.approx(0.75)
    assert 0 < explained["implicit_inside"] < 1 and 0 < explained["overlap"] < 1


def spoken() -> object:
    """A training batch of noise."""
    lengths = torch.tensor([8000, 6000, 4000])
    waves = 0.1 * torch.randn(3, 8000, generator=torch.Generator().manual_seed(2))
    return batch(["a", "b", "c"], waves, lengths, ["ab ca", "ca", "ab"], [(), (), ()], TOKENIZER)


def test_the_baseline_lowers_the_variance_of_hard_attention() -> None:
    made = small("hard")
    attention = made.model.speller.attention
    assert isinstance(attention, Hard)
    attention.average.fill_(-3.0)  # about what an untrained model earns: log(1/7), discounted
    before = attention.average.clone()
    found = variance.gradient_variance(made, spoken(), draws=12)
    assert found["with_baseline"] > 0 and found["ratio"] > 2
    assert torch.equal(attention.average, before) and not made.model.training
    attention.average.zero_()
    for parameter in attention.baseline.parameters():
        parameter.data.zero_()
    same = variance.gradient_variance(made, spoken(), draws=4)
    assert same["ratio"] == pytest.approx(1.0)
    with pytest.raises(ValueError, match="is additive, not hard"):
        variance.gradient_variance(small("additive"), spoken())


def measured(wer: float, seed: int, **more) -> dict:
    """As `hearing.measure` has it, of a made-up model."""
    one = {
        "wer": wer, "substitutions": round(100 * wer), "deletions": 0, "insertions": 0,
        "reference_words": 100, "utterances": 10, "onset_median": 0.03, "onset_within": 0.9,
        "onset_words": 50, "monotonicity": 0.95, "coverage": 0.9,
    }  # fmt: skip
    groups = {group: {"attention": one, "with_ctc": one} for group in hearing.GROUPS}
    explained = {"explicit_inside": 0.8, "implicit_inside": 0.6, "overlap": 0.3, "utterances": 5}
    groups["1-8"]["explained"] = explained
    return {"seed": seed, "steps": 2000, "training_seconds": 300.0, "groups": groups, **more}


def test_tables_pool_seeds_and_leave_blank_what_was_not_measured() -> None:
    rows = plan.rows()
    results = {"additive": [measured(0.02, 1), measured(0.04, 2)], "none": [measured(0.5, 1)]}
    spent = {"none": {"parameters": 1234567, "attention_parameters": 0, "step_ms": 412.3,
                      "memory_mib": 99.6}}  # fmt: skip
    heard, listened, cost = report.tables(rows, results, spent).split("\n\n")
    for table in (heard, listened, cost):
        assert len(table.strip().splitlines()) == len(rows) + 2
    lines = {line.split("`")[1]: line for line in heard.splitlines() if "`" in line}
    assert lines["additive"].startswith("| `additive` | 2 | 3.00% (6/0/0 of 200) |")
    assert lines["dot"].replace(" ", "") == "|`dot`|" + "|" * 7
    assert "1,234,567 | 0 | 412 ms | 100 MiB | 2000 in 5.0 min |" in cost
    assert "| 30 ms, 90% of 50 |" in listened and "| 80% | 60% | 30% |" in listened
    figure = report.figure(rows, results)
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == ["additive", "none"]
    assert report.variance(None) == ""


def test_the_document_shows_an_alignment_of_each() -> None:
    """Pictures that the comparison made of every mechanism, listener and front end."""
    text = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"!\[[^\]]+\]\(\.\./(recipes/attention_zoo/pictures/[^)]+)\)", text))
    wanted = {f"recipes/attention_zoo/pictures/{row.label}.png" for row in plan.rows()}
    assert len(wanted) > 20 and shown == wanted
    missing = [name for name in sorted(wanted) if not (ROOT / name).is_file()]
    assert not missing


def test_the_document_has_the_tables_that_the_command_writes() -> None:
    """As many rows as there are mechanisms, measured or not."""
    text = (ROOT / "recipes" / "attention_zoo" / "README.md").read_text(encoding="utf-8")
    blank = report.tables(plan.rows(), {}, {})
    for line in blank.splitlines():
        if line.startswith("| row"):
            assert line in text
        elif line.startswith("| `"):
            assert text.count(line.split("|")[1]) >= 3, line


def test_a_step_and_its_memory(data: Path, tmp_path: Path) -> None:
    made = small("additive")
    given = costs.batch(made, data, words=6)
    assert given.targets.shape[0] >= 1 and costs.batch(made, data, words=6).ids == given.ids
    before = [p.clone() for p in made.model.parameters()]
    costs.step(made, given)()
    assert any(not torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))


@pytest.mark.slow
def test_a_command_that_is_told_to_end_leaves_no_training_behind(
    data: Path, tmp_path: Path
) -> None:
    command = [
        sys.executable, ROOT / "recipes" / "attention_zoo" / "zoo.py", "--data", data,
        "--runs", tmp_path / "runs", "--only", "none", "--threads", "1", "--data.workers=0",
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        assert started.stderr is not None
        assert any("parameters" in line for line in started.stderr)  # training has begun
        os.killpg(started.pid, 0)
        started.terminate()
        assert started.wait(30) == 143
        with pytest.raises(ProcessLookupError):
            os.killpg(started.pid, 0)


@pytest.mark.slow
def test_two_rows_from_the_command_to_the_report(data: Path, tmp_path: Path) -> None:
    """Trained, measured, drawn and written; given again, nothing is done twice."""
    command = [
        sys.executable, ROOT / "recipes" / "attention_zoo" / "zoo.py", "--data", data,
        "--runs", tmp_path / "runs", "--only", "hard", "encoder-rotary", "--seeds", "1",
        "--threads", "1", "--trainer.max_steps=4", "--data.steps_per_epoch=2",
        "--data.words_per_batch=6", "--data.workers=0", "--model.encoder.dim=16",
        "--model.encoder.blocks=1",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    folder = tmp_path / "runs" / "report"
    assert done.stdout.strip().splitlines()[-1] == str(folder / "tables.md")
    names_ = {"tables.md", "wer.png", "results.json", "hard.png", "encoder-rotary.png"}
    assert {path.name for path in folder.iterdir()} == names_
    found = json.loads((folder / "results.json").read_text())
    assert set(found["results"]) == set(found["costs"]) == {"hard", "encoder-rotary"}
    assert found["results"]["hard"][0]["variance"]["draws"] == 32
    assert found["costs"]["hard"]["memory_mib"] > 0.1
    assert "Variance of the gradient of `hard`" in (folder / "tables.md").read_text()
    assert (
        bundle.load(tmp_path / "runs" / "encoder-rotary-1" / "bundle").model.spec()["encoder"][
            "position"
        ]
        == "rotary"
    )
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "begins" not in again.stderr and "decodes" not in again.stderr
