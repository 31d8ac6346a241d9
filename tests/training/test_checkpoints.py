"""When a run saves itself."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lightning.pytorch.callbacks import ModelCheckpoint

from asr.training.checkpoints import Newest, checkpoints
from asr.training.folder import RunFolder


def test_never_in_the_middle_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []
    monkeypatch.setattr(
        ModelCheckpoint, "on_train_batch_end", lambda *given: saved.append(given[5])
    )
    newest = Newest(train_time_interval=timedelta(0))
    for index in range(6):
        loop = SimpleNamespace(_should_accumulate=lambda index=index: index % 3 < 2)
        trainer: Any = SimpleNamespace(fit_loop=loop)
        newest.on_train_batch_end(trainer, None, None, None, index)  # type: ignore[arg-type]
    assert saved == [2, 5]


def test_all_lie_where_a_run_looks_for_them(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    made = checkpoints(folder)
    places = {Path(str(c.dirpath)) / f"{c.filename}.ckpt" for c in made}
    assert places == {folder.best, folder.last}
    assert len({c.state_key for c in made}) == len(made)  # each is resumed as itself
