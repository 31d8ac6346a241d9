"""Pictures whose axes are seconds and tokens, and which leave nothing behind."""

from __future__ import annotations

import math

import pytest
import torch
from matplotlib._pylab_helpers import Gcf
from PIL import Image

from asr.inspection import figures
from asr.inspection.diagnostics import measure
from asr.inspection.spectrogram import RANGE_DB, spectrogram_of
from asr.types import Waveform, Word
from tests.inspection.planted import SHIFT, record, rows, wave


def made(**fields):
    return record(rows((0, 5), (5, 10), (10, 15), (20, 25), frames=25, heads=2), "a$b$", **fields)


def texts(figure):
    return [text.get_text() for text in figure.texts]


def test_one_time_axis_in_seconds_and_tokens_as_produced():
    example = made(start=3.0, duration=0.99)
    words = [Word("one", 3.1, 3.4, 0.9), Word("two", 3.45, 3.8, 0.5)]
    figure = figures.draw(example, spectrogram_of(wave(0.99)), words=words)
    sound, lane, matrix = figure.axes[:3]
    for axes in (sound, lane, matrix):
        assert axes.get_xlim() == pytest.approx((3.0, 3.99))
    assert sound.get_position().x0 == matrix.get_position().x0
    assert sound.get_position().width == matrix.get_position().width
    assert matrix.get_xlabel() == "seconds"
    assert [label.get_text() for label in matrix.get_yticklabels()] == list("a$b$")
    left, right, bottom, top = matrix.images[0].get_extent()
    assert (left, right) == pytest.approx((3.0, 3.0 + 25 * SHIFT))
    assert (bottom, top) == (3.5, -0.5)  # the first token on top
    assert sound.images[0].get_extent()[:2] == pytest.approx([3.0, 3.99])
    assert [text.get_text() for text in lane.texts] == ["one", "two"]
    onsets = {line.get_xdata()[0] for line in matrix.lines}
    assert onsets == {3.1, 3.45}


def test_forced_is_labelled_as_forced_and_free_as_free():
    spectrogram = spectrogram_of(wave(1.0))
    forced = texts(figures.draw(made(mode="forced"), spectrogram))
    free = texts(figures.draw(made(), spectrogram))
    assert any("FORCED" in text for text in forced)
    assert not any("FORCED" in text for text in free)
    assert "forced" in texts(figures.draw_small(made(mode="forced")))[0]


def test_the_title_has_id_and_figures():
    example = made()
    shown = texts(figures.draw(example, spectrogram_of(wave(1.0)), measures=measure(example)))
    assert "example" in shown
    assert any("left to right 100%" in text for text in shown)


def test_a_head_can_be_chosen():
    example = made()
    example.weights[:, 1] = rows((24, 25), (0, 1), (0, 1), (0, 1), frames=25)[:, 0]
    figure = figures.draw(example, spectrogram_of(wave(1.0)), head=1)
    assert torch.tensor(figure.axes[1].images[0].get_array()).equal(example.weights[:, 1])
    assert any("head 2 of 2" in text for text in texts(figure))


def test_files_are_written_and_equal_figures_give_equal_files(tmp_path):
    for form, magic in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        for name in ("one", "two"):
            figure = figures.draw(made(), spectrogram_of(wave(1.0)))
            figures.save(figure, tmp_path / f"{name}.{form}")
        content = (tmp_path / f"one.{form}").read_bytes()
        assert content.startswith(magic)
        assert content == (tmp_path / f"two.{form}").read_bytes()


def test_a_picture_has_the_pixels_asked_for(tmp_path):
    figure = figures.draw_small(record(rows((0, 2), frames=9)))
    for asked, width in ((None, 600), (50, 300)):
        figures.save(figure, tmp_path / "x.png", dpi=asked)
        with Image.open(tmp_path / "x.png") as image:
            assert image.width == width


def test_figures_are_unknown_to_pyplot():
    figures.draw(made(), spectrogram_of(wave(1.0)))
    figures.draw_small(made(), spectrogram_of(wave(1.0)))
    assert not Gcf.figs


@pytest.mark.parametrize(("tokens", "frames"), [(0, 0), (0, 5), (1, 1), (150, 40)])
def test_any_size_can_be_drawn(tmp_path, tokens, frames):
    weights = torch.full((tokens, 1, frames), 1 / max(frames, 1))
    example = record(weights)
    figure = figures.draw(example, spectrogram_of(wave(example.duration)))
    figures.save(figure, tmp_path / "x.png")
    matrix = figure.axes[1]
    labels = matrix.get_yticklabels()
    if labels:
        size = labels[0].get_fontsize() / 72
        inches = matrix.get_position().height * figure.get_figheight()
        assert len(labels) * size <= inches + size  # none overlaps
    figures.save(figures.draw_small(example), tmp_path / "y.png")


def test_words_that_would_overlap_get_lanes():
    example = record(torch.full((1, 1, 250), 1 / 250))
    words = [Word("extraordinarily", 0.1 * i, 0.1 * i + 0.05, 1.0) for i in range(5)]
    lanes = figures._lanes(example, words, inches=9.0)
    assert lanes == [0, 1, 2, 3, -1]
    far = [Word("a", 2.0 * i, 2.0 * i + 0.1, 1.0) for i in range(4)]
    assert figures._lanes(example, far, inches=9.0) == [0, 0, 0, 0]


def test_crowded_rows_are_labelled_by_the_words_they_spell():
    tokens = [*"ab␣c␣de", "<eos>"]
    assert figures._labels(tokens, 1.0) == dict(enumerate(tokens))
    assert figures._labels(tokens, 1.1) == {0: "ab", 3: "c", 5: "de", 7: "<eos>"}
    assert figures._labels(tokens, 4.0) == {0: "ab", 5: "de"}
    assert figures._labels(["▁the", "▁c", "at", "<eos>"], 1.5) == {0: "the", 3: "<eos>"}


def test_a_tone_shows_at_its_frequency_and_time():
    samples = torch.zeros(16000)
    samples[8000:12000] = wave(0.25).samples  # 1 kHz from 0.5 to 0.75 s
    found = spectrogram_of(Waveform(samples, 16000))
    assert found.decibels.shape == (100, len(found.frequencies))
    frame, band = divmod(int(found.decibels.argmax()), len(found.frequencies))
    assert 0.5 <= frame * found.hop <= 0.75
    assert found.frequencies[band] == pytest.approx(1000, abs=40)
    assert float(found.decibels.max()) == 0.0 and float(found.decibels.min()) == -RANGE_DB
    assert list(found.frequencies) == sorted(found.frequencies)


def test_a_spectrogram_of_nothing():
    assert spectrogram_of(wave(0.0)).decibels.shape[0] == 0
    assert math.isfinite(float(spectrogram_of(Waveform(torch.zeros(800), 8000)).decibels.sum()))
