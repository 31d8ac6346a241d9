"""Saving and loading: the same model, all or nothing, and a card that people can read."""

from __future__ import annotations

import json
from functools import partial
from inspect import signature

import pytest
import torch

from asr.errors import InputError
from asr.inference import bundle
from asr.inference.bundle import Settings
from asr.nn.attention import Attention
from asr.nn.decoders import Speller
from asr.nn.encoders import Conformer, Encoder
from asr.nn.encoders.selfattention.base import Mask, Position

from .conftest import CARD, tiny

KEYS = {Attention: "attention", Encoder: "encoder", Speller: "speller"}
SMALL = {"dim": 16, "blocks": 1, "layers": 1, "heads": 2, "channels": 4, "embedding": 8}
PARTS = [
    (family, name)
    for family in KEYS
    for name in sorted(family.registry)
    if family.registry[name].__module__.startswith("asr.")
]


def logits(model, seed: int = 0) -> torch.Tensor:
    """(B,U,V) of two utterances of noise."""
    noise = torch.Generator().manual_seed(seed)
    waves = torch.randn(2, 12_000, generator=noise) * 0.1
    with torch.inference_mode():
        encoded = model.encode(waves, torch.tensor([12_000, 7_000]))
        targets = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 8]])
        return model.speller(encoded, targets, torch.tensor([4, 3])).logits


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["noise", "noise.zip"])
def test_what_is_loaded_computes_exactly_what_was_saved(tmp_path, model, tokenizer, name):
    settings = Settings(onset_shift=0.05, search={"beam_size": 2}, max_piece_seconds=12)
    bundle.save(tmp_path / name, model, tokenizer, card=CARD, settings=settings)
    loaded = bundle.load(tmp_path / name)
    assert torch.equal(logits(loaded.model), logits(model))
    assert not loaded.model.training
    assert loaded.tokenizer.fingerprint == tokenizer.fingerprint
    assert loaded.card == CARD
    assert loaded.name == "noise"
    assert loaded.settings == Settings(
        name="noise", onset_shift=0.05, search={"beam_size": 2}, max_piece_seconds=12
    )


def test_every_part_that_can_be_trained_can_be_saved_and_loaded(tmp_path, tokenizer):
    assert len(PARTS) >= 3
    for family, name in PARTS:
        part = family.registry[name]
        taken = signature(part.__init__).parameters.keys() & SMALL.keys()
        made = tiny(**{KEYS[family]: partial(part, **{key: SMALL[key] for key in taken})})
        path = tmp_path / f"{family.__name__}-{name}"
        bundle.save(path, made, tokenizer, card={})
        assert torch.equal(logits(bundle.load(path).model), logits(made)), (family, name)


@pytest.mark.parametrize(
    ("key", "family"), [("position", Position), ("mask", Mask)], ids=["position", "mask"]
)
def test_every_kind_of_listener_can_be_saved_and_loaded(tmp_path, tokenizer, key, family):
    assert family.registry
    for name in family.registry:
        encoder = partial(Conformer, dim=16, heads=2, blocks=1, channels=4, **{key: name})
        made = tiny(encoder=encoder)
        bundle.save(tmp_path / name, made, tokenizer, card={})
        assert torch.equal(logits(bundle.load(tmp_path / name).model), logits(made)), name


def test_buffers_that_were_measured_travel_along(tmp_path, tokenizer):
    from asr.glimpses import LogMel

    made = tiny(frontend=partial(LogMel, bins=12, normalise="global"))
    made.frontend.fit([(torch.randn(1, 8000), torch.tensor([8000]))])
    bundle.save(tmp_path / "b", made, tokenizer, card={})
    assert torch.equal(logits(bundle.load(tmp_path / "b").model), logits(made))


def test_loading_leaves_the_random_numbers_alone(saved):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    bundle.load(saved)
    assert torch.equal(torch.rand(3), expected)


def test_equal_content_gives_equal_fingerprints_and_files(tmp_path, saved, model, tokenizer):
    settings = bundle.load(saved).settings
    for name in ("a.zip", "b.zip", "c"):
        bundle.save(tmp_path / name, model, tokenizer, card=CARD, settings=settings)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    names = ("a.zip", "c")
    prints = {bundle.load(path).fingerprint for path in (saved, *(tmp_path / n for n in names))}
    assert len(prints) == 1


