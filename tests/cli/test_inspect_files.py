"""Which files `asr inspect` writes: never one that is there, or read, or had by another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.inspection import page
from asr.inspection.contents import contents


@pytest.fixture
def long(sounds: Path) -> Path:
    """Four seconds, which the model listens to in three pieces."""
    noise = 0.1 * np.random.default_rng(0).standard_normal(16000 * 4)
    soundfile.write(sounds / "long.wav", noise, 16000)
    return sounds / "long.wav"


@pytest.fixture
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page for every piece."""
    assert page.write.__kwdefaults__
    monkeypatch.setitem(page.write.__kwdefaults__, "limit", 1000)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asr.cli.shown.transcriber_from", lambda args: pytest.fail("loaded"))


def names() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if path.is_file())


def test_a_piece_overwrites_nothing(ask, long) -> None:
    Path("long-2.npz").write_text("mine")
    status, out, err = ask(long, "--export", "npz,png")
    assert (status, out) == (1, "report.html\n")
    assert "asr: error: " in err and "long-2.npz: there already" in err
    assert Path("long-2.npz").read_text() == "mine"
    pictures = ["long-2.png", "long-3.png", "long.png"]
    assert names() == ["long-2.npz", *pictures, "report.html"]  # none of npz, all of the rest
    assert ask(long, "--export", "npz", "--on-exists", "overwrite")[0] == 0
    assert Path("long-2.npz").read_bytes() != b"mine"


def test_a_pages_continuation_overwrites_nothing(ask, long, short_pages) -> None:
    Path("report-2.html").write_text("mine")
    status, out, err = ask(long)
    assert (status, out) == (1, "") and "report-2.html: there already" in err
    assert names() == ["report-2.html"] and Path("report-2.html").read_text() == "mine"
    assert ask(long, "--on-exists", "overwrite")[0] == 0
    assert names() == ["report-2.html", "report-3.html", "report.html"]
    assert contents(Path("report-2.html")) is not None


def test_a_piece_takes_no_other_inputs_name(ask, sounds, long) -> None:
    (sounds / "two.wav").rename(sounds / "long-2.wav")
    status, _, err = ask(long, sounds / "long-2.wav", "--export", "npz")
    assert status == 1 and "1 of 2 inputs failed" in err
    assert "long-2.npz: cannot be both the npz of long-2 and the npz of long, piece 2" in err
    assert names() == ["long-2.npz", "report.html"]
    with np.load("long-2.npz") as file:
        assert str(file["id"]) == "long-2"


@pytest.mark.parametrize("policy", ["error", "skip", "overwrite"])
@pytest.mark.parametrize(
    "words",
    [
        ["one.wav", "-o", "one.png", "--export", "png"],
        ["one.wav", "-o", "one.wav"],
        ["one.wav", "-o", "link.html"],
        ["one.png", "--export", "png"],
        ["@list.html", "-o", "list.html"],
        ["m.jsonl", "-o", "m.jsonl"],
        ["one.wav", "two/one.wav", "--export", "npz"],
    ],
)
def test_outputs_meet_neither_inputs_nor_one_another(
    ask, sounds, monkeypatch, unloaded, policy, words
) -> None:
    monkeypatch.chdir(sounds)
    (sounds / "two").mkdir()
    for name in ("one.png", "two/one.wav"):
        (sounds / name).write_bytes((sounds / "one.wav").read_bytes())
    (sounds / "link.html").symlink_to("one.wav")
    (sounds / "list.html").write_text("one.wav\n")
    before = {name: Path(name).read_bytes() for name in names()}
    status, out, err = ask(*words, "--on-exists", policy)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1
    assert {name: Path(name).read_bytes() for name in names()} == before


def test_the_bundle_is_not_overwritten(ask, sounds, noise_model, unloaded) -> None:
    page = Path(noise_model) / "config.json"
    before = page.read_bytes()
    status, _, err = ask(sounds / "one.wav", "-o", page, "--on-exists", "overwrite")
    assert status == 2 and "cannot be both the model and the page" in err
    assert page.read_bytes() == before


def test_skip_makes_what_is_missing_and_leaves_the_rest(ask, long, sounds, short_pages) -> None:
    asked = [long, sounds / "one.wav", "--export", "npz,png", "--on-exists", "skip"]
    assert ask(*asked)[0] == 0
    made = names()
    for name in ("long-2.npz", "long-3.npz", "long.npz", "one.png"):
        left = [path for path in made if path != name and path.endswith(("npz", "png"))]
        for path in left:
            Path(path).write_text("kept")
        Path(name).unlink()
        assert ask(*asked)[:2] == (0, ""), name
        assert names() == made
        assert all(Path(path).read_text() == "kept" for path in left)
        assert Path(name).read_bytes() != b"kept"


def test_skip_looks_at_every_page(ask, long, short_pages, monkeypatch) -> None:
    assert ask(long)[0] == 0
    made = names()
    for name in made:
        Path(name).unlink()
        status, out, _ = ask(long, "--on-exists", "skip")
        assert (status, out.split()) == (0, ["report.html", "report-2.html", "report-3.html"])
        assert names() == made
    monkeypatch.setattr("asr.cli.shown.transcriber_from", lambda args: pytest.fail("loaded"))
    status, out, err = ask(long, "--on-exists", "skip")
    assert (status, out) == (0, "") and err == "asr: report.html: there already, skipped\n"


def test_skip_replaces_no_page_of_somebody_elses(ask, long, short_pages) -> None:
    Path("report-2.html").write_text("mine")
    status, out, err = ask(long, "--on-exists", "skip")
    assert (status, out) == (1, "") and "report-2.html: there already" in err
    assert names() == ["report-2.html"] and Path("report-2.html").read_text() == "mine"


def test_skip_asks_for_no_attention_where_nothing_was_heard(ask, sounds, unloaded, monkeypatch):
    soundfile.write(sounds / "silent.wav", np.zeros(8000), 16000)
    monkeypatch.undo()
    asked = [sounds / "silent.wav", "-o", sounds / "r.html", "--export", "npz"]
    assert ask(*asked)[0] == 0
    status, _, err = ask(*asked, "--on-exists", "skip")
    assert status == 0 and err.endswith("r.html: there already, skipped\n")
    assert len(err.splitlines()) == 1  # nothing was loaded
