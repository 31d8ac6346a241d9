"""The speller and the whole model."""

from __future__ import annotations

import json

import pytest
import torch

from asr.errors import InputError
from asr.nn.attention import Attention
from asr.nn.las import LAS

from .conftest import small_las

mechanisms = pytest.mark.parametrize("attention", sorted(Attention.registry))


def heard(model: LAS, lengths: list[int]):
    waves = torch.randn(len(lengths), max(lengths)) * 0.1
    return model.encode(waves, torch.tensor(lengths))


@mechanisms
def test_stepwise_equals_teacher_forced(attention: str) -> None:
    model = small_las(attention)
    states = heard(model, [4000, 2600])
    targets = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 7]])
    forced = model.speller(states, targets, torch.tensor([4, 4]))
    memory, state = model.speller.start(states, 2)
    for u, token in enumerate(targets.unbind(1)):
        step = model.speller.step(token, memory, state)
        state = step.state
        torch.testing.assert_close(step.logits, forced.logits[:, u], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(step.weights, forced.weights[:, u], atol=1e-5, rtol=1e-4)


def test_gradients_while_training_are_those_of_plain_steps() -> None:
    """The gradient of the weight that all steps use is deferred while training, and only then."""
    model = small_las()
    model.speller.dropout.p = 0.0
    states = heard(model, [4000, 2600])
    targets, lengths = torch.tensor([[1, 3, 4, 5], [1, 6, 7, 7]]), torch.tensor([4, 4])
    found = {}
    for training in (True, False):
        model.train(training)
        model.zero_grad()
        loss = model.speller(states, targets, lengths).logits.sin().sum()
        loss.backward(retain_graph=True)
        found[training] = {
            n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None
        }
    assert float(found[True]["speller.from_past.weight"].abs().max()) > 1e-3
    for name, gradient in found[False].items():
        torch.testing.assert_close(found[True][name], gradient, atol=1e-5, rtol=1e-4, msg=name)


@mechanisms
def test_rows_share_memory(attention: str) -> None:
    """Three rows of an utterance give what each would give alone."""
    model = small_las(attention)
    states = heard(model, [4000, 2600])
    tokens = torch.tensor([3, 4, 5, 6, 7, 8])
    memory, state = model.speller.start(states, 6)
    together = model.speller.step(tokens, memory, state)
    for row in range(6):
        one = type(states)(
            states.states[row // 3 : row // 3 + 1], states.lengths[row // 3 : row // 3 + 1]
        )
        memory, state = model.speller.start(one, 1)
        alone = model.speller.step(tokens[row : row + 1], memory, state)
        torch.testing.assert_close(together.logits[row], alone.logits[0], atol=1e-5, rtol=1e-4)


def test_one_alone_equals_one_in_company() -> None:
    model, lengths = small_las(), [4000, 2600, 81]
    waves = torch.randn(3, 4000)
    targets = torch.tensor([[1, 3, 4]] * 3)
    states = model.encode(waves, torch.tensor(lengths))
    together = model.speller(states, targets, torch.tensor([3, 3, 3]))
    scores = model.ctc_log_probs(states)
    for row, length in enumerate(lengths):
        alone = model.encode(waves[row : row + 1, :length], torch.tensor([length]))
        one = model.speller(alone, targets[:1], torch.tensor([3]))
        torch.testing.assert_close(together.logits[row], one.logits[0], atol=1e-4, rtol=1e-4)
        count = int(alone.lengths)
        torch.testing.assert_close(
            scores[row, :count], model.ctc_log_probs(alone)[0], atol=1e-4, rtol=1e-4
        )


def test_scheduled_sampling_feeds_back_the_models_own_choice() -> None:
    model = small_las()
    states = heard(model, [4000])
    targets = torch.tensor([[1, 3, 4, 5]])
    lengths = torch.tensor([4])
    own = [1]
    memory, state = model.speller.start(states, 1)
    for _ in range(3):
        step = model.speller.step(torch.tensor(own[-1:]), memory, state)
        state = step.state
        own.append(int(step.logits.argmax()))
    fed = model.speller(states, torch.tensor([own]), lengths)
    sampled = model.speller(states, targets, lengths, sampling=1.0)
    torch.testing.assert_close(sampled.logits, fed.logits, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(sampled.logits, model.speller(states, targets, lengths).logits)


def test_description_builds_the_same_model() -> None:
    model = small_las(kernel=9, smoothing=True)
    spec = json.loads(json.dumps(model.spec()))
    again = LAS.from_spec(spec).eval()
    again.load_state_dict(model.state_dict())
    waves, lengths = torch.randn(2, 3000), torch.tensor([3000, 2000])
    a, b = model.encode(waves, lengths), again.encode(waves, lengths)
    targets = torch.tensor([[1, 3], [1, 4]])
    assert torch.equal(
        model.speller(a, targets, torch.tensor([2, 2])).logits,
        again.speller(b, targets, torch.tensor([2, 2])).logits,
    )
    assert again.spec() == model.spec()
    assert model.frame_shift == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "encoder",
            {"name": "builtins.eval"},
            "unknown encoder 'builtins.eval'; valid: .*conformer",
        ),
        ("encoder", {"name": "conformer", "blocks": "many"}, "conformer: "),
        ("speller", {"name": "recurrent", "evil": 1}, "evil"),
        ("attention", "location_aware", "model description"),
        ("vocabulary_size", 2, "vocabulary_size=2"),
        ("extra", 1, "keys missing or unknown: extra"),
    ],
)
def test_bad_descriptions_are_refused_in_one_line(key: str, value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        LAS.from_spec({**small_las().spec(), key: value})
    assert "\n" not in str(caught.value)


def test_without_a_ctc_head() -> None:
    model = LAS.from_spec({**small_las().spec(), "ctc": False})
    with pytest.raises(ValueError, match="no CTC head"):
        model.ctc_log_probs(heard(model, [800]))


def test_bf16_keeps_scores_in_float32() -> None:
    model = small_las()
    with torch.autocast("cpu", torch.bfloat16):
        states = heard(model, [4000])
        spelled = model.speller(states, torch.tensor([[1, 3]]), torch.tensor([2]))
        assert spelled.weights.dtype == torch.float32
        assert model.ctc_log_probs(states).dtype == torch.float32