def test_a_fingerprint_follows_the_weights_but_not_the_card(copy, tmp_path, tokenizer):
    before = bundle.load(copy).fingerprint
    (copy / "card.json").write_text("{}")
    assert bundle.load(copy).fingerprint == before
    other = tiny()
    with torch.no_grad():
        next(other.parameters()).add_(1e-3)
    loaded = bundle.load(copy)
    bundle.save(tmp_path / "other", other, tokenizer, card={}, settings=loaded.settings)
    assert bundle.load(tmp_path / "other").fingerprint != before


def test_no_pickle_is_in_it(saved):
    assert sorted(contents(saved)) == [
        "README.md", "card.json", "config.json", "model.safetensors", "tokenizer.json"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["there", "there.zip"])
def test_a_bundle_is_replaced_only_when_asked(tmp_path, model, tokenizer, name):
    path = tmp_path / name
    bundle.save(path, model, tokenizer, card={"hours": 1})
    with pytest.raises(InputError, match="exists"):
        bundle.save(path, model, tokenizer, card={"hours": 2})
    assert bundle.load(path).card == {"hours": 1}
    bundle.save(path, model, tokenizer, card={"hours": 2}, overwrite=True)
    assert bundle.load(path).card == {"hours": 2}
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_is_no_bundle_is_never_replaced(tmp_path, model, tokenizer):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    (tmp_path / "file").write_text("more of it")
    for name in ("thesis", "file"):
        with pytest.raises(InputError, match="not a bundle"):
            bundle.save(tmp_path / name, model, tokenizer, card={}, overwrite=True)
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"
    assert (tmp_path / "file").read_text() == "more of it"


def test_an_empty_folder_is_filled(tmp_path, model, tokenizer):
    (tmp_path / "new").mkdir()
    bundle.save(tmp_path / "new", model, tokenizer, card={})
    assert bundle.load(tmp_path / "new").name == "new"


def test_a_failed_save_leaves_nothing_behind(tmp_path, model, tokenizer, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        bundle.save(tmp_path / "new", model, tokenizer, card={})
    assert list(tmp_path.iterdir()) == []


def test_a_diverged_model_is_not_saved(tmp_path, tokenizer):
    made = tiny()
    with torch.no_grad():
        made.ctc.bias[3] = float("nan")
    with pytest.raises(InputError, match=r"ctc\.bias.*not finite"):
        bundle.save(tmp_path / "new", made, tokenizer, card={})


@pytest.mark.parametrize("card", [{"wer": float("nan")}, {"data": object()}])
def test_a_card_must_be_json(tmp_path, model, tokenizer, card):
    with pytest.raises(InputError, match="new"):
        bundle.save(tmp_path / "new", model, tokenizer, card=card)
    assert list(tmp_path.iterdir()) == []


def test_model_and_tokenizer_must_agree(tmp_path, model):
    from asr.text import CharacterTokenizer

    with pytest.raises(InputError, match=r"13 tokens.* has 5"):
        bundle.save(tmp_path / "new", model, CharacterTokenizer("ab"), card={})


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"onset_shift": float("nan")}, "onset_shift"),
        ({"onset_shift": "1"}, "onset_shift"),
        ({"max_piece_seconds": 0}, "max_piece_seconds"),
        ({"least_confidence": 1.5}, "least_confidence"),
        ({"least_confidence": None}, "least_confidence"),
        ({"language": 3}, "language"),
        ({"normalisation": "rot13"}, "normalisation"),
        ({"search": {"beam_size": 0}}, "beam_size"),
        ({"search": {"beams": 1}}, "beams"),
    ],
)
def test_settings_say_what_is_wrong(wrong, named):
    with pytest.raises(ValueError, match=named):
        Settings(**wrong)


@pytest.fixture
def checkpoint(model, tokenizer, tmp_path):
    """A file as training writes it: more in it than the model, and only plain values."""
    state = {f"model.{key}": value for key, value in model.state_dict().items()}
    content = {
        "state_dict": {**state, "loss.weight": torch.ones(1)},
        "epoch": 3,
        "asr": bundle.describe_for_checkpoint(
            model, tokenizer, card=CARD, settings=Settings(language="en")
        ),
    }
    torch.save(content, tmp_path / "last.ckpt")
    return tmp_path / "last.ckpt"


def test_a_checkpoint_makes_the_same_bundle(checkpoint, model, tokenizer):
    made = bundle.from_checkpoint(checkpoint)
    assert torch.equal(logits(made.model), logits(model))
    assert made.tokenizer.fingerprint == tokenizer.fingerprint
    assert made.card == CARD
    assert made.settings == Settings(language="en")


def test_what_a_checkpoint_holds_is_plain(model, tokenizer):
    state = bundle.describe_for_checkpoint(model, tokenizer, card=CARD)
    assert json.loads(json.dumps(state, allow_nan=False)) == state
