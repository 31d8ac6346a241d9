"""Sound of every kind comes out right."""

from __future__ import annotations

import io
import logging
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from asr import audio
from asr.audio import columns, decoders, load, load_channels, probe
from asr.errors import InputError
from tests.audio.files import RATE, by_ffmpeg, encoded, one_line, pitch, tone

LIBSNDFILE = [
    ("WAV", "PCM_16"), ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "DOUBLE"),
    ("WAV", "ULAW"), ("WAV", "ALAW"), ("WAV", "IMA_ADPCM"), ("WAVEX", "PCM_16"),
    ("RF64", "PCM_16"), ("W64", "PCM_16"), ("AIFF", "PCM_16"), ("AU", "ULAW"), ("CAF", "PCM_16"),
    ("NIST", "PCM_16"), ("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"),
    ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("VOC", "PCM_16"),
]  # fmt: skip
FFMPEG = [
    ("mp4", "aac", 16000), ("mp4", "aac", 44100), ("mov", "alac", 16000), ("adts", "aac", 16000),
    ("webm", "libopus", 48000), ("matroska", "aac", 16000), ("ac3", "ac3", 48000),
    ("mpegts", "aac", 16000),
]  # fmt: skip


@pytest.mark.parametrize(("format", "codec"), LIBSNDFILE)
@pytest.mark.parametrize("stream", [False, True], ids=["path", "stream"])
def test_what_libsndfile_writes(tmp_path: Path, format: str, codec: str, stream: bool) -> None:
    path = tmp_path / "sound.xyz"  # the content counts, not the suffix
    path.write_bytes(encoded(np.stack([tone(), 0.5 * tone()], axis=1), format=format, codec=codec))
    wave = load(io.BytesIO(path.read_bytes()) if stream else path, RATE)
    assert wave.samples.shape[0] == pytest.approx(RATE, abs=2500)  # lossy codecs pad
    assert wave.samples[2000:12000].abs().max() == pytest.approx(0.225, abs=0.02)
    assert pitch(wave.samples.numpy()) == pytest.approx(440, abs=2)
    assert (wave.sample_rate, wave.source_rate, wave.source_channels) == (RATE, RATE, 2)


@pytest.mark.parametrize(("format", "codec", "rate"), FFMPEG)
def test_what_ffmpeg_writes(tmp_path: Path, format: str, codec: str, rate: int) -> None:
    path = tmp_path / "sound"
    channels = np.stack([tone(rate)] * (1 if codec == "alac" else 2), axis=1)
    path.write_bytes(by_ffmpeg(channels, rate, format, codec))
    wave = load(path, RATE)
    assert wave.duration == pytest.approx(1, abs=0.2)
    assert pitch(wave.samples.numpy()) == pytest.approx(440, abs=2)
    assert wave.source_rate == rate and wave.source_channels == channels.shape[1]
    assert load(io.BytesIO(path.read_bytes()), RATE).samples.equal(wave.samples)


@pytest.mark.parametrize("rate", [4000, 8000, 11025, 22050, 32000, 44100, 48000, 96000, 192000])
def test_rates_from_4_to_192_khz(rate: int) -> None:
    wave = load(io.BytesIO(encoded(tone(rate), rate, codec="FLOAT")), RATE)
    assert abs(wave.samples.shape[0] - RATE) <= 2
    middle = wave.samples[2000:-2000].numpy()
    assert pitch(middle) == pytest.approx(440, abs=2)
    times = np.arange(2000, 2000 + len(middle)) / RATE
    assert np.abs(middle - 0.3 * np.sin(2 * np.pi * 440 * times)).max() < 0.002


def test_resampling_is_band_limited() -> None:
    """9 kHz cannot be had at 16 kHz: gone, not folded down to 7 kHz."""
    wave = load(io.BytesIO(encoded(tone(48000, hertz=9000), 48000, codec="FLOAT")), RATE)
    assert wave.samples[1000:-1000].abs().max() < 1e-3


def test_up_from_8_khz_leaves_no_image() -> None:
    wave = load(io.BytesIO(encoded(tone(8000, hertz=3000), 8000, codec="FLOAT")), RATE)
    spectrum = np.abs(np.fft.rfft(wave.samples.numpy() * np.hanning(len(wave.samples))))
    hertz = np.fft.rfftfreq(len(wave.samples), 1 / RATE)
    assert spectrum[hertz > 4500].max() < 1e-3 * spectrum.max()


def test_blocks_make_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(np.random.default_rng(0).normal(0, 0.1, (30000, 2)), 44100, codec="FLOAT")
    whole = load(io.BytesIO(data), RATE)
    monkeypatch.setattr(decoders, "_BLOCK", 1000)
    pieces = load(io.BytesIO(data), RATE)
    assert whole.samples.shape == pieces.samples.shape
    assert (whole.samples - pieces.samples).abs().max() < 1e-5


