"""What is no sound, or damaged, is one line that says why, or what there is of it and a warning."""

from __future__ import annotations

import csv
import io
import re
import resource
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch

from asr.audio import load, load_channels, probe, sounds
from asr.errors import InputError
from tests.audio.files import RATE, by_ffmpeg, encoded, one_line, pitch, tone

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
