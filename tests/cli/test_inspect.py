"""`asr inspect`: every flag does something; what goes wrong is one line and a status."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile
from matplotlib._pylab_helpers import Gcf

from asr.cli.main import main
from asr.inference import bundle
from asr.inspection.page import write
from asr.nn.encoders.pyramidal import Pyramidal
from asr.text import CharacterTokenizer
from tests.html_page import Parsed, shown
from tests.inference.conftest import CARD, tiny


def test_a_page_for_every_input(ask, sounds):
    status, out, _ = ask(sounds)
    assert (status, out) == (0, "report.html\n")
    assert shown("report.html") == ["one", "two"]
    assert not any("dictated" in text for text in shown("report.html", "span"))
    data = Parsed(Path("report.html").read_text()).data()
    assert [d["duration"] for d in data] == [0.8, 0.5]
    for each in data:
        assert len(each["scales"][0]) == len(each["tokens"])
        assert 0 <= each["frames"] * each["shift"] - each["duration"] < each["shift"]


def test_a_forced_text_is_what_is_shown_and_labelled(ask, sounds):
    status, _, _ = ask(sounds / "one.wav", "--text", "a bad cab", "-o", "sub/page.html")
    assert status == 0
    assert any("dictated" in text for text in shown("sub/page.html", "span"))
    (data,) = Parsed(Path("sub/page.html").read_text()).data()
    assert data["tokens"] == [*"a␣bad␣cab", "<eos>"]
    assert [word for word, *_ in data["words"]] == ["a", "bad", "cab"]


def test_a_text_in_free_mode_is_only_shown_beside(ask, sounds):
    ask(sounds / "one.wav", "--text", "a bad cab", "--mode", "free")
    assert "a bad cab" in shown("report.html", "p")
    assert not any("dictated" in text for text in shown("report.html", "span"))


def test_a_manifest_says_what_is_spoken(ask, sounds):
    manifest = sounds / "m.jsonl"
    # Alone it brings the recordings, too.
    status, out, err = ask("--manifest", manifest)
    assert (status, out) == (1, "report.html\n") and "asr: error: u/2: there is no text" in err
    (data,) = Parsed(Path("report.html").read_text()).data()
    assert shown("report.html") == ["u/1"] and data["tokens"] == [*"a␣bad␣cab", "<eos>"]
    # With inputs it is asked by id.
    rows = [{"id": "two", "audio": "gone.wav", "text": "bad"}, {"id": "one", "audio": "gone.wav"}]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, _, err = ask("-o", "two.html", sounds / "two.wav", "--manifest", manifest)
    assert status == 0, err
    assert Parsed(Path("two.html").read_text()).data()[0]["tokens"] == [*"bad", "<eos>"]
    free = ["--mode", "free", "--beam-size", "1"]
    status, _, err = ask(sounds, "--manifest", manifest, "-o", "free.html", *free)
    assert status == 0 and shown("free.html") == ["one", "two"]
    assert [text for text in shown("free.html", "p") if text == "bad"] == ["bad"]
    assert not any("dictated" in text for text in shown("free.html", "span"))
    status, out, err = ask(sounds / "one.wav", "--manifest", manifest, "-o", "x.html")
    assert (status, out) == (2, "") and f"force; {manifest} has none for these inputs" in err


def test_channels(ask, sounds):
    noise = 0.1 * np.random.default_rng(1).standard_normal((8000, 2))
    soundfile.write(sounds / "both.wav", noise, 16000)
    soundfile.write(sounds / "left.wav", noise[:, 0], 16000)
    found = {}
    for channel in ("mix", "0", "1", "split"):
        page = f"{channel}.html"
        assert ask(sounds / "both.wav", "--channel", channel, "-o", page)[0] == 0
        parsed = Parsed(Path(page).read_text())
        found[channel] = [a["src"] for a in parsed.all("audio")]
    assert found["split"] == [*found["0"], *found["1"]] and found["mix"] != found["0"]
    ask(sounds / "left.wav", "-o", "left.html")
    assert [a["src"] for a in Parsed(Path("left.html").read_text()).all("audio")] == found["0"]
    assert shown("split.html") == ["both.ch0", "both.ch1"]
    exported = ["--export", "npz,ctm", "--channel", "split", "-o", "s.html"]
    assert ask(sounds / "both.wav", *exported, "--on-exists", "skip")[0] == 0
    names = {f"both.ch{index}.{form}" for index in (0, 1) for form in ("npz", "ctm")}
    assert names < {path.name for path in Path().iterdir()}
    assert ask(sounds / "both.wav", *exported)[0] == 2
    Path("s.html").unlink()
    status, _, err = ask(sounds / "both.wav", *exported)
    assert status == 2 and "both.ch0.npz and 3 more: there already" in err
    status, _, err = ask(sounds / "both.wav", "--channel", "2", "-o", "y.html")
    assert status == 1 and "both.wav: " in err and "channel" in err


@pytest.mark.parametrize("mode", [[], ["--text", "a bad cab"]])
def test_the_listeners_matrices(ask, sounds, mode):
    one = sounds / "one.wav"
    forms = ["--export", "npz,png,svg"]
    assert ask(one, "--layers", "all", *mode, *forms)[0] == 0
    (whole,) = Parsed(Path("report.html").read_text()).data()
    assert [m["name"] for m in whole["listener"]] == ["block0, head 0", "block0, head 1"]
    made = {"report.html", "one.npz", "one.png", "one.svg", "one.listener.png", "one.listener.svg"}
    assert {path.name for path in Path().iterdir()} == made
    with np.load("one.npz") as file:
        both = file["listener/block0"]
        assert file["listener_heads"].tolist() == [0, 1]
        frames = file["weights"].shape[-1]
    assert both.shape == (2, frames, frames) and whole["cell"] == whole["shift"]
    np.testing.assert_allclose(both.sum(-1), 1, atol=1e-5)
    assert "asr: error" in ask(one, "--layers", "0", *mode, *forms, "-o", "r.html")[2]
    for layers in ("0", "block0", "all,0"):
        asked = ["--layers", layers, "--heads", "1", *mode, "--on-exists", "overwrite"]
        assert ask(one, *asked, "--export", "npz")[0] == 0
        (part,) = Parsed(Path("report.html").read_text()).data()
        assert part["listener"] == whole["listener"][1:]
        with np.load("one.npz") as file:
            np.testing.assert_array_equal(file["listener/block0"], both[1:])
            assert file["listener_heads"].tolist() == [1]
    assert ask(one, *mode, "--on-exists", "overwrite", "--export", "npz")[0] == 0
    assert "listener" not in Parsed(Path("report.html").read_text()).data()[0]
    with np.load("one.npz") as file:
        assert not [name for name in file if name.startswith("listener")]


def test_a_failure_to_export_is_told_though_the_page_fails(ask, sounds, monkeypatch):
    Path("one-2.npz").touch()
    monkeypatch.setitem(write.__kwdefaults__, "limit", 1000)
    noise = 0.1 * np.random.default_rng(0).standard_normal(16000 * 3)
    soundfile.write(sounds / "one.wav", noise, 16000)
    Path("report-2.html").touch()
    status, out, err = ask(sounds / "one.wav", "--export", "npz")
    assert (status, out) == (1, "")
    assert "one-2.npz: there already" in err and "report-2.html: there already" in err


def test_layers_and_heads_that_there_are_not(ask, sounds, tmp_path):
    one = sounds / "one.wav"
    status, out, err = ask(one, "--layers", "block0,block7")
    assert (status, out) == (2, "")
    assert "--layers block7: noise has no such layer; valid are all, block0 or 0 to 0" in err
    status, _, err = ask(one, "--layers", "1")
    assert status == 2 and "--layers 1: " in err
    status, _, err = ask(one, "--layers", "0", "--heads", "0,2")
    assert status == 2 and "--heads 2: the listener of noise has heads 0 to 1" in err
    path = tmp_path / "pyramid"
    made = tiny(encoder=partial(Pyramidal, dim=16, layers=1))
    bundle.save(path, made, CharacterTokenizer(" abcdefgh'"), card=CARD)
    status, _, err = ask(one, "-m", path, "--layers", "all")
    assert status == 2 and "the listener of pyramid has no self-attention" in err
    assert not list(Path().iterdir())


def test_word_times_are_written_as_transcribe_writes_them(ask, sounds, noise_model):
    noise = 0.1 * np.random.default_rng(0).standard_normal(16000 * 3)
    soundfile.write(sounds / "long.wav", noise, 16000)
    soundfile.write(sounds / "silent.wav", np.zeros(8000), 16000)
    forms = "textgrid,ctm"
    inputs = [str(sounds / f"{name}.wav") for name in ("one", "long", "silent")]
    assert ask(*inputs, "--export", f"{forms},npz")[0] == 0
    assert main(["transcribe", "-m", noise_model, *inputs, "-o", "t", "-f", forms]) == 0
    written = sorted(Path("t").iterdir())
    assert len(written) == 6
    for path in written:
        assert Path(path.name).read_bytes() == path.read_bytes()
    assert len(list(Path().glob("long*.npz"))) > 1 and len(list(Path().glob("long*.ctm"))) == 1


def test_manifests_bring_their_texts(ask, sounds):
    status, out, err = ask(sounds / "m.jsonl", "--mode", "forced")
    assert status == 1 and out == "report.html\n"
    assert "asr: error: u/2: there is no text to force" in err
    assert "1 of 2 inputs failed" in err
    assert shown("report.html") == ["u/1"]
    assert ask(sounds / "m.jsonl", "-o", "free.html")[0] == 0
    assert "a bad cab" in shown("free.html", "p")


def test_exports(ask, sounds):
    status, _, err = ask(sounds, "--export", "npz,png,svg", "-o", "x/r.html")
    assert status == 0, err
    names = {f"{name}.{form}" for name in ("one", "two") for form in ("npz", "png", "svg")}
    assert {path.name for path in Path("x").iterdir()} == {"r.html", *names}
    with np.load("x/one.npz") as file:
        np.testing.assert_allclose(file["weights"].sum(-1), 1, atol=1e-3)
    assert not Gcf.figs


def test_what_is_there_already(ask, sounds):
    Path("report.html").write_text("mine")
    status, out, err = ask(sounds / "one.wav")
    assert (status, out) == (2, "") and err.startswith("asr: error: report.html: there already")
    status, out, err = ask(sounds / "one.wav", "--on-exists", "skip")
    assert (status, out) == (0, "") and "skipped" in err
    assert Path("report.html").read_text() == "mine"
    status, out, _ = ask(sounds / "one.wav", "--on-exists", "skip", "--export", "npz")
    assert (status, out) == (0, "") and Path("one.npz").exists()
    assert Path("report.html").read_text() == "mine"
    assert ask(sounds / "two.wav", "--on-exists", "overwrite")[0] == 0
    assert shown("report.html") == ["two"]


def test_failures_are_lines_and_the_rest_goes_on(ask, sounds):
    (sounds / "bad.wav").write_bytes(b"not sound")
    status, out, err = ask(sounds, sounds / "missing.wav")
    assert (status, out) == (1, "report.html\n")
    assert shown("report.html") == ["one", "two"]
    errors = [line for line in err.splitlines() if line.startswith("asr: error: ")]
    assert len(errors) == 2
    assert "missing.wav" in errors[0] and "bad.wav" in errors[1]


def test_no_page_where_everything_failed(ask, sounds):
    (sounds / "bad.wav").write_bytes(b"not sound")
    status, out, _ = ask(sounds / "bad.wav")
    assert (status, out) == (1, "") and not Path("report.html").exists()


def test_sound_with_nothing_to_hear(ask, sounds):
    soundfile.write(sounds / "none.wav", np.zeros(0), 16000)
    soundfile.write(sounds / "silent.wav", np.zeros(8000), 16000)
    asked = [sounds / "none.wav", sounds / "silent.wav"]
    status, _, err = ask(*asked, "--export", "npz,png")
    assert status == 0, err
    assert shown("report.html") == ["none", "silent"]
    assert [path.name for path in Path().iterdir()] == ["report.html"]
    unwritten = "nothing was heard, so there is no attention to write as npz, png"
    assert err.splitlines()[1:] == [
        f"asr: warning: {asked[0]}: there are no samples (0.00 to 0.00 s)",
        f"asr: warning: {asked[0]}: {unwritten}",
        f"asr: warning: {asked[1]}: there is only silence (0.00 to 0.50 s)",
        f"asr: warning: {asked[1]}: {unwritten}",
    ]
    assert "there is only silence (0.00–0.50 s)" in " ".join(shown("report.html", "p"))
    assert ask(*asked, "--on-exists", "overwrite", "--quiet")[2] == ""


def test_what_there_is_to_be_wary_of_goes_to_standard_error_too(ask, sounds):
    _, _, err = ask(sounds / "one.wav", "--text", "a zebra")
    assert f"asr: warning: {sounds / 'one.wav'}: the model cannot write" in err
    assert any("the model cannot write" in text for text in shown("report.html", "p"))


def test_long_sound_is_shown_in_pieces(ask, sounds):
    samples = 0.1 * np.random.default_rng(0).standard_normal(16000 * 5)
    soundfile.write(sounds / "long.wav", samples, 16000)
    status, _, err = ask(sounds / "long.wav", "--export", "npz", "--beam-size", "1")
    assert status == 0, err
    data = Parsed(Path("report.html").read_text()).data()
    assert len(data) > 1 and data[0]["start"] == 0.0
    assert sum(d["duration"] for d in data) == pytest.approx(5.0)
    assert len(list(Path().glob("*.npz"))) == len(data)


def test_decoding_flags_reach_the_search(ask, sounds):
    ask(sounds / "one.wav", "--beam-size", "1", "--ctc-weight", "0.0")
    facts = shown("report.html", "dt")
    values = dict(zip(facts, shown("report.html", "dd"), strict=True))
    assert (values["beam size"], values["ctc weight"]) == ("1", "0")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a.wav", "b.wav", "--text", "x"], "--text: belongs to one input, and there are 2"),
        (["a.wav", "-o", "."], "is a folder; name a file"),
        (["a.wav", "--export", "pdf"], "pdf is not among npz, png, svg, textgrid, ctm"),
        (["a.wav", "--text", "a", "--manifest", "m.jsonl"], "--text and --manifest: both say"),
        (["a.wav", "--manifest", "m.jsonl"], "m.jsonl has none for these inputs"),
        (["a.wav", "--manifest", "m.jsonl", "-o", "m.jsonl", "--mode", "free"], "the manifest"),
        (["a.wav", "--manifest", "gone"], "--manifest gone: no such file"),
        (["a.wav", "--compare", "gone"], "--compare gone: no such model bundle"),
        (["a.wav", "--heads", "0"], "--heads: of which layers? Give --layers too"),
        (["a.wav", "--layers", "0", "--heads", "first"], "'first' is not a number from 0"),
        (["a.wav", "--layers", ","], "is empty; all, numbers from 0, or names are expected"),
        (["a.wav", "--channel", "left"], "'left' is neither mix, split nor a number from 0"),
        (["a.wav", "--mode", "beam"], "invalid choice: 'beam'"),
        (["a.wav", "--mode", "forced"], "--mode forced: there is no text to force"),
        (["a.wav", "--text", " "], "--text: is empty"),
        (["a.wav", "--text", "a", "--beam-size", "2"], "--beam-size: nothing is searched for"),
        (["a.wav", "-o", f"{'n' * 250}.html"], "cannot be written (File name too long)"),
        (["a.wav", "-o", "b.wav/r.html"], "b.wav: cannot be written to"),
        ([], "INPUT"),
    ],
)
def test_usage_errors(ask, words, says, monkeypatch):
    monkeypatch.setattr("asr.cli.shown.transcriber_from", lambda args: pytest.fail("loaded"))
    for name in ("a.wav", "b.wav"):
        Path(name).touch()
    Path("m.jsonl").write_text('{"id": "b", "audio": "b.wav", "text": "a"}\n')
    status, out, err = ask(*words)
    assert (status, out) == (2, "")
    assert says in err and len(err.splitlines()) == 1


def test_help_and_usage_errors_import_no_torch():
    wrong = [["a", "b", "--text", "x"], [__file__, "--mode", "forced"], [__file__, "--text="]]
    code = (
        "import sys; from asr.cli.main import main\n"
        f"for words in {[['--help'], *wrong]}:\n    status = main(['inspect', *words])\n"
        "sys.exit('torch' in sys.modules or status != 2)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
