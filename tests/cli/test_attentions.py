"""The table of mechanisms says what the classes say, and so does the document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from asr.cli.attentions import rows
from asr.nn.attention import Attention
from asr.nn.encoders.selfattention import Mask, Position
from tests.cli.fakes import Done

Run = Callable[..., Done]
ROOT = Path(__file__).parents[2]
FAMILIES = {"speller": Attention, "position": Position, "mask": Mask}


def test_every_mechanism_has_its_line_name_first(asr: Run) -> None:
    done = asr("attentions")
    assert done.status == 0 and not done.err
    lines = [line for line in done.out.splitlines() if not line.startswith("#")]
    assert [line.split()[0] for line in lines] == [
        name for family in FAMILIES.values() for name in sorted(family.registry)
    ]
    found = {line.split()[0]: line for line in lines}
    for family in FAMILIES.values():
        for name, made in family.registry.items():
            about = made.about
            for part in (about.kind, about.reach, about.looks_at, about.equation, about.source):
                assert part in found[name]
    assert "hard" in found["monotonic"].split() and "local" in found["local_p"].split()


def test_json_has_options_and_parameters_at_the_sizes_asked_for(asr: Run) -> None:
    report = json.loads(asr("attentions", "--json", "--encoder_dim=12", "--query-dim=20",
                            "--heads=2").out)  # fmt: skip
    assert report["schema"] == "asr-attentions/1"
    assert (report["encoder_dim"], report["query_dim"], report["heads"]) == (12, 20, 2)
    speller = {row["name"]: row for row in report["speller"]}
    for name, row in speller.items():
        if name in ("dot", "scaled_dot"):  # refuse widths that differ
            assert row["parameters"] is None
            continue
        made = Attention.resolve(name)(12, 20)
        assert row["parameters"] == sum(p.numel() for p in made.parameters())
        assert {"name": name, **row["options"]} == made.spec()
    position = {row["name"]: row["parameters"] for row in report["position"]}
    assert position["rotary"] == 0
    assert position["relative_shaw"] == 2 * 33 * 6
    equal = {row.name: row.parameters for row in rows(12, 12, 2)["speller"]}
    assert equal["dot"] == 0
    printed = asr("attentions", "--query-dim", "9").out.splitlines()
    (refused,) = (line.split() for line in printed if line.startswith("dot "))
    assert refused[:5] == ["dot", "soft", "global", "content", "-"]


@pytest.mark.parametrize("wrong", [("--heads", "3"), ("--encoder-dim", "0"), ("--sizes", "4")])
def test_sizes_that_no_model_has_are_usage_errors(asr: Run, wrong: tuple[str, str]) -> None:
    done = asr("attentions", *wrong)
    assert done.status == 2 and done.err.startswith("asr: error: ") and not done.out


def test_the_document_says_the_same() -> None:
    text = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    wanted = []
    for table in rows(16, 16, 2).values():
        for row in table:
            equation = row.equation.replace("|", "\\|")
            kind = f"{row.kind}, {row.reach}, {row.looks_at}"
            wanted.append(f"| `{row.name}` | {kind} | {equation} | {row.source} |")
    assert len(wanted) > 20
    assert sorted(line for line in lines if line.startswith("| `")) == sorted(wanted)


def test_options_that_the_document_names_exist() -> None:
    text = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
    options = {
        key for table in rows(16, 16, 2).values() for row in table for key in row.options
    } | {"mask", "terms"}
    named = set(re.findall(r"`(\w+): [\w`]", text)) | set(re.findall(r"`(\w+_\w+)`", text))
    names = {name for family in FAMILIES.values() for name in family.registry}
    assert {"pool", "form", "loss_weight", "after"} <= named <= options | names


def test_the_mechanism_that_the_document_writes_works() -> None:
    """As written there, its imports apart."""
    import torch
    from torch import nn

    from asr.nn.about import About
    from asr.nn.attention.base import Memory, memory_mask
    from asr.nn.attention.parts import Stateless, Weighed, per_row
    from asr.nn.masking import masked_softmax
    from asr.types import Encoded

    text = (ROOT / "docs" / "attention.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    place = {
        "About": About, "Memory": Memory, "Stateless": Stateless, "Weighed": Weighed,
        "per_row": per_row, "nn": nn, "memory_mask": memory_mask,
        "masked_softmax": masked_softmax, "__name__": "document",
    }  # fmt: skip
    kept = dict(Attention.registry)
    try:
        exec("from __future__ import annotations\n" + code, place)
        made = Attention.build({"name": "nearest"}, 4, 3)
    finally:
        Attention.registry.clear()
        Attention.registry.update(kept)
    states, queries = Encoded(torch.randn(2, 5, 4), torch.tensor([5, 3])), torch.randn(2, 2, 3)
    attended = made.sequence(queries, made.prepare(states), mode="decode")
    away = (made.query(queries)[0, 1] - states.states[0]).square().sum(-1)
    torch.testing.assert_close(attended.weights[0, 1, 0], torch.softmax(-away, -1))
