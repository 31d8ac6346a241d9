"""Long sound: cut into pieces and stitched, silence left out, doubtful pieces tried again."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from asr.audio import Meter, Recording
from asr.inference import transcriber
from asr.inference.transcriber import Transcriber
from asr.types import Hypothesis, TranscriptWarning, Waveform
from tests.inference.sounds import RATE, noise, same

# -- pieces ----------------------------------------------------------------------------------------


def test_long_audio_is_cut_and_stitched(saved):
    listen = Transcriber.from_bundle(saved, device="cpu", max_piece_seconds=2.0)
    wave = noise(5 * RATE)
    wave.samples[int(1.4 * RATE) : int(1.8 * RATE)] *= 0.001
    wave.samples[int(3.1 * RATE) : int(3.5 * RATE)] *= 0.001
    (found,) = listen([wave], record=True)
    assert found.decoding["pieces"] == len(found.records) == 3
    assert found.record is None
    starts = [record.start for record in found.records]
    assert starts[0] == 0.0 and 1.4 < starts[1] < 1.8 and 3.1 < starts[2] < 3.5
    ends = [record.start + record.duration for record in found.records]
    assert ends == pytest.approx([*starts[1:], 5.0])
    # Each piece by itself says the same, at times counted from its own start.
    texts, words = [], []
    for start, end in zip(starts, ends, strict=True):
        part = Waveform(wave.samples[round(start * RATE) : round(end * RATE)], RATE)
        (alone,) = listen([part])
        texts.append(alone.text)
        words += [(w.word, w.start + start, w.end + start) for w in alone.words]
    assert found.text == " ".join(text for text in texts if text)
    for got, (word, start, end) in zip(found.words, words, strict=True):
        assert (got.word, got.start, got.end) == (
            word, pytest.approx(start, abs=1e-5), pytest.approx(end, abs=1e-5)
        )  # fmt: skip


def recording(wave: Waveform, seconds: float, read: list[int] | None = None) -> Recording:
    """The same sound, in blocks; ``read`` counts those that have been asked for."""
    meter = Meter(wave.sample_rate)
    meter.add(wave.samples[:, None].numpy())

    def blocks():
        for block in wave.samples.split(round(seconds * wave.sample_rate)):
            if read is not None:
                read[0] += 1
            yield block

    return Recording(blocks, len(wave.samples), meter.energies()[0], wave.sample_rate, id=wave.id)


@pytest.mark.parametrize("rate", [RATE, 8000])
def test_a_recording_gives_what_its_waveform_gives(saved, rate):
    listen = Transcriber.from_bundle(saved, device="cpu", max_piece_seconds=2.0, batch_seconds=0.5)
    wave = noise(9 * rate + 77, rate=rate)
    wave.samples[3 * rate : 5 * rate] *= 0.001
    (held,) = listen([wave], record=True)
    together = listen([recording(wave, 0.37), noise(RATE)], record=True)
    assert same(held, together[0]) and held.text and together[1].text
    assert together[0].decoding["pieces"] == held.decoding["pieces"] > 2
    for one, other in zip(held.records, together[0].records, strict=True):
        assert (one.start, one.duration) == (other.start, other.duration)
        assert torch.allclose(one.weights, other.weights, atol=1e-5)
    (told,) = listen.force([recording(wave, 0.37)], ["bad cab"])
    assert told.text == "bad cab" and len(told.records) == 1


def test_a_recording_is_listened_to_while_it_is_read(saved, monkeypatch):
    """What is held does not grow with its length: each window is decoded before more is read."""
    listen = Transcriber.from_bundle(saved, device="cpu", max_piece_seconds=2.0, batch_seconds=2.0)
    read, seen = [0], []

    def search(model, encoded, options):
        seen.append((read[0], len(encoded.lengths)))
        weights = torch.zeros(1, 1, encoded.states.shape[1])
        weights[..., 0] = 1.0
        return [[Hypothesis((), -1.0, (-0.1,), weights[..., : int(n)])] for n in encoded.lengths]

    monkeypatch.setattr(transcriber, "search", search)
    (found,) = listen([recording(noise(60 * RATE), 0.5, read)])
    assert found.decoding["pieces"] >= 30 and found.records == ()
    done = 0
    for blocks, pieces in seen:
        assert blocks / 2 - 2 * done <= 8 * 2.0 + 2 * 4
        done += pieces


def test_what_was_wrong_with_a_sound_is_told_with_its_text(listen):
    warning = TranscriptWarning("cut-short", "cut short", 0.5, 0.5)
    (found,) = listen([replace(noise(8000), warnings=(warning,))])
    assert found.warnings[0] == warning


def test_silent_pieces_are_left_out(saved):
    listen = Transcriber.from_bundle(saved, device="cpu", max_piece_seconds=2.0)
    sound = torch.cat([torch.zeros(6 * RATE), noise(RATE).samples])
    (found,) = listen([Waveform(sound, RATE)], record=True)
    assert found.decoding["pieces"] < 4
    assert found.words[0].start > 4.0
    assert not {"silent-audio"} & {w.code for w in found.warnings}


def test_the_n_best_of_pieces_are_the_best_sums(saved):
    search = {"nbest": 3, "beam_size": 4}
    listen = Transcriber.from_bundle(saved, device="cpu", search=search, max_piece_seconds=1.0)
    wave = noise(int(1.5 * RATE))
    wave.samples[int(0.6 * RATE) : int(0.9 * RATE)] *= 0.001
    (found,) = listen([wave], record=True)
    assert len(found.records) == 2
    border = round(found.records[1].start * RATE)
    first, second = (
        listen([Waveform(part, RATE)])[0].nbest
        for part in (wave.samples[:border], wave.samples[border:])
    )
    sums = sorted((s + v for _, s in first for _, v in second), reverse=True)
    assert [score for _, score in found.nbest] == pytest.approx(sums[:3], abs=1e-4)
    assert found.nbest[0] == (found.text, found.score)


# -- silence ---------------------------------------------------------------------------------------


def spoken(*parts: float) -> Waveform:
    """Seconds of silence and of noise by turns, silence first."""
    sounds = [torch.zeros(round(s * RATE)) if n % 2 == 0 else noise(round(s * RATE)).samples
              for n, s in enumerate(parts)]  # fmt: skip
    return Waveform(torch.cat(sounds), RATE, id="spoken")


def test_silence_around_words_changes_nothing_but_their_times(listen):
    """The model is given the very same; words and attention are where they are in the file."""
    (short,) = listen([spoken(0.4, 1.0, 0.4)], record=True)
    (long,) = listen([spoken(4.4, 1.0, 3.4)], record=True)
    assert long.text == short.text != ""
    moved = [(w.word, w.start + 4.0, w.end + 4.0, w.confidence) for w in short.words]
    assert [(w.word, w.start, w.end, w.confidence) for w in long.words] == [
        (word, pytest.approx(start), pytest.approx(end), pytest.approx(confidence))
        for word, start, end, confidence in moved
    ]
    shift = long.record.frame_shift
    before, frames = round(4.0 / shift), short.record.weights.shape[-1]
    weights = long.record.weights
    assert torch.equal(weights[..., before : before + frames], short.record.weights)
    assert not weights[..., :before].any() and not weights[..., before + frames :].any()
    assert (long.record.start, long.record.duration) == (0.0, pytest.approx(8.8))


def test_a_long_pause_is_heard_as_a_short_one(listen):
    (short,) = listen([spoken(0.4, 1.0, 0.8, 1.2, 0.4)], record=True)
    (long,) = listen([spoken(0.4, 1.0, 5.8, 1.2, 0.4)], record=True)
    assert long.text == short.text != ""
    assert len(long.records) == 1 and long.duration == pytest.approx(8.8)
    pause = range(round(1.9 / 0.04), round(6.7 / 0.04))
    assert not long.record.weights[..., list(pause)].any()
    assert torch.allclose(long.record.weights.sum(-1), torch.ones(()), atol=1e-5)
    for one, other in zip(short.words, long.words, strict=True):
        assert one.start == pytest.approx(other.start, abs=1e-6) or (
            one.start + 5.0 == pytest.approx(other.start, abs=1e-6)
        )


def test_tightly_cut_words_are_given_a_margin(saved):
    """Times are those of the file for all that, and no two margins of a batch differ."""
    wave = noise(16_123)
    margins = {seconds: Transcriber.from_bundle(saved, device="cpu", margin_seconds=seconds)
               for seconds in (0.0, 0.25)}  # fmt: skip
    seen = {}
    for seconds, listen in margins.items():
        encode = listen.model.encode
        lengths = []
        listen.model.encode = lambda waves, sizes, _e=encode, _l=lengths, **kw: (
            _l.append(sizes.tolist()),
            _e(waves, sizes, **kw),
        )[1]
        (found,) = listen([wave], record=True)
        del listen.model.encode
        seen[seconds] = lengths
        assert found.decoding["margin_seconds"] == seconds
        assert found.record.weights.shape[-1] == math.ceil(16_123 / 640)
        assert [len(found.record.listened.samples)] == lengths[0]
        assert torch.allclose(found.record.weights.sum(-1), torch.ones(()), atol=1e-5)
        assert all(0 <= w.start <= w.end <= wave.duration for w in found.words)
    assert seen == {0.0: [[16_123]], 0.25: [[16_123 + 2 * 7 * 640]]}


def test_what_is_silent_beside_the_rest_is_not_listened_to(saved):
    listen = Transcriber.from_bundle(saved, device="cpu", max_piece_seconds=2.0)
    background = noise(12 * RATE, seed=5).samples * 0.002
    background[9 * RATE : 10 * RATE] += noise(RATE).samples
    (found,) = listen([Waveform(background, RATE)], record=True)
    assert found.decoding["pieces"] < 3
    assert found.words and all(8.5 < w.start <= w.end < 10.5 for w in found.words)


def test_forced_text_is_placed_in_the_file_too(listen):
    (short,) = listen.force([spoken(0.4, 1.0, 0.4)], ["bad cab"])
    (long,) = listen.force([spoken(4.4, 1.0, 3.4)], ["bad cab"])
    for one, other in zip(short.words, long.words, strict=True):
        assert one.start + 4.0 == pytest.approx(other.start)
        assert one.end + 4.0 == pytest.approx(other.end)


# -- recovery --------------------------------------------------------------------------------------


def scripted(monkeypatch, doubtful_above: float, shift: float) -> list[int]:
    """A search whose hypotheses of more than so many seconds never end; counts its utterances."""
    seen: list[int] = []

    def search(model, encoded, options):
        found = []
        for frames in encoded.lengths.tolist():
            seen.append(frames)
            heard = torch.arange(0, frames, 10)  # one letter each
            weights = torch.nn.functional.one_hot(heard, frames).float().unsqueeze(1)
            ended = frames * shift <= doubtful_above
            tokens = (4 if ended else 5,) * (len(heard) - ended)  # "a" or "b", then <eos>
            found.append([Hypothesis(tokens, -1.0, (-0.1,) * len(heard), weights, ended=ended)])
        return found

    monkeypatch.setattr(transcriber, "search", search)
    return seen


@pytest.mark.parametrize("helps", [True, False])
def test_a_doubtful_piece_is_tried_again_in_halves(listen, monkeypatch, helps):
    limit = 6.6 if helps else 0.0  # a half has its margins too
    scripted(monkeypatch, limit, listen.model.frame_shift)
    (found,) = listen([noise(10 * RATE)])
    unfinished = [w for w in found.warnings if w.code == "unfinished"]
    if helps:
        assert [set(word) for word in found.text.split()] == [{"a"}] * 2 and not unfinished
        assert found.decoding["pieces"] == 2
    else:
        assert set(found.text) == {"b"} and len(unfinished) == 1
        assert found.decoding["pieces"] == 1


def test_pieces_in_good_order_or_too_short_are_not_tried_again(listen, monkeypatch):
    seen = scripted(monkeypatch, 60.0, listen.model.frame_shift)
    listen([noise(10 * RATE)])
    assert len(seen) == 1
    seen = scripted(monkeypatch, 0.0, listen.model.frame_shift)
    listen([noise(5 * RATE)])
    assert len(seen) == 1
