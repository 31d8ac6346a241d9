"""What mechanisms are made of, against plain loops."""

from __future__ import annotations

import pytest
import torch

from asr.nn.attention import parts
from asr.nn.attention.parts import additive_energies, convolved, located


@pytest.mark.parametrize("in_cache", [1, 60, 10**6])  # one utterance at a time, two, all
@pytest.mark.parametrize("featured", [False, True])
def test_energies_equal_a_loop_in_pieces_and_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, in_cache: int, featured: bool
) -> None:
    monkeypatch.setattr(parts, "IN_CACHE", in_cache)
    batch, share, size, width, heads = 3, 2, 4, 5, 2
    queries, keys = torch.randn(batch * share, width), torch.randn(batch, size, width)
    energy, extend = torch.randn(heads, width), torch.randn(width, 3)
    features = torch.randn(batch * share, size, 3) if featured else None
    kept = [t.clone() for t in (queries, keys)]
    given = (queries, keys, energy, features, extend)
    with torch.no_grad():
        found = additive_energies(*given)
    assert found.shape == (batch * share, heads, size)
    for n in range(batch * share):
        for j in range(size):
            inner = queries[n] + keys[n // share, j]
            if features is not None:
                inner = inner + extend @ features[n, j]
            torch.testing.assert_close(found[n, :, j], energy @ torch.tanh(inner))
    torch.testing.assert_close(additive_energies(*given), found)  # with gradients
    assert torch.equal(queries, kept[0]) and torch.equal(keys, kept[1])  # changed in place: ours


def test_convolution_equals_a_loop() -> None:
    groups, kernel, channels, size = 2, 3, 4, 6
    vectors = [torch.randn(5, groups, size) for _ in range(2)]
    filters = torch.randn(groups, 2 * kernel, channels)
    found = convolved(vectors, filters)
    assert found.shape == (5, size, groups * channels)
    for g in range(groups):
        for j in range(size):
            expected = torch.zeros(5, channels)
            for i, vector in enumerate(vectors):
                for k in range(kernel):
                    if 0 <= j + k - 1 < size:
                        expected += vector[:, g, j + k - 1, None] * filters[g, i * kernel + k]
            part = found[:, j, g * channels : (g + 1) * channels]
            torch.testing.assert_close(part, expected, atol=1e-5, rtol=1e-4)
    assert convolved([v[..., :0] for v in vectors], filters).shape == (5, 0, groups * channels)


def test_location_is_the_same_with_and_without_gradients() -> None:
    """While training, filters and extension are one product; while decoding, a convolution."""
    groups, kernel, channels, width, size = 2, 5, 3, 4, 6
    vectors = [torch.rand(5, groups, size) for _ in range(2)]
    filters = torch.randn(groups, 2 * kernel, channels, requires_grad=True)
    extend = torch.randn(groups, channels, width, requires_grad=True)
    trained, nothing = located(vectors, filters, extend)
    assert nothing is None and trained.shape == (5, size, groups * width)
    with torch.no_grad():
        features, matrix = located(vectors, filters, extend)
        assert matrix is not None
        torch.testing.assert_close(trained, features @ matrix.t(), atol=1e-5, rtol=1e-4)
    trained.square().sum().backward()
    found = [p.grad for p in (filters, extend)]
    again = convolved(vectors, filters) @ torch.block_diag(*extend)
    expected = torch.autograd.grad(again.square().sum(), (filters, extend))
    torch.testing.assert_close(found, list(expected), atol=1e-3, rtol=1e-4)
    empty, _ = located([v[..., :0] for v in vectors], filters, extend)
    assert empty.shape == (5, 0, groups * width)
