"""The model card as people read it: README.md, rendered from card.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asr.inference.archive import printable

_SECTIONS = {
    "data": "Trained on",
    "hears": "What it can hear",
    "cannot": "What it cannot hear",
    "licence": "Licence",
}
_SAID = ("summary", "results", "name")  # each has a place of its own
_RESULT = ("wer", "substitutions", "deletions", "insertions", "reference_words")


def render(card: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """Markdown of a card.

    Known keys are ``summary``, ``data``, ``licence``, ``hears``, ``cannot`` (each a text or a list
    of them) and ``results`` (a list of ``{"set", "wer" (a fraction), "substitutions",
    "deletions", "insertions", "reference_words"}``); every other one becomes a row of a table.
    Figures that were not measured stay blank. A card may be a stranger's: whatever JSON it holds
    is rendered, and nothing of it steers a terminal.
    """
    model = config["model"]
    lines = [f"# {config['name']}", ""]
    if "summary" in card:
        lines += [_text(card["summary"]), ""]
    for key, title in _SECTIONS.items():
        if key in card:
            lines += [f"## {title}", "", _text(card[key]), ""]
    results = card.get("results")
    if isinstance(results, list) and results:
        rows = [
            (_cell(one.get("set", "")), *(_figure(key, one.get(key)) for key in _RESULT))
            for one in results
            if isinstance(one, Mapping)
        ]
        head = ("set", "WER", *(key.replace("_", " ") for key in _RESULT[1:]))
        lines += ["## Word error rate", "", *_table(head, rows, figures=True), ""]
    facts = {
        "language": config["language"],
        "sample rate": f"{model.get('sample_rate', '')} Hz",
        **{
            part: model[part].get("name", "")
            for part in ("frontend", "encoder", "attention", "speller")
            if isinstance(model.get(part), Mapping)
        },
        "text normalisation": config["normalisation"],
        **{f"{name} version": version for name, version in config["versions"].items()},
        **{k: v for k, v in card.items() if k not in (*_SECTIONS, *_SAID, *config["versions"])},
    }
    pairs = [(_cell(key.replace("_", " ")), _cell(value)) for key, value in facts.items()]
    lines += ["## Facts", "", *_table(("", ""), pairs)]
    return "\n".join(lines) + "\n"


def _table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, figures: bool = False
) -> list[str]:
    """Lines of Markdown whose columns line up in a terminal too; ``figures`` stand to the right."""
    widths = [max(3, *map(len, column)) for column in zip(head, *rows, strict=True)]
    places = [str.ljust, *[str.rjust if figures else str.ljust] * (len(head) - 1)]

    def line(cells: Sequence[str]) -> str:
        placed = [put(cell, n) for put, cell, n in zip(places, cells, widths, strict=True)]
        return f"| {' | '.join(placed)} |"

    rule = [
        ("-" if put is str.ljust else ":").rjust(n, "-")
        for put, n in zip(places, widths, strict=True)
    ]
    return [line(head), line(rule), *map(line, rows)]


def _text(value: Any) -> str:
    text = "\n".join(f"- {item}" for item in value) if isinstance(value, list) else str(value)
    return printable(text)


def _cell(value: Any) -> str:
    return printable(" ".join(str(value).replace("|", "\\|").split()))


def _figure(key: str, value: Any) -> str:
    if value is None:
        return ""
    return (
        f"{100 * value:.2f}%" if key == "wer" and isinstance(value, float | int) else _cell(value)
    )
