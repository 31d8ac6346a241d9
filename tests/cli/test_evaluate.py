"""`asr evaluate`: every flag changes something, and what goes wrong is one line and a status."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli.main import main
from asr.errors import InputError

REFERENCE = "a\tTHE CAT SAT\nb\thello world\nc\t\n"
HYPOTHESIS = "the cat sat (a)\nhello word (b)\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    rows = [
        {"id": "a", "text": "THE CAT SAT", "speaker": "s1", "room": "x"},
        {"id": "b", "text": "hello world", "speaker": "s2", "room": "x"},
        {"id": "c", "text": "", "speaker": "s3", "room": "y"},
    ]
    (tmp_path / "ref").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "hyp").write_text(HYPOTHESIS)
    return ["evaluate", "--ref", str(tmp_path / "ref"), "--hyp", str(tmp_path / "hyp")]


def ran(argv: Sequence[str], capsys: pytest.CaptureFixture[str], status: int = 0) -> str:
    """What was printed on the stream that matters: stdout, or stderr where it fails."""
    found = main(argv)
    out, err = capsys.readouterr()
    assert found == status, err
    assert "Traceback" not in err
    if status == 2:
        assert not out
        assert err.startswith("asr: error: ")
        assert err.count("\n") == 1
    return err if status else out


def test_scores_files(files: list[str], tmp_path: Path, capsys) -> None:
    out = ran([*files, "--json", str(tmp_path / "out.json")], capsys)
    assert "raw" in out.splitlines()[1]
    assert "80.00" in out.splitlines()[1]
    assert "20.00" in out.splitlines()[2]
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (report["wer"], report["substitutions"], report["reference_words"]) == (0.8, 4, 5)
    assert report["references"] == {"path": files[2], "format": "jsonl"}
    assert report["hypotheses"] == {"path": files[4], "format": "trn"}
    assert report["missing"] == ["c"]
    assert report["intervals"]["wer"]["unit"] == "speaker"


@pytest.mark.parametrize(
    "flags",
    [
        ["--normalizer", "basic"],
        ["--normalizer", "english"],
        ["--cer"],
        ["--group", "speaker"],
        ["--group", "room"],
        ["--ci", "0.5"],
        ["--no-ci"],
        ["--seed", "4"],
        ["--group", "length"],
        ["--aligner", "sclite"],
    ],
)
def test_every_flag_changes_the_report(files: list[str], flags: list[str], capsys) -> None:
    assert ran([*files, *flags], capsys) != ran(files, capsys)


@pytest.fixture
def second(files: list[str], tmp_path: Path) -> list[str]:
    """A second system: right but for one word that it inserts."""
    (tmp_path / "hyp2").write_text("a\tTHE CAT SAT\nb\thello world\nc\tum\n")
    return ["--hyp2", str(tmp_path / "hyp2")]


def test_two_systems(files: list[str], second: list[str], tmp_path: Path, capsys) -> None:
    out = ran([*files, *second, "--json", str(tmp_path / "o.json")], capsys)
    assert "WER of the second minus the first: -60.00" in out
    assert "MAPSSWE" not in out
    report = json.loads((tmp_path / "o.json").read_text())
    found = report["comparison"]
    assert (report["wer"], found["first"]["wer"], found["second"]["wer"]) == (0.8, 0.8, 0.2)
    assert (found["interval"], found["matched_pairs"]) == (None, None)
    assert report["second_hypotheses"] == {"path": second[1], "format": "tsv"}


def test_significance(files: list[str], second: list[str], tmp_path: Path, capsys) -> None:
    flags = [*files, *second, "--significance", "--seed", "6", "--json", str(tmp_path / "o.json")]
    out = ran(flags, capsys)
    assert "matched pairs (MAPSSWE): 3 segments, z " in out
    assert "paired bootstrap over 3 speakers, 2000 samples, seed 6" in out
    assert "only 3 segments with an error" in out
    report = json.loads((tmp_path / "o.json").read_text())
    assert report["comparison"]["matched_pairs"]["segments"] == 3
    assert report["comparison"]["interval"]["seed"] == 6
    assert report["comparison"]["probability_of_improvement"] > 0.5
    alone = ran([*files, *second, "--significance", "--no-ci"], capsys)
    assert "MAPSSWE" in alone and "bootstrap" not in alone


def test_the_second_system_must_know_the_ids_too(
    files: list[str], second: list[str], capsys
) -> None:
    with open(second[1], "a", encoding="utf-8") as file:
        file.write("zz\tx\n")
    message = ran([*files, *second], capsys, status=1)
    assert "--hyp2" in message and "'zz'" in message


def test_numbers_are_grouped_in_bins(tmp_path: Path, capsys) -> None:
    rows = [{"id": f"u{n}", "text": "x " * n, "snr": n - 0.5} for n in range(20)]
    (tmp_path / "ref").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "hyp").write_text("u3 x x\n")
    files = ["evaluate", "--ref", str(tmp_path / "ref"), "--hyp", str(tmp_path / "hyp")]
    for key, name in (("snr", "-0.5 to 2.5"), ("length", "0 to 3")):
        out = ran([*files, "--group", key, "--json", str(tmp_path / "o.json")], capsys)
        groups = json.loads((tmp_path / "o.json").read_text())["groups"]
        assert groups[0]["name"] == name
        assert sum(group["utterance_count"] for group in groups) == 20
        assert f"\n{name} " in out


def test_a_page(files: list[str], second: list[str], tmp_path: Path, capsys) -> None:
    page = tmp_path / "o.html"
    ran([*files, "--html", str(page)], capsys)
    assert "word" in page.read_text(encoding="utf-8")
    ran([*files, *second, "--significance", "--html", str(page)], capsys)
    assert "hyp2" in page.read_text(encoding="utf-8")


def test_confidences_are_measured_where_there_are_some(
    files: list[str], tmp_path: Path, capsys
) -> None:
    words = [{"word": word, "confidence": 0.5} for word in ("THE", "CAT", "MAT")]
    row = {"id": "a", "text": "THE CAT MAT", "words": words}
    (tmp_path / "hyp").write_text(json.dumps(row))
    ran([*files, "--json", str(tmp_path / "o.json")], capsys)
    found = json.loads((tmp_path / "o.json").read_text())["calibration"]
    assert (found["words"], found["correct"]) == (3, 2)


def test_allow_unknown(files: list[str], capsys) -> None:
    with open(files[4], "a", encoding="utf-8") as file:
        file.write("stray (zz)\n")
    message = ran(files, capsys, status=1)
    assert "'zz'" in message
    assert "--allow-unknown" in message
    assert message.count("\n") == 1
    assert "left out: 1 ('zz')" in ran([*files, "--allow_unknown"], capsys)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "give a MANIFEST"),
        (["--ref", "r"], "both --ref and --hyp"),
        (["--hyp", "h"], "both --ref and --hyp"),
        (["m.jsonl", "--ref", "r", "--hyp", "h"], "not both"),
        (["m.jsonl", "--allow-unknown"], "none is unknown"),
        (["--ref", "r", "--hyp", "h", "--beam-size", "3"], "--beam-size: nothing is decoded"),
        (["--ref", "r", "--hyp", "h", "-m", "x"], "--model: nothing is decoded"),
        (["--ref", "r", "--hyp", "h", "--ci", "1"], "1 is not between 0 and 1"),
        (["--ref", "r", "--hyp", "h", "--ci", "nan"], "nan is not between 0 and 1"),
        (["--ref", "r", "--hyp", "h", "--seed", "-1"], "-1"),
        (["--ref", "r", "--hyp", "h", "--normalizer", "german"], "german"),
        (["--ref", "r", "--hyp", "h", "--significance"], "--hyp2"),
        (["--hyp2", "h"], "both --ref and --hyp"),
        (["m.jsonl", "--hyp2", "h"], "not both"),
        (["m.jsonl", "--significance"], "--hyp2"),
        (["--ref", "r", "--hyp", "h", "--aligner", "kaldi"], "kaldi"),
        (["--ref", "r", "--hyp", "h", "--html", "/nowhere/x"], "--html /nowhere/x: the folder"),
        (["--ref", "r", "--hyp", "h", "--json", "/nowhere/x"], "/nowhere does not exist"),
        (["--ref", "r", "--hyp", "h", "--json", "/"], "is a folder"),
    ],
)
def test_usage_errors(flags: list[str], message: str, capsys) -> None:
    assert message in ran(["evaluate", *flags], capsys, status=2)


def test_bad_files_are_named(files: list[str], capsys) -> None:
    with open(files[4], "a", encoding="utf-8") as file:
        file.write("again (a)\n")
    message = ran(files, capsys, status=1)
    assert message.startswith(f"asr: error: {files[4]}: line 3: id 'a'")
    assert "cannot be read" in ran([*files[:-1], "nothing"], capsys, status=1)


def test_a_group_that_nobody_has(files: list[str], capsys) -> None:
    assert "no utterance has 'accent'" in ran([*files, "--group", "accent"], capsys, status=1)


def test_scoring_files_imports_no_torch(files: list[str]) -> None:
    code = (
        "import sys; from asr.cli.main import main; status = main(sys.argv[1:]);"
        "assert 'torch' not in sys.modules; sys.exit(status)"
    )
    subprocess.run([sys.executable, "-c", code, *files, "--group", "room"], check=True)


class Fake:
    """Writes what its script has for an id; word i starts 30 (i + 1) ms late."""

    sample_rate = 8000

    def __init__(self, script: dict[str, str]) -> None:
        self.script = script
        self.seconds: dict[str, float] = {}

    def __call__(self, waves, *, record=False):
        from asr.types import Transcript, Word

        found = []
        for wave in waves:
            text = self.script[wave.id]
            words = tuple(
                Word(word, 0.5 * index + 0.03 * (index + 1), 0.5 * index + 0.4, 1.0)
                for index, word in enumerate(text.split())
            )
            self.seconds[wave.id] = wave.duration
            model, decoding = {"name": "fake", "fingerprint": "f"}, {"beam_size": 2}
            found.append(
                Transcript(wave.id, text, words, wave.duration, model=model, decoding=decoding)
            )
        return found


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    sound = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
    soundfile.write(tmp_path / "long.wav", sound, 8000)
    (tmp_path / "broken.wav").write_bytes(b"RIFF no sound")
    timed = [{"word": w, "start": 0.5 * i, "end": 0.5 * i + 0.4} for i, w in enumerate("xyz")]
    rows = [
        {"id": "right", "audio": "long.wav", "text": "x y z", "words": timed, "speaker": "s"},
        {"id": "wrong", "audio": "long.wav", "text": "one", "words": timed[:1], "speaker": "t"},
        {"id": "piece", "audio": "long.wav", "text": "two", "start": 0.5, "end": 1.25, "mic": "m"},
    ]
    path = tmp_path / "manifest.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def add_row(manifest: Path, **row: object) -> None:
    with open(manifest, "a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(row))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    transcriber = Fake({"right": "x y z", "wrong": "won", "piece": "two", "late": "two"})
    monkeypatch.setattr("asr.cli.evaluate.transcriber_from", lambda args: transcriber)
    return transcriber


def test_decodes_a_manifest(manifest: Path, fake: Fake, tmp_path: Path, capsys) -> None:
    out = ran(["evaluate", str(manifest), "--json", str(tmp_path / "o.json")], capsys)
    assert "20.00" in out.splitlines()[1]
    assert "word onsets: median error 60 ms, 100.00 % within 100 ms (3 words, 1 of 2" in out
    report = json.loads((tmp_path / "o.json").read_text())
    assert report["onsets"]["median"] == pytest.approx(0.06)
    assert report["model"] == {"name": "fake", "fingerprint": "f"}
    assert report["decoding"] == {"beam_size": 2}
    assert report["failed"] == {}
    assert fake.seconds == {"right": 2.0, "wrong": 2.0, "piece": 0.75}
    assert "mic" in ran(["evaluate", str(manifest), "--group", "mic"], capsys)
    by_duration = ran(["evaluate", str(manifest), "--group", "duration"], capsys)
    assert "\n0.75 " in by_duration and "\n2 " in by_duration  # seconds that were decoded


def test_unreadable_audio_counts_as_deleted(
    manifest: Path, fake: Fake, tmp_path: Path, capsys
) -> None:
    add_row(manifest, id="bad", audio="broken.wav", text="five more words are lost")
    add_row(manifest, id="gone", audio="nothing.wav", text="six")
    add_row(manifest, id="late", audio="long.wav", text="two", start=9.0)
    assert main(["evaluate", str(manifest), "--json", str(tmp_path / "o.json")]) == 1
    out, err = capsys.readouterr()
    report = json.loads((tmp_path / "o.json").read_text())
    assert (report["errors"], report["deletions"], report["reference_words"]) == (8, 7, 12)
    assert report["missing"] == ["bad", "gone", "late"]
    assert list(report["failed"]) == ["bad", "gone", "late"]
    assert err.count("counted as deleted") == 3
    assert "broken.wav" in err
    assert "nothing.wav" in err
    assert "3 ('bad', 'gone', 'late')" in out


def test_outputs_are_checked_before_the_model_is_loaded(
    manifest: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr("asr.cli.evaluate.transcriber_from", lambda args: pytest.fail("loaded"))
    for flag in ("--json", "--html"):
        for place in ("nowhere/x", ".", f"{manifest.name}/x", "n" * 250):
            words = ["evaluate", str(manifest), flag, str(manifest.parent / place)]
            assert f"{flag} " in ran(words, capsys, status=2)
    assert not list(manifest.parent.glob(".*"))


def test_a_report_that_cannot_be_written_costs_no_other(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def full(*arguments: object) -> None:
        raise InputError("x.json: No space left on device")

    monkeypatch.setattr("asr.evaluation.files.write", full)
    words = [*files, "--json", str(tmp_path / "x.json"), "--html", str(tmp_path / "x.html")]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert "WER" in out and err == "asr: error: x.json: No space left on device\n"
    assert (tmp_path / "x.html").exists()


def test_empty_manifest(tmp_path: Path, capsys) -> None:
    (tmp_path / "m.jsonl").write_text("\n")
    assert "no utterance" in ran(["evaluate", str(tmp_path / "m.jsonl")], capsys, status=1)


def test_reports_replace_no_link_and_no_input(tmp_path: Path) -> None:
    for name, text in (("ref", "a\tone two\n"), ("hyp", "a\tone\n")):
        (tmp_path / f"{name}.tsv").write_text(text)
    scored = ["evaluate", "--ref", str(tmp_path / "ref.tsv"), "--hyp", str(tmp_path / "hyp.tsv")]
    for flag in ("--json", "--html"):
        target, link = tmp_path / "target", tmp_path / "link"
        target.write_text("old")
        link.symlink_to(target)
        assert main([*scored, flag, str(link)]) == 0
        assert link.is_symlink() and len(target.read_text()) > 100
        link.unlink()
        for taken in ("ref.tsv", "hyp.tsv"):
            before = (tmp_path / taken).read_text()
            assert main([*scored, flag, str(tmp_path / taken)]) == 2
            assert (tmp_path / taken).read_text() == before
    both = str(tmp_path / "new")
    assert main([*scored, "--json", both, "--html", both]) == 2
    assert not (tmp_path / "new").exists()
