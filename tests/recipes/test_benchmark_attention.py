"""The scripts that time attention run, agree with a peer where there is one, and print what they
promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from recipes.benchmark import attention_step, measuring, self_attention

ROOT = Path(__file__).parents[2]


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_self_attention(capsys, monkeypatch) -> None:
    monkeypatch.setattr(self_attention, "installed", lambda name: False)
    monkeypatch.setattr(
        self_attention, "measure_memory", lambda args, name, length: 1000.0 * length**1.5
    )
    sizes = ["--batch", "2", "--dim", "16", "--heads", "2", "--repeats", "1", "--threads", "1"]
    self_attention.main([*sizes, "--lengths", "8", "32", "--timed", "20"])
    found = lines(capsys.readouterr().out)
    assert all({"name", "metric", "value", "unit"} <= line.keys() for line in found)
    for name in self_attention.OURS:
        own = [line for line in found if line["name"] == name]
        peaks = {x["frames"]: x["value"] for x in own if x["metric"] == "peak_memory"}
        assert set(peaks) == {8, 20, 32}
        (slope,) = [x for x in own if x["metric"] == "memory_growth_exponent"]
        assert slope["value"] == pytest.approx(1.5)
        assert ("at_most" in slope) == (name in {"rotary", "relative"})
        (time,) = [x for x in own if x["metric"] == "time"]
        assert time["value"] > 0 and time["frames"] == 20


def test_attention_step(capsys, monkeypatch) -> None:
    monkeypatch.setattr(attention_step, "installed", lambda name: False)
    sizes = ["--utterances", "2", "--rows", "3", "--frames", "5", "9", "--encoder-dim", "8"]
    sizes += ["--query-dim", "6", "--dim", "4", "--kernel", "3", "--repeats", "2", "--threads", "1"]
    attention_step.main(sizes)
    found = lines(capsys.readouterr().out)
    assert [(x["name"], x["metric"], x["frames"]) for x in found] == [
        (name, "time", frames)
        for frames in (5, 9)
        for name in ("location_aware", "location_aware_both")
    ]
    assert all(line["value"] > 0 and line["rows"] == 3 for line in found)


def test_the_step_that_is_timed_is_the_mechanisms() -> None:
    states, queries = torch.randn(2, 7, 8), torch.randn(6, 5)
    previous = torch.softmax(torch.randn(6, 7), -1)
    with torch.inference_mode():
        step, made = attention_step.own(states, queries, previous, dim=4, convolve="previous")
        weights = step()
        other, _ = attention_step.own(states, queries, previous.flip(1), dim=4)
        assert weights.shape == (6, 7) and not torch.allclose(weights, other())
    torch.testing.assert_close(weights.sum(1), torch.ones(6))
    pytest.importorskip("speechbrain", reason="SpeechBrain is not installed")
    with torch.inference_mode():
        theirs = attention_step.speechbrains(states, queries, previous, made)()
    torch.testing.assert_close(theirs, weights, atol=1e-5, rtol=1e-4)


def test_times_are_compared_round_by_round(capsys) -> None:
    times = {"ours": [1.0, 2.0, 3.0], "theirs": [3.0, 2.0, 9.0]}
    measuring.report_times(times, ["theirs"], "time", frames=1)
    found = {line["name"]: line for line in lines(capsys.readouterr().out)}
    assert found["ours"]["value"] == 2000.0 and found["theirs"]["value"] == 3000.0
    assert found["ours/theirs"]["value"] == 3.0 and found["ours/theirs"]["unit"] == "ratio"


def test_growth_is_the_exponent() -> None:
    assert measuring.growth([1, 2, 4, 8], [3 * x**1.2 for x in (1, 2, 4, 8)]) == pytest.approx(1.2)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_is_what_a_call_takes_beyond_what_was_held() -> None:
    held = bytearray(40_000_000)
    taken = measuring.peak_memory(lambda: bytearray(90_000_000), lambda: bytearray(1000))
    assert 80_000_000 < taken < 110_000_000 and len(held) == 40_000_000


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's /proc")
def test_memory_that_was_used_before_hides_nothing() -> None:
    """In a process of its own; small blocks, which an allocator keeps when they are freed."""
    script = (
        "from recipes.benchmark import measuring\n"
        "small = lambda count: lambda: [bytearray(1000) for _ in range(count)]\n"
        "kept = [bytearray(1000) for _ in range(60_000)]\n"
        "last = kept[-1]\n"
        "del kept\n"
        "print(measuring.peak_memory(small(50_000), small(1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 45_000_000


@pytest.mark.slow
def test_as_scripts(tmp_path: Path) -> None:
    """From any folder, memory in processes of its own: it grows as length does."""
    sizes = ["--batch", "2", "--dim", "64", "--repeats", "1", "--names", "rotary", "relative",
             "--lengths", "500", "1000", "2000", "--timed", "500"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, ROOT / "recipes" / "benchmark" / "self_attention.py", *sizes],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    slopes = [x for x in lines(done.stdout) if x["metric"] == "memory_growth_exponent"]
    assert len(slopes) == 2 and all(0.6 < x["value"] < x["at_most"] for x in slopes)
    for script in ("attention_step", "loader", "gpu_check", "score", "intervals"):
        path = ROOT / "recipes" / "benchmark" / f"{script}.py"
        subprocess.run([sys.executable, path, "--help"], cwd=tmp_path, check=True,
                       capture_output=True)  # fmt: skip
