"""Long files are read in blocks, as often as needed, or only in part."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from asr import audio
from asr.audio import decoders, load, sounds
from asr.errors import InputError
from asr.types import Waveform
from tests.audio.files import RATE, encoded, tone


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "_BLOCK", 5000)


def both(data: bytes, **options: Any) -> tuple[list[Waveform], list[audio.Recording]]:
    """The same, held and not held."""
    held = sounds(io.BytesIO(data), RATE, **options)
    read = sounds(io.BytesIO(data), RATE, longest=0.1, **options)
    assert all(isinstance(each, Waveform) for each in held)
    assert all(isinstance(each, audio.Recording) for each in read)
    return held, read


@pytest.mark.parametrize("rate", [RATE, 44100])
@pytest.mark.parametrize("channel", ["mix", "split", 1])
@pytest.mark.usefixtures("small_blocks")
def test_a_long_file_is_read_in_blocks_as_often_as_needed(rate: int, channel: Any) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (rate, 2))
    waves, recordings = both(encoded(noise, rate), channel=channel)
    assert len(waves) == len(recordings) == (2 if channel == "split" else 1)
    for wave, recording in zip(waves, recordings, strict=True):
        for _ in range(2):
            blocks = list(recording.blocks())
            assert len(blocks) > 3 and torch.equal(torch.cat(blocks), wave.samples)
        assert recording.duration == wave.duration
        assert (recording.source_rate, recording.source_channels) == (rate, 2)
        cell = round(audio.METER * RATE)
        cells = wave.samples[: len(wave.samples) // cell * cell].view(-1, cell)
        assert torch.allclose(recording.energies, cells.square().mean(-1), rtol=1e-4)


@pytest.mark.usefixtures("small_blocks")
def test_a_long_file_in_units_of_its_own_and_cut_short() -> None:
    data = encoded(tone(seconds=2) * 32768, codec="FLOAT")[:-40000]
    (wave,), (recording,) = both(data)
    assert torch.allclose(torch.cat(list(recording.blocks())), wave.samples)
    assert wave.samples.abs().max() <= 1
    assert recording.energies[5] == pytest.approx(0.5, rel=0.05)  # of a sine that reaches 1
    assert recording.warnings == wave.warnings != ()


def test_a_long_stream_is_read_again(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    data = encoded(tone(seconds=0.5))
    writer = threading.Thread(target=lambda: (os.write(writing, data), os.close(writing)))
    writer.start()
    with open(reading, "rb", buffering=0) as stream:
        (recording,) = sounds(stream, RATE, longest=0.1)
    writer.join()
    assert torch.equal(torch.cat(list(recording.blocks())), load(io.BytesIO(data), RATE).samples)
    gone = tmp_path / "gone.wav"
    gone.write_bytes(data)
    (recording,) = sounds(gone, RATE, longest=0.1)
    gone.unlink()
    with pytest.raises(InputError, match="gone.wav"):
        list(recording.blocks())


@pytest.mark.parametrize("longest", [0.1, 100.0])
@pytest.mark.usefixtures("small_blocks")
def test_a_stretch_of_a_file(longest: float) -> None:
    data = encoded(np.random.default_rng(0).normal(0, 0.1, 2 * RATE), codec="FLOAT")
    whole = load(io.BytesIO(data), RATE).samples
    for start, end in [(0.0, 0.5), (0.3, 1.7), (0.5, None), (1.9, 9.0), (0.7, 0.7), (2.0, None)]:
        (found,) = sounds(io.BytesIO(data), RATE, start=start, end=end, longest=longest)
        blocks = list(found.blocks()) if isinstance(found, audio.Recording) else [found.samples]
        expected = whole[round(start * RATE) : None if end is None else round(end * RATE)]
        assert torch.equal(torch.cat(blocks), expected)
        assert found.duration == len(expected) / RATE
    with pytest.raises(InputError, match="over after 2.00 s, before 2.5 s"):
        sounds(io.BytesIO(data), RATE, start=2.5, longest=longest)


def test_a_stretch_needs_nothing_that_comes_after_it() -> None:
    """Damage behind it is not even read."""
    data = encoded(tone(seconds=3), format="FLAC")
    (found,) = sounds(io.BytesIO(data[: len(data) * 2 // 3]), RATE, end=0.2)
    assert found.duration == 0.2 and found.warnings == ()
