"""How a run tells what it is doing: log.jsonl, lines on standard error, pictures in TensorBoard."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.loggers.logger import Logger
from lightning.pytorch.utilities import rank_zero_only

from asr.inspection import figures
from asr.inspection.spectrogram import spectrogram_of
from asr.training.module import LASModule
from asr.types import Batch, Waveform


class JsonLines(Logger):
    """Appends ``{"step", "seconds", metric: value, ...}`` to a file, one line a call."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._started = time.monotonic()

    @property
    def name(self) -> str:
        return ""

    @property
    def version(self) -> str:
        return ""

    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """config.yaml holds them."""

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        seconds = round(time.monotonic() - self._started, 3)
        row = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"step": step, "seconds": seconds, **row}) + "\n")


class Lines(Callback):
    """One line on standard error after each validation: the state of the run at a glance."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if trainer.sanity_checking or not trainer.is_global_zero:
            return
        module = cast(LASModule, pl_module)
        shown = {name: value for name, value in module.metrics.items() if math.isfinite(value)}
        rates = " ".join(f"{n} {shown[n]:.2%}" for n in ("wer", "cer") if n in shown)
        health = " ".join(f"{n} {v:.2f}" for n, v in shown.items() if n not in ("wer", "cer"))
        loss = trainer.callback_metrics.get("train/loss")
        print(
            f"epoch {trainer.current_epoch} step {trainer.global_step} "
            f"{time.monotonic() - self._started:.0f} s"
            + (f" loss {float(loss):.3f}" if loss is not None else "")
            + f" | validation {rates} | attention {health}"
            + (f" | skipped steps {module.non_finite}" if module.non_finite else ""),
            file=sys.stderr,
            flush=True,
        )


class StderrProgressBar(TQDMProgressBar):
    """Lightning's bar, on standard error: standard output is for results."""

    def init_train_tqdm(self) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            return super().init_train_tqdm()

    def init_validation_tqdm(self) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            return super().init_validation_tqdm()

    def init_sanity_tqdm(self) -> Any:
        with contextlib.redirect_stdout(sys.stderr):
            return super().init_sanity_tqdm()


class Figures(Callback):
    """Attention over the spectrogram, as the model really decoded it, in TensorBoard.

    Args:
        utterances: how many of the first validation utterances are drawn; 0 draws nothing.
        every_n_epochs: how often, and once more at the end of the run; drawing all of them each
            epoch could outlast the epoch.
    """

    def __init__(self, *, utterances: int = 2, every_n_epochs: int = 5) -> None:
        if utterances < 0 or every_n_epochs < 1:
            raise ValueError(
                f"utterances={utterances}, every_n_epochs={every_n_epochs}: "
                "at least 0 and 1 are needed"
            )
        self.utterances = utterances
        self.every_n_epochs = every_n_epochs
        self._sounds: dict[str, Waveform] = {}

    def _due(self, trainer: Trainer, module: LASModule) -> bool:
        epochs = trainer.current_epoch + 1
        regular = epochs % self.every_n_epochs == 0
        return not trainer.sanity_checking and (regular or module.ending)

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Keep the sound of what will be drawn."""
        module = cast(LASModule, pl_module)
        if not self._due(trainer, module):
            return
        rate = module.model.sample_rate
        for id, wave, length in zip(batch.ids, batch.waves, batch.wave_lengths, strict=True):
            if len(self._sounds) >= self.utterances:
                return
            samples = wave[: int(length)].float().cpu()
            self._sounds[id] = Waveform(samples, rate, id)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        boards = [x for x in trainer.loggers if isinstance(x, TensorBoardLogger)]
        for decoded in cast(LASModule, pl_module).decoded:
            wave = self._sounds.pop(decoded.id, None)
            if wave is None or not boards or not trainer.is_global_zero:
                continue
            figure = figures.draw_small(decoded.record, spectrogram_of(wave))
            for board in boards:
                board.experiment.add_figure(
                    f"attention/{decoded.id}", figure, global_step=trainer.global_step, close=False
                )
        self._sounds.clear()
