"""The model card as people read it: README.md, rendered from card.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asr.inference.archive import printable

_SECTIONS = {
    "data": "Trained on",
    "hears": "What it can hear",
    "cannot": "What it cannot hear",
    "licence": "Licence",
}
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
        lines += ["## Word error rate", ""]
        lines += ["| set | WER | substitutions | deletions | insertions | reference words |"]
        lines += ["|---|---|---|---|---|---|"]
        for result in (one for one in results if isinstance(one, Mapping)):
            figures = [_figure(key, result.get(key)) for key in _RESULT]
            lines += [f"| {_cell(result.get('set', ''))} | {' | '.join(figures)} |"]
        lines += [""]
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
        **{k: v for k, v in card.items() if k not in (*_SECTIONS, "summary", "results")},
    }
    lines += ["## Facts", "", "| | |", "|---|---|"]
    lines += [f"| {_cell(key)} | {_cell(value)} |" for key, value in facts.items()]
    return "\n".join(lines) + "\n"


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
