"""Groups by what a manifest says: names as they are, numbers in bins."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from asr.evaluation.groups import binned, by_field, ordered


def test_bins_by_hand() -> None:
    values = {str(n): float(n) for n in range(1, 11)}
    names = ["1 to 2", "3 to 4", "5 to 6", "7 to 8", "9 to 10"]
    assert binned(values) == {str(n): names[(n - 1) // 2] for n in range(1, 11)}
    assert binned(dict(zip("abc", (3, 1.5, 3), strict=True))) == {"a": "3", "b": "1.5", "c": "3"}
    assert binned({}) == {}


def test_equal_values_are_never_parted_and_bins_do_not_overlap() -> None:
    generator = random.Random(0)
    for _ in range(50):
        values = {str(n): generator.choice([0, 1, 2, 2, 2, 5, 7.5, 9, 11]) for n in range(60)}
        names = binned(values)
        assert names.keys() == values.keys()
        inside: dict[str, set[float]] = {}
        for id, name in names.items():
            inside.setdefault(name, set()).add(values[id])
        spans = sorted((min(found), max(found)) for found in inside.values())
        assert 2 <= len(spans) <= 5
        assert all(a[1] < b[0] for a, b in pairwise(spans))


@pytest.mark.parametrize(
    ("key", "values", "groups"),
    [
        ("room", ["x", "y", ""], {"0": "x", "1": "y"}),
        ("snr", [-5.0, 10, 10.0], {"0": "-5", "1": "10", "2": "10"}),
        ("snr", ["-5.0", "10.25"], {"0": "-5", "1": "10.25"}),
        ("snr", ["-5.0", "clean"], {"0": "-5.0", "1": "clean"}),
        ("take", ["01", "02"], {"0": "01", "1": "02"}),  # labels that happen to be digits
        ("speaker", list(range(9)), {str(n): str(n) for n in range(9)}),
        ("far", [True, False], {"0": "True", "1": "False"}),
        ("snr", list(range(20)), {str(n): f"{n // 4 * 4} to {n // 4 * 4 + 3}" for n in range(20)}),
    ],
)
def test_fields(key: str, values: list[str | float], groups: dict[str, str]) -> None:
    fields = {str(n): {key: value, "other": 1} for n, value in enumerate(values)}
    assert by_field(fields, key) == groups
    assert by_field(fields, "nobody") == {}


def test_numbered_groups_are_in_the_order_of_their_numbers() -> None:
    names = ["10 to 12", "s", "-5 to 0", "unknown", "1.5 to 9"]
    found = ordered(list("abcde"), dict(zip("abcde", names, strict=True)))
    assert list(found) == ["-5 to 0", "1.5 to 9", "10 to 12", "s", "unknown"]
    assert [rows.tolist() for rows in found.values()] == [[2], [4], [0], [1], [3]]
