"""From what was measured of each run to tables and a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from asr.inspection import figures
from recipes.attention_zoo.hearing import GROUPS
from recipes.attention_zoo.plan import Row

#: label -> of each seed what `hearing.measure` found, besides `seed`, `steps`, `training_seconds`
Results = Mapping[str, Sequence[Mapping[str, Any]]]
Costs = Mapping[str, Mapping[str, Any]]
_COLOURS = ("#0f9d94", "#93298a", "#ee6a63")
_COUNTS = ("substitutions", "deletions", "insertions", "reference_words")


def pooled(results: Sequence[Mapping[str, Any]], group: str, decoding: str) -> dict[str, Any]:
    """Counts of all seeds together, their error rate, and the mean of everything else."""
    found = [result["groups"][group][decoding] for result in results]
    counts: dict[str, Any] = {name: sum(one[name] for one in found) for name in _COUNTS}
    errors = sum(counts[name] for name in _COUNTS[:3])
    made = {**counts, "wer": errors / counts["reference_words"]}
    for name in found[0].keys() - made.keys():
        known = [one[name] for one in found if one[name] is not None]
        made[name] = sum(known) / len(known) if known else None
    return made


def tables(rows: Sequence[Row], results: Results, costs: Costs) -> str:
    """Markdown: what is heard, how it is listened, what it costs; a cell not measured is blank."""
    groups = list(GROUPS)
    heard = {
        "row": lambda row: f"`{row.label}`",
        "seeds": lambda row: _of(results, row, lambda found: f"{len(found)}"),
        **{f"{g} digits": _wer(results, g, "attention", counts=True) for g in groups},
        f"{groups[-1]}, window": _wer(results, groups[-1], "windowed", counts=False),
        **{f"{g}, with CTC": _wer(results, g, "with_ctc", counts=False) for g in groups[::2]},
    }
    listened = {
        "row": heard["row"],
        **{f"onsets, {g}": _onsets(results, g) for g in groups[::2]},
        **{f"forward, {g}": _percent(results, g, "monotonicity") for g in groups[::2]},
        "heard, 16-25": _percent(results, groups[-1], "coverage"),
        "inside its word": _explained(results, "explicit_inside"),
        "implicit, inside": _explained(results, "implicit_inside"),
        "overlap of the two": _explained(results, "overlap"),
    }
    cost = {
        "row": heard["row"],
        "parameters": _cost(costs, "parameters", "{:,.0f}"),
        "of the attention": _cost(costs, "attention_parameters", "{:,.0f}"),
        "training step": _cost(costs, "step_ms", "{:.0f} ms"),
        "memory of a step": _cost(costs, "memory_mib", "{:.0f} MiB"),
        "steps in the budget": lambda row: _of(results, row, _steps),
    }
    parts = [_table(rows, columns) for columns in (heard, listened, cost)]
    return "\n".join(parts)


def variance(found: Mapping[str, Any] | None) -> str:
    """A sentence on the gradient of hard attention."""
    if not found:
        return ""
    return (
        f"Variance of the gradient of `hard` over {found['draws']} draws of its glimpses: "
        f"{found['with_baseline']:.3g} with the baseline, {found['without_baseline']:.3g} without, "
        f"{found['ratio']:.1f} times as much.\n"
    )


Cell = Callable[[Row], str]


def _table(rows: Sequence[Row], columns: Mapping[str, Cell]) -> str:
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[cell(row) for cell in columns.values()] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _of(results: Results, row: Row, cell: Callable[[Sequence[Mapping[str, Any]]], str]) -> str:
    found = results.get(row.label, ())
    return cell(found) if found else ""


def _wer(results: Results, group: str, decoding: str, *, counts: bool) -> Cell:
    def cell(found: Sequence[Mapping[str, Any]]) -> str:
        if decoding not in found[0]["groups"][group]:
            return ""
        one = pooled(found, group, decoding)
        parts = "/".join(str(one[name]) for name in _COUNTS[:3])
        return f"{one['wer']:.2%}" + (f" ({parts} of {one['reference_words']})" if counts else "")

    return lambda row: _of(results, row, cell)


def _onsets(results: Results, group: str) -> Cell:
    def cell(found: Sequence[Mapping[str, Any]]) -> str:
        one = pooled(found, group, "attention")
        if one["onset_median"] is None:
            return "no string right"
        median, within = 1000 * one["onset_median"], one["onset_within"]
        return f"{median:.0f} ms, {within:.0%} of {one['onset_words']:.0f}"

    return lambda row: _of(results, row, cell)


def _percent(results: Results, group: str, name: str) -> Cell:
    def cell(found: Sequence[Mapping[str, Any]]) -> str:
        return f"{pooled(found, group, 'attention')[name]:.1%}"

    return lambda row: _of(results, row, cell)


def _explained(results: Results, name: str) -> Cell:
    def cell(found: Sequence[Mapping[str, Any]]) -> str:
        first = next(iter(GROUPS))
        known = [
            x["groups"][first]["explained"] for x in found if "explained" in x["groups"][first]
        ]
        return f"{sum(one[name] for one in known) / len(known):.0%}" if known else ""

    return lambda row: _of(results, row, cell)


def _cost(costs: Costs, name: str, form: str) -> Cell:
    return lambda row: form.format(costs[row.label][name]) if row.label in costs else ""


def _steps(found: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{one['steps']} in {one['training_seconds'] / 60:.1f} min" for one in found)


def figure(rows: Sequence[Row], results: Results) -> Figure:
    """Word error rate by length group, a line a row, the best on the longest strings first."""
    longest = list(GROUPS)[-1]
    shown = [row for row in rows if results.get(row.label)]
    shown.sort(key=lambda row: pooled(results[row.label], longest, "attention")["wer"])
    with mpl.rc_context(figures.STYLE):
        made = Figure((8.0, 1.0 + 0.24 * max(len(shown), 1)), dpi=120, facecolor="white")
        axes = made.add_axes((0.24, 0.09, 0.72, 0.86))
        for place, row in enumerate(shown):
            rates = [pooled(results[row.label], group, "attention")["wer"] for group in GROUPS]
            axes.plot(rates, [place] * len(rates), color=figures.RULE, linewidth=1.5, zorder=1)
            for rate, colour in zip(rates, _COLOURS, strict=True):
                axes.scatter([max(rate, 1e-3)], [place], color=colour, s=30, zorder=2)
        for group, colour in zip(GROUPS, _COLOURS, strict=True):
            axes.scatter([], [], color=colour, s=30, label=f"{group} digits")
        axes.set_yticks(range(len(shown)), [row.label for row in shown])
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlabel("word error rate, by attention alone (0.1 % and less at the edge)")
        axes.xaxis.set_major_formatter(lambda rate, _: f"{rate:.1%}")
        axes.legend(frameon=False, loc="lower right")
        axes.grid(axis="x", color=figures.RULE, linewidth=0.5)
    return made


def write(
    folder: Path,
    rows: Sequence[Row],
    results: Results,
    costs: Costs,
    hard: Mapping[str, Any] | None,
) -> None:
    """``tables.md`` and ``wer.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = tables(rows, results, costs) + "\n" + variance(hard)
    (folder / "tables.md").write_text(text, encoding="utf-8")
    figures.save(figure(rows, results), folder / "wer.png")