def test_low_rates_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    columns.warn_narrow.cache_clear()
    for _ in range(3):
        load(io.BytesIO(encoded(tone(8000), 8000)), RATE)
    load(io.BytesIO(encoded(tone())), RATE)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "8000 Hz" in caplog.text


def test_channels(caplog: pytest.LogCaptureFixture) -> None:
    data = encoded(np.stack([tone(), tone(hertz=880)], axis=1), codec="FLOAT")
    with caplog.at_level(logging.INFO):
        mixed = load(io.BytesIO(data), RATE, id="two").samples
    assert "two: 2 channels mixed to one" in caplog.text
    left, right = (load(io.BytesIO(data), RATE, channel=each).samples for each in (0, 1))
    assert pitch(left.numpy()) == pytest.approx(440) and pitch(right.numpy()) == pytest.approx(880)
    assert (mixed - (left + right) / 2).abs().max() < 1e-6
    both = load_channels(io.BytesIO(data), RATE)
    assert [wave.samples.equal(each) for wave, each in zip(both, (left, right), strict=True)]
    with pytest.raises(InputError) as error:
        load(io.BytesIO(data), RATE, channel=2, id="two")
    assert "no channel 2" in one_line(error, "two")


def test_channels_that_cancel_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    load(io.BytesIO(encoded(np.stack([tone(), -tone()], axis=1))), RATE)
    assert "cancel" in caplog.text


@pytest.mark.parametrize("format", ["WAV", "AU", "AIFF"])
def test_no_samples_is_sound_too(format: str) -> None:
    data = encoded(np.zeros((0, 1)), format=format)
    wave = load(io.BytesIO(data), RATE)
    assert wave.samples.shape == (0,) and wave.duration == 0


@pytest.mark.parametrize("samples", [1, 2, 3, 10])
@pytest.mark.parametrize("rate", [8000, 16000, 44100])
def test_the_shortest_sounds(samples: int, rate: int) -> None:
    wave = load(io.BytesIO(encoded(np.zeros(samples), rate)), RATE)
    assert abs(wave.samples.shape[0] - samples * RATE / rate) <= 1


def test_samples_that_are_no_numbers(caplog: pytest.LogCaptureFixture) -> None:
    samples = tone()
    samples[[5, 6, 7]] = np.nan, np.inf, -np.inf
    wave = load(io.BytesIO(encoded(samples, codec="FLOAT")), RATE)
    assert wave.samples.isfinite().all() and wave.samples.abs().max() < 0.31
    assert "3 samples are not finite" in caplog.text


@pytest.mark.parametrize(
    ("factor", "codec"), [(32768, "FLOAT"), (1e30, "FLOAT"), (1e300, "DOUBLE")]
)
def test_samples_in_units_of_their_own(factor: float, codec: str) -> None:
    wave = load(io.BytesIO(encoded(tone() * factor, codec=codec)), RATE)
    assert wave.samples.isfinite().all() and wave.samples.abs().max() <= 1


def test_names_of_the_result(tmp_path: Path) -> None:
    path = tmp_path / "l'été 日本.wav"
    path.write_bytes(encoded(tone()))
    assert (load(path, RATE).id, load(path, RATE).path) == ("l'été 日本", str(path))
    assert load(str(path), RATE, id="mine").id == "mine"
    raw = os.fsencode(tmp_path) + b"/caf\xe9.wav"  # not UTF-8
    Path(os.fsdecode(raw)).write_bytes(encoded(tone()))
    assert load(os.fsdecode(raw), RATE).duration == 1


def test_a_pipe_by_name(tmp_path: Path) -> None:
    """As bash's <(command) gives one."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[encoded(tone(), format="FLAC")])
    writer.start()
    assert load(pipe, RATE).duration == 1
    writer.join()


def test_a_stream_that_cannot_seek() -> None:
    reading, writing = os.pipe()
    data = encoded(tone(seconds=0.5))
    writer = threading.Thread(target=lambda: (os.write(writing, data), os.close(writing)))
    writer.start()
    with open(reading, "rb", buffering=0) as stream:
        assert load(stream, RATE).duration == 0.5
    writer.join()


def test_probe(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(encoded(np.zeros((44100, 3)), 44100))
    assert probe(path) == audio.AudioInfo(44100, 3, 1.0)
    path.write_bytes(by_ffmpeg(tone(44100)[:, None], 44100, "mp4", "aac"))
    info = probe(path)
    assert (info.sample_rate, info.channels) == (44100, 1)
    assert info.duration == pytest.approx(1, abs=0.1)
