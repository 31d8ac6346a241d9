"""Which runs the comparison has: one for every mechanism there is, and what each is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from asr.glimpses import Frontend
from asr.nn.attention import Attention
from asr.nn.encoders import Encoder
from asr.nn.encoders.selfattention import Mask, Position

CONF = Path(__file__).parents[2] / "conf"
BASE = CONF / "attention_zoo.yaml"
#: what all runs have in common that is not named by their row
DEFAULTS = {
    "encoder": {"conformer", "relative", "full"},
    "frontend": {"log_mel"},
}
#: trained from two seeds, so that a difference can be told from chance
TWICE = ("none", "additive", "location_aware", "multi_head_location", "mochunk")


@dataclass(frozen=True)
class Row:
    """A line of the table: ``name`` of what is compared, ``part`` of the model where it stands
    (``attention``, ``encoder`` or ``frontend``)."""

    part: str
    name: str

    @property
    def config(self) -> Path:
        """States the difference from :data:`BASE`."""
        return CONF / self.part / f"{self.name}.yaml"

    @property
    def label(self) -> str:
        """Names the run and its files."""
        return self.name if self.part == "attention" else f"{self.part}-{self.name}"


@dataclass(frozen=True)
class Run:
    """A row, trained from a seed."""

    row: Row
    seed: int

    @property
    def name(self) -> str:
        return f"{self.row.label}-{self.seed}"


def rows() -> list[Row]:
    """Every speller mechanism, then every kind of listener and of glimpses but the default."""
    listeners = {*Encoder.registry, *Position.registry, *Mask.registry} - DEFAULTS["encoder"]
    glimpses = set(Frontend.registry) - DEFAULTS["frontend"]
    return [
        *(Row("attention", name) for name in sorted(Attention.registry)),
        *(Row("encoder", name) for name in sorted(listeners)),
        *(Row("frontend", name) for name in sorted(glimpses)),
    ]


def runs(only: list[str] | None = None, seeds: list[int] | None = None) -> list[Run]:
    """In the order in which they are trained: first what the theory is about.

    ``only``: labels of rows; all when None. ``seeds``: of every row; when None 1, and 2 for
    :data:`TWICE`. ValueError for a label that there is not.
    """
    found = rows()
    labels = [row.label for row in found]
    if wrong := sorted(set(only or ()) - set(labels)):
        raise ValueError(f"{wrong[0]}: no such row; valid: {', '.join(labels)}")
    wanted = [row for row in found if only is None or row.label in only]
    wanted.sort(key=lambda row: row.label not in TWICE)
    if seeds is not None:
        return [Run(row, seed) for seed in seeds for row in wanted]
    again = [row for row in wanted if row.label in TWICE]
    return [*(Run(row, 1) for row in wanted), *(Run(row, 2) for row in again)]
