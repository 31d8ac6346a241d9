"""From sound to transcripts: alone or in company, and by which options."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import soxr
import torch

import asr
from asr.errors import InputError
from asr.inference import bundle
from asr.inference.transcriber import Transcriber
from asr.search import SearchOptions
from asr.types import Waveform
from tests.inference.sounds import RATE, noise, same


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
