"""From sound to transcripts: alone or in company, from no samples to long ones."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import pytest
import soxr
import torch

import asr
from asr.audio import Meter, Recording
from asr.errors import InputError
from asr.inference import bundle, transcriber
from asr.inference.transcriber import Transcriber
from asr.search import SearchOptions
from asr.text import CharacterTokenizer
from asr.types import Hypothesis, TranscriptWarning, Waveform

RATE = 16000


def noise(samples: int, seed: int = 0, rate: int = RATE, id: str = "") -> Waveform:
    drawn = torch.randn(samples, generator=torch.Generator().manual_seed(seed + samples))
    return Waveform(drawn * 0.1, rate, id=id or str(samples))


@pytest.fixture(scope="module")
def listen(saved) -> Transcriber:
    return Transcriber.from_bundle(saved, device="cpu")


def same(one, other) -> bool:
    """Texts to the letter; times and confidences up to float32 noise of another batch shape."""
    return (
        one.text == other.text
        and [w.code for w in one.warnings] == [w.code for w in other.warnings]
        and len(one.words) == len(other.words)
        and all(
            a.word == b.word
            and math.isclose(a.start, b.start, abs_tol=1e-6)
            and math.isclose(a.end, b.end, abs_tol=1e-6)
            and math.isclose(a.confidence, b.confidence, abs_tol=1e-4)
            for a, b in zip(one.words, other.words, strict=True)
        )
    )


def test_a_result_does_not_depend_on_its_company(listen):
    waves = [noise(n) for n in (12_000, 3, 20_001, 640, 9_000, 0)]
    together = listen(waves)
    assert [t.id for t in together] == [w.id for w in waves]
    for wave, found in zip(waves, together, strict=True):
        assert same(listen([wave])[0], found)
    listen.batch_seconds = 0.1
    for found, one in zip(together, listen(waves), strict=True):
        assert same(found, one)
    listen.batch_seconds = 120.0
    assert sum(bool(t.text) for t in together) >= 3


@pytest.mark.parametrize(
    "samples", [0, 1, 2, 159, 160, 161, 399, 400, 401, 639, 640, 641, 1279, 1281, 2000]
)
def test_any_length_gives_a_transcript(listen, samples):
    (found,) = listen([noise(samples)])
    assert found.duration == samples / RATE
    codes = [w.code for w in found.warnings]
    if samples < 640:
        assert found.text == "" and found.words == ()
        assert codes == ["empty-audio" if samples == 0 else "too-short"]
    else:
        assert not {"empty-audio", "too-short"} & set(codes)


@pytest.mark.parametrize("level", [0.0, 1e-5])
def test_silence_gives_an_empty_text_and_says_so(listen, level):
    (found,) = listen([Waveform(torch.full((RATE,), level), RATE, id="still")])
    assert (found.text, found.words) == ("", ())
    assert [w.code for w in found.warnings] == ["silent-audio"]
    assert (found.warnings[0].start, found.warnings[0].end) == (0.0, 1.0)


def test_numbers_that_are_none_do_no_harm(listen):
    wave = noise(8000)
    wave.samples[100:200] = float("nan")
    wave.samples[300] = float("inf")
    assert len(listen([wave])) == 1


@pytest.mark.parametrize(
    "samples", [torch.zeros(2, 100), torch.zeros(100, dtype=torch.int16), torch.zeros(())]
)
def test_what_is_no_waveform_is_refused(listen, samples):
    with pytest.raises(ValueError, match="floating point"):
        listen([Waveform(samples, RATE, id="odd")])


def test_nothing_gives_nothing(listen):
    assert listen([]) == []
    assert listen.force([], []) == []


def test_another_rate_is_resampled(listen):
    wave = noise(9000, rate=8000)
    expected = torch.from_numpy(soxr.resample(wave.samples.numpy(), 8000, RATE))
    (found,) = listen([wave])
    assert found.text == listen([Waveform(expected, RATE)])[0].text != ""
    assert found.duration == wave.duration
    assert found.sample_rate == 8000


def test_words_are_in_order_and_within_the_audio(listen):
    for wave in (noise(20_000), noise(30_011), noise(15_011, rate=11_025)):
        (found,) = listen([wave])
        times = [t for word in found.words for t in (word.start, word.end)]
        assert times == sorted(times)
        assert not times or (times[0] >= 0 and times[-1] <= found.duration)
        assert found.text == " ".join(word.word for word in found.words)


def test_no_special_is_ever_in_the_text(listen):
    for found in listen([noise(n) for n in (8000, 16000, 24000)]):
        assert not set("<>␣") & set(found.text)


def test_records_are_kept_when_asked_for(listen):
    wave = noise(16_123)
    (found,) = listen([wave], record=True)
    assert found.records == (found.record,)
    assert found.record.weights.shape[0] == len(found.record.tokens)
    assert found.record.mode == "free"
    end = found.record.weights.shape[-1] * found.record.frame_shift
    assert 0 <= end - wave.duration < found.record.frame_shift
    (without,) = listen([wave])
    assert without.record is None and without.records == ()
    assert without.attention == pytest.approx(found.attention, abs=1e-5)
    assert {"entropy", "monotonicity", "coverage"} <= found.attention.keys()


def test_listener_matrices_come_with_the_layers_asked_for(listen):
    layer = listen.model.encoder.inspectable[0]
    found = listen([noise(16_000), noise(9_000)], record=True, inspect=[layer])
    for transcript in found:
        matrix = transcript.record.listener[layer]
        frames = transcript.record.weights.shape[-1]
        assert matrix.shape[-2:] == (frames, frames)
        assert torch.allclose(matrix.sum(-1), torch.ones(()), atol=1e-4)


def test_a_transcript_says_what_was_really_done(listen, saved):
    (found,) = listen([noise(9_000)])
    assert found.decoding["beam_size"] == 3
    assert found.decoding["ctc_weight"] == 0.3  # the bundle leaves it open; this is what it means
    assert found.decoding["dtype"] == "float32"
    assert found.decoding["device"] == "cpu"
    assert found.decoding["pieces"] == 1
    assert found.decoding["margin_seconds"] == 0.3
    assert found.model == {"name": "noise", "fingerprint": bundle.load(saved).fingerprint}
    json.dumps({**asdict(replace(found, model={}, attention={}, decoding={}))}, allow_nan=False)
    json.dumps([dict(found.attention), dict(found.decoding)], allow_nan=False)


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


# -- doubts ----------------------------------------------------------------------------------------


def answering(monkeypatch, confidence: float, every: int = 10) -> None:
    """A search that writes a letter of that probability for every so many frames."""

    def search(model, encoded, options):
        found = []
        for frames in encoded.lengths.tolist():
            heard = torch.arange(0, frames, every)
            weights = torch.nn.functional.one_hot(heard, frames).float().unsqueeze(1)
            log_probs = (math.log(confidence),) * len(heard)
            found.append([Hypothesis((4,) * (len(heard) - 1), -1.0, log_probs, weights)])
        return found

    monkeypatch.setattr(transcriber, "search", search)


@pytest.mark.parametrize(("confidence", "least"), [(0.7, 0.75), (0.8, 0.75), (0.7, 0.6)])
def test_words_that_the_model_is_not_sure_of_are_warned_of(
    tmp_path, model, tokenizer, monkeypatch, confidence, least
):
    settings = bundle.Settings(least_confidence=least)
    bundle.save(tmp_path / "b", model, tokenizer, card={}, settings=settings)
    listen = Transcriber.from_bundle(tmp_path / "b", device="cpu", max_piece_seconds=2.0)
    answering(monkeypatch, confidence)
    (found,) = listen([noise(5 * RATE)], record=True)
    unsure = [w for w in found.warnings if w.code == "low-confidence"]
    pieces = [(r.start, r.start + r.duration) for r in found.records]
    assert [(w.start, w.end) for w in unsure] == (pieces if confidence < least else [])
    assert all(f"{confidence:.2f}" in w.message for w in unsure)


@pytest.mark.parametrize(("every", "warned"), [(10, False), (60, True)])
def test_sound_that_is_mostly_not_listened_to_is_warned_of(listen, monkeypatch, every, warned):
    answering(monkeypatch, 0.95, every)
    (found,) = listen([noise(5 * RATE)])
    assert ("low-coverage" in [w.code for w in found.warnings]) == warned
    assert (found.attention["coverage"] < 0.4) == warned


def test_background_that_is_not_listened_to_is_nothing_missed(listen, monkeypatch):
    """A second of speech in ten of hiss: what was left out is not counted as sound."""
    answering(monkeypatch, 0.95)
    hiss = noise(10 * RATE, seed=5).samples * 0.01
    hiss[4 * RATE : 5 * RATE] += noise(RATE).samples
    (found,) = listen([Waveform(hiss, RATE)])
    assert found.text and found.warnings == ()
    assert found.attention["coverage"] == 1.0 and found.attention["unattended_tail"] < 0.3


# -- forced ----------------------------------------------------------------------------------------


def test_forced_text_is_written_as_given(listen):
    waves = [noise(16_000), noise(9_000), noise(0)]
    first, second, third = listen.force(waves, ["Bad cab!", "a", "dad"])
    assert first.text == "bad cab"
    assert [w.word for w in first.words] == ["bad", "cab"]
    assert first.record.mode == "forced"
    assert first.record.tokens == (*"bad␣cab", "<eos>")
    assert first.decoding["mode"] == "forced"
    assert second.record.weights.shape[0] == 2
    assert third.text == "" and [w.code for w in third.warnings] == ["empty-audio"]


def test_forced_alone_and_in_company_are_alike(listen):
    waves, texts = [noise(16_000), noise(9_000)], ["bad cab", "a"]
    for found, wave, text in zip(listen.force(waves, texts), waves, texts, strict=True):
        (alone,) = listen.force([wave], [text])
        assert same(alone, found)
        assert torch.allclose(alone.record.weights, found.record.weights, atol=1e-5)


def test_the_attention_of_what_was_said_is_the_same_when_forced(tmp_path, model):
    # Without a space every text is its tokens.
    bundle.save(tmp_path / "b", model, CharacterTokenizer("abcdefghij"), card={})
    listen = Transcriber.from_bundle(tmp_path / "b", device="cpu", search={"beam_size": 2})
    wave = noise(4_000)
    (free,) = listen([wave], record=True)
    (told,) = listen.force([wave], [free.text])
    size = len(free.text)
    assert told.record.tokens[:size] == free.record.tokens[:size] == tuple(free.text) != ()
    difference = told.record.weights[:size] - free.record.weights[:size]
    assert difference.abs().max() < 1e-5


def test_characters_that_cannot_be_written_are_named(listen):
    (found,) = listen.force([noise(9_000)], ["zoë bad"])
    (warning,) = [w for w in found.warnings if w.code == "unknown-characters"]
    assert all(c in warning.message for c in "zoë")
    (empty,) = listen.force([noise(9_000)], [""])
    assert empty.record.tokens == ("<eos>",)


def test_a_text_for_each_waveform(listen):
    with pytest.raises(ValueError, match="2 texts for 1 waveforms"):
        listen.force([noise(9_000)], ["a", "b"])


# -- options ---------------------------------------------------------------------------------------


def test_search_options_are_the_bundles_unless_said_otherwise(saved):
    assert Transcriber.from_bundle(saved).search == SearchOptions(
        beam_size=3, max_tokens_per_frame=0.25
    )
    changed = Transcriber.from_bundle(saved, search={"beam_size": 5})
    assert changed.search == SearchOptions(beam_size=5, max_tokens_per_frame=0.25)
    whole = SearchOptions(beam_size=2)
    assert Transcriber.from_bundle(saved, search=whole).search is whole


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"dtype": "float8"}, "dtype"),
        ({"threads": 0}, "threads"),
        ({"batch_seconds": 0}, "batch_seconds"),
        ({"max_piece_seconds": -1.0}, "max_piece_seconds"),
        ({"max_piece_seconds": 0.1}, "max_piece_seconds"),
        ({"max_piece_seconds": float("nan")}, "max_piece_seconds"),
        ({"margin_seconds": -0.1}, "margin_seconds"),
        ({"margin_seconds": float("nan")}, "margin_seconds"),
        ({"search": {"beam_size": 0}}, "beam_size"),
        ({"search": {"beams": 2}}, "beams"),
    ],
)
def test_wrong_options_are_named(saved, wrong, named):
    with pytest.raises(ValueError, match=named):
        Transcriber.from_bundle(saved, **wrong)


@pytest.mark.parametrize("device", ["abacus", "cuda:99", "meta:x", "meta", ""])
def test_a_device_that_cannot_be_used_is_said_on_one_line(saved, device):
    with pytest.raises(InputError, match=r"what there is: auto, cpu") as error:
        Transcriber.from_bundle(saved, device=device)
    assert "\n" not in str(error.value)


def test_ctc_needs_a_head(tmp_path, tokenizer):
    from .conftest import tiny

    bundle.save(tmp_path / "plain", tiny(ctc=False), tokenizer, card={})
    listen = Transcriber.from_bundle(tmp_path / "plain", device="cpu")
    assert listen([noise(9_000)])[0].decoding["ctc_weight"] == 0.0
    with pytest.raises(InputError, match="no CTC head"):
        Transcriber.from_bundle(tmp_path / "plain", search={"ctc_weight": 0.3})


def test_bfloat16_computes_in_half_precision(saved):
    listen = Transcriber.from_bundle(saved, device="cpu", dtype="bfloat16")
    (found,) = listen([noise(9_000)], record=True)
    assert found.decoding["dtype"] == "bfloat16"
    full = Transcriber.from_bundle(saved, device="cpu")
    (exact,) = full.force([noise(9_000)], ["bad"])
    (rough,) = listen.force([noise(9_000)], ["bad"])
    difference = (exact.record.weights - rough.record.weights).abs().max()
    assert 0 < difference < 0.05


def test_threads_are_set(saved):
    before = torch.get_num_threads()
    try:
        Transcriber.from_bundle(saved, device="cpu", threads=1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_the_onset_shift_moves_words(tmp_path, model, tokenizer):
    for name, shift in (("plain", 0.0), ("shifted", 0.12)):
        settings = bundle.Settings(onset_shift=shift)
        bundle.save(tmp_path / name, model, tokenizer, card={}, settings=settings)
    plain, shifted = (
        Transcriber.from_bundle(tmp_path / name, device="cpu").force([noise(16_000)], ["bad cab"])
        for name in ("plain", "shifted")
    )
    start = plain[0].words[1].start
    assert shifted[0].words[1].start == pytest.approx(max(0.0, start - 0.12))


def test_the_package_offers_it():
    assert asr.Transcriber is Transcriber
