"""What every front end must do; a new one is covered by being imported in ``asr.glimpses``."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch

from asr.glimpses import Frontend, SpecAugment
from asr.inference import bundle
from asr.nn.attention import Additive
from asr.nn.decoders import Recurrent
from asr.nn.encoders import Conformer
from asr.nn.las import LAS
from asr.text import CharacterTokenizer

NAMES = sorted(Frontend.registry)
every = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def make(name: str, rate: int = 8000, **options: object) -> Frontend:
    return Frontend.build({"name": name, "bins": 20, **options}, rate).eval()


def small_model(name: str, vocabulary: int) -> LAS:
    return LAS(
        8000,
        vocabulary,
        frontend=partial(Frontend.resolve(name), bins=20),
        encoder=partial(Conformer, dim=16, blocks=1, heads=2, kernel=5, channels=4),
        attention=partial(Additive, dim=8),
        speller=partial(Recurrent, dim=12, embedding=4),
    )


def test_there_are_front_ends() -> None:
    assert {"log_mel", "filterbank"} <= set(NAMES)


@every
@pytest.mark.parametrize("rate", [8000, 11025, 16000])
@pytest.mark.parametrize("samples", [0, 1, 79, 80, 81, 12345])
def test_cells_cover_the_sound(name: str, rate: int, samples: int) -> None:
    front = make(name, rate)
    assert front.hop == round(0.01 * rate) and front.dim == 20 and front.sample_rate == rate
    frames, lengths = front(torch.randn(2, samples), torch.tensor([samples, samples // 2]))
    count = -(-samples // front.hop)
    assert frames.shape == (2, count, 20) and frames.dtype == torch.float32
    assert lengths.tolist() == [count, -(-(samples // 2) // front.hop)]


@every
@pytest.mark.parametrize("rate", [8000, 11025])
def test_frames_are_centred_on_their_cells(name: str, rate: int) -> None:
    front = make(name, rate, normalise="none")
    wave = torch.zeros(rate)
    wave[30 * front.hop + front.hop // 2] = 1.0
    loudness = front(wave[None], torch.tensor([rate]))[0][0].sum(-1)
    assert int(loudness.argmax()) == 30
    torch.testing.assert_close(loudness[29], loudness[31], rtol=1e-3, atol=0.1)


@every
@pytest.mark.parametrize("normalise", ["none", "utterance"])
def test_one_alone_equals_one_in_company(name: str, normalise: str) -> None:
    front = make(name, normalise=normalise)
    lengths = torch.tensor([4000, 0, 79, 2500])
    waves = torch.randn(4, 6000)  # what lies beyond a length is rubbish, not silence
    together, counts = front(waves, lengths)
    assert counts.tolist() == [50, 0, 1, 32]
    for wave, length, frames, count in zip(waves, lengths, together, counts, strict=True):
        alone, _ = front(wave[None, :length], length[None])
        torch.testing.assert_close(frames[:count], alone[0], atol=1e-4, rtol=1e-4)
        assert not frames[count:].any()


@every
def test_loudness_is_forgotten_and_silence_is_finite(name: str) -> None:
    front = make(name)
    wave, length = 0.1 * torch.randn(1, 8000), torch.tensor([8000])
    torch.testing.assert_close(
        front(wave, length)[0], front(0.1 * wave, length)[0], atol=1e-3, rtol=1e-3
    )
    assert torch.isfinite(front(torch.zeros(1, 800), torch.tensor([800]))[0]).all()


@every
@pytest.mark.parametrize("bf16", [False, True])
def test_gradients_are_finite_and_energies_stay_in_float32(name: str, bf16: bool) -> None:
    front = make(name).train()
    waves = torch.randn(3, 4000).mul_(torch.tensor([[1e-6], [1.0], [0.0]])).requires_grad_()
    lengths = torch.tensor([4000, 1000, 0])
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        frames, _ = front(waves, lengths)
    assert frames.dtype == torch.float32
    torch.testing.assert_close(frames, front(waves, lengths)[0])
    frames.square().sum().backward()
    for gradient in (waves.grad, *(p.grad for p in front.parameters())):
        assert gradient is not None and torch.isfinite(gradient).all()


@every
def test_description_builds_the_same(name: str) -> None:
    front = make(name, minimum_hz=100.0, shift=0.0125)
    spec = json.loads(json.dumps(front.spec()))
    again = Frontend.build(spec, 8000)
    again.load_state_dict(front.state_dict())
    assert again.spec() == front.spec() and again.hop == 100
    wave = torch.randn(1, 3000), torch.tensor([3000])
    assert torch.equal(again(*wave)[0], front(*wave)[0])


@every
def test_compiled_gives_the_same(name: str) -> None:
    front = make(name)
    waves, lengths = torch.randn(2, 4000), torch.tensor([4000, 900])
    compiled = torch.compile(front, backend="aot_eager")
    torch.testing.assert_close(compiled(waves, lengths)[0], front(waves, lengths)[0])


@every
def test_a_bundle_hears_the_same(name: str, tmp_path) -> None:
    tokenizer = CharacterTokenizer("abc ")
    model = small_model(name, tokenizer.vocabulary_size).eval()
    for parameter in model.frontend.parameters():
        parameter.data += 0.1 * torch.rand_like(parameter)
    bundle.save(tmp_path / "b", model, tokenizer, card={})
    again = bundle.load(tmp_path / "b").model
    assert again.frontend.name == name
    wave = torch.randn(1, 3000), torch.tensor([3000])
    assert torch.equal(again.encode(*wave).states, model.encode(*wave).states)


@every
def test_augmented_glimpses_reach_the_listener(name: str) -> None:
    model = small_model(name, 9)
    waves, lengths = torch.randn(2, 8000), torch.tensor([8000, 3000])
    augment = SpecAugment(frequency_width=8, time_width=8, warp=0.1)
    changed = model.encode(waves, lengths, augment=augment)
    plain = model.encode(waves, lengths)
    assert changed.states.shape == plain.states.shape
    assert not torch.equal(changed.states, plain.states)
    changed.states.square().sum().backward()
    for parameter in model.frontend.parameters():
        assert parameter.grad is not None and parameter.grad.any()


@every
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"bins": 0}, "bins=0"),
        ({"shift": 0.03}, "shift=0.03"),
        ({"shift": 0.0}, "shift=0.0"),
        ({"normalise": "batch"}, "normalise='batch'"),
        ({"minimum_hz": 5000.0}, "minimum_hz=5000.0"),
        ({"maximum_hz": 9000.0}, "maximum_hz=9000.0"),
    ],
)
def test_refuses(name: str, arguments: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        make(name, **arguments)
