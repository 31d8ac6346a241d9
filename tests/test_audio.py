"""Sound of every kind comes out right, or as one line that says why not."""

from __future__ import annotations

import csv
import io
import logging
import os
import re
import resource
import tempfile
import threading
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile
import torch

from asr import audio
from asr.audio import columns, decoders, load, load_channels, probe, sounds
from asr.errors import InputError
from asr.types import Waveform

RATE = 16000
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


def tone(rate: int = RATE, seconds: float = 1.0, hertz: float = 440.0) -> np.ndarray:
    return 0.3 * np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate)


def encoded(samples: np.ndarray, rate: int = RATE, format="WAV", codec="PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=format, subtype=codec)
    return file.getvalue()


def by_ffmpeg(samples: np.ndarray, rate: int, format: str, codec: str, **options: str) -> bytes:
    """``samples`` (frames, channels) in a container that FFmpeg writes."""
    layout = {1: "mono", 2: "stereo"}[samples.shape[1]]
    with (
        tempfile.NamedTemporaryFile() as file,
        av.open(file.name, "w", format=format, options=options) as container,
    ):
        stream = container.add_stream(codec, rate=rate, layout=layout)
        for start in range(0, len(samples), 1024):
            block = np.ascontiguousarray(samples[start : start + 1024].T, dtype=np.float32)
            frame = av.AudioFrame.from_ndarray(block, format="fltp", layout=layout)
            frame.sample_rate, frame.pts = rate, start
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        container.close()
        return Path(file.name).read_bytes()


def pitch(samples: np.ndarray, rate: int = RATE) -> float:
    """Hz of the loudest partial: a count that no decoder or resampler of ours has a part in."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return float(spectrum.argmax() * rate / len(samples))


def one_line(error: pytest.ExceptionInfo[InputError], name: str) -> str:
    message = str(error.value)
    assert name in message and "\n" not in message and len(message) < 300
    return message


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


# -- long files ---------------------------------------------------------------------------------


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


NOT_SOUND = {
    "empty": b"",
    "text": b"this is not sound\n" * 500,
    "html": b"<html><body>404</body></html>",
    "random": np.random.default_rng(1).integers(0, 256, 50000, np.uint8).tobytes(),
    "zeros": bytes(10000),
    "raw": (tone() * 32767).astype("<i2").tobytes(),
    "riff-only": b"RIFF\x24\0\0\0WAVE",
    "header-only": encoded(tone())[:40],
    "lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "subtitles": b"1\n00:00:00,000 --> 00:00:01,000\nhello\n",
    "half-flac": encoded(tone(seconds=3), format="FLAC")[:9000],
    "half-wav": encoded(tone())[:16000],
    "half-aiff": encoded(tone(), format="AIFF")[:16000],
    "half-m4a": by_ffmpeg(tone()[:, None], RATE, "mp4", "aac")[:4000],
    "half-m4a-index-first": by_ffmpeg(
        tone(seconds=5)[:, None], RATE, "mp4", "aac", movflags="faststart"
    )[:-20000],
}


@pytest.mark.parametrize("kind", NOT_SOUND)
@pytest.mark.parametrize("suffix", [".wav", ".raw", ".m4a", ""])
def test_what_is_no_sound_or_cut_short(tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"bad file{suffix}"
    path.write_bytes(NOT_SOUND[kind])
    for source in (path, io.BytesIO(NOT_SOUND[kind])):
        with pytest.raises(InputError) as error:
            load(source, RATE, id="bad file")
        one_line(error, "bad file")


@pytest.mark.parametrize(
    ("kind", "least"),
    [("half-flac", 0.4), ("half-wav", 0.4), ("half-aiff", 0.4), ("half-m4a-index-first", 1.5)],
)
def test_what_is_there_of_a_file_that_is_cut_short(kind: str, least: float) -> None:
    """As players do, but said: the start of the sound, and a warning where it ends."""
    (wave,) = sounds(io.BytesIO(NOT_SOUND[kind]), RATE, id="half")
    assert wave.duration > least and pitch(wave.samples.numpy()) == pytest.approx(440, abs=3)
    (warning,) = wave.warnings
    assert warning.code == "cut-short" and (warning.start, warning.end) == (wave.duration,) * 2
    assert "half" not in warning.message and re.search(r"cut short|damaged after", warning.message)


@pytest.mark.parametrize(
    "kind", [kind for kind in NOT_SOUND if "half" not in kind or kind == "half-m4a"]
)
def test_a_file_of_which_nothing_can_be_had_is_refused(kind: str) -> None:
    with pytest.raises(InputError) as error:
        sounds(io.BytesIO(NOT_SOUND[kind]), RATE, id="bad file")
    one_line(error, "bad file")


def test_whole_files_are_not_warned_of() -> None:
    (wave,) = sounds(io.BytesIO(encoded(tone())), RATE)
    assert wave.warnings == () and torch.equal(
        wave.samples, load(io.BytesIO(encoded(tone())), RATE).samples
    )


def test_damage_half_way(tmp_path: Path) -> None:
    data = bytearray(encoded(np.random.default_rng(0).normal(0, 0.1, 32000), format="FLAC"))
    data[len(data) // 2 : len(data) // 2 + 200] = b"\x55" * 200
    with pytest.raises(InputError) as error:
        load(io.BytesIO(bytes(data)), RATE, id="flac")
    assert "damaged" in one_line(error, "flac")


def test_single_bad_packets_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (10 * RATE, 1))
    data = bytearray(by_ffmpeg(noise, RATE, "adts", "aac"))
    data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
    assert load(io.BytesIO(bytes(data)), RATE).duration == pytest.approx(10, abs=0.5)


def test_a_film_without_sound(tmp_path: Path) -> None:
    path = tmp_path / "silent film.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        picture = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    with pytest.raises(InputError) as error:
        load(path, RATE)
    assert "holds no sound" in one_line(error, str(path))


@pytest.mark.parametrize("text", [
    "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n{}\n#EXT-X-ENDLIST\n",
    "ffconcat version 1.0\nfile '{}'\n",
])  # fmt: skip
def test_playlists_open_no_other_files(tmp_path: Path, text: str) -> None:
    sound = tmp_path / "secret.aac"
    sound.write_bytes(by_ffmpeg(tone()[:, None], RATE, "adts", "aac"))
    playlist = tmp_path / "list.m3u8"
    playlist.write_text(text.format(sound))
    with pytest.raises(InputError):
        load(playlist, RATE)


@pytest.mark.parametrize("path", ["", "nowhere.wav", "a\0b.wav", "x" * 300, "folder", "file/below"])
def test_paths_that_lead_to_no_file(tmp_path: Path, path: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for use in (load, load_channels):
        with pytest.raises(InputError) as error:
            use(str(tmp_path / path), RATE)
        one_line(error, str(tmp_path / path)) if len(path) < 100 else None
    with pytest.raises(InputError):
        probe(str(tmp_path / path))


@pytest.mark.parametrize("rate", [1, 999, 1_092_676])
def test_absurd_rates(rate: int) -> None:
    with pytest.raises(InputError) as error:
        load(io.BytesIO(encoded(tone(), rate)), RATE, id="odd")
    assert str(rate) in one_line(error, "odd")


def test_headers_that_lie_cost_no_memory() -> None:
    data = bytearray(encoded(tone(), format="FLAC"))
    data[21] |= 0x0F
    data[22:26] = b"\xff" * 4  # 2^36 - 1 samples, 256 GiB as float32
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="cut short"):
        load(io.BytesIO(bytes(data)), RATE)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_lengths_that_were_not_known_when_writing() -> None:
    """As recorders and pipes leave them: a placeholder or nothing where the length belongs."""
    flac = bytearray(encoded(tone(), format="FLAC"))
    flac[21] &= 0xF0
    flac[22:26] = bytes(4)
    assert load(io.BytesIO(bytes(flac)), RATE).duration == 1
    assert probe(io.BytesIO(bytes(flac))).duration is None
    wav = encoded(tone())
    at = wav.index(b"data") + 4
    for length in (0, 0x7FFFFFFF, 0xFFFFFFFF):
        streamed = wav[:at] + length.to_bytes(4, "little") + wav[at + 4 :]
        assert load(io.BytesIO(streamed), RATE).duration == pytest.approx(1, abs=0.001)


def test_probe(tmp_path: Path) -> None:
    path = tmp_path / "sound.wav"
    path.write_bytes(encoded(np.zeros((44100, 3)), 44100))
    assert probe(path) == audio.AudioInfo(44100, 3, 1.0)
    path.write_bytes(by_ffmpeg(tone(44100)[:, None], 44100, "mp4", "aac"))
    info = probe(path)
    assert (info.sample_rate, info.channels) == (44100, 1)
    assert info.duration == pytest.approx(1, abs=0.1)


@pytest.mark.real_speech
def test_files_that_people_attach(speech_folder: Path) -> None:
    """Each decodes to what its index says, or is refused in one line; nothing else happens."""
    folder = speech_folder / "wild"
    with open(folder / "index.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    decoded = refused = 0
    for row in rows:
        path = folder / row["file"]
        try:
            wave = load(path, RATE)
        except InputError as error:
            assert row["file"] in str(error) and "\n" not in str(error)
            odd = "unreadable" in row["codec"] or "raw" in row["codec"] or "broken" in row["note"]
            assert odd, error
            refused += 1
            continue
        assert "unreadable" not in row["codec"] and "raw" not in row["codec"]
        assert wave.samples.isfinite().all()
        assert wave.duration == pytest.approx(float(row["duration_s"]), abs=0.03)
        assert wave.source_channels == int(row["channels"])
        if "opus" not in row["codec"]:  # decodes at any rate; the index has FFmpeg's
            assert wave.source_rate == int(row["sample_rate"])
        decoded += 1
    assert decoded > 80 and refused > 5


@pytest.mark.parametrize(
    ("format", "codec"),
    [("FLAC", "PCM_16"), ("WAV", "PCM_16"), ("MP3", "MPEG_LAYER_III"), ("OGG", "VORBIS")],
)
@pytest.mark.parametrize(
    ("what", "becomes"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(5, "Input/output error"), InputError)],
    ids=["interrupted", "broken disk"],
)
def test_what_happens_while_a_file_is_read_is_not_its_end(
    format: str, codec: str, what: BaseException, becomes: type[BaseException]
) -> None:
    """libsndfile reads through callbacks, out of which nothing can be raised."""
    noise = np.random.default_rng(0).normal(0, 0.1, 8 * RATE)
    data = encoded(noise, format=format, codec=codec)

    class Reading(io.BytesIO):
        left = 0

        def readinto(self, buffer: Any) -> int:
            self.left -= 1
            if self.left == 0:
                raise what
            return super().readinto(buffer)

    counted = Reading(data)
    load(counted, RATE)
    reads = -counted.left
    assert reads > 1
    for number in {1, reads // 2, reads}:
        file = Reading(data)
        file.left = max(1, number)
        with pytest.raises(becomes) as error:
            load(file, RATE)
        assert "cut short" not in str(error.value)
