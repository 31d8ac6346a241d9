"""When a run saves itself: its best state, and its newest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint

from asr.training.folder import RunFolder

#: a run that is killed loses no more than this
OFTEN = timedelta(minutes=10)


class Newest(ModelCheckpoint):
    """The newest state in the middle of long epochs too, but never in the middle of a step.

    The gradients of a step that is made of several batches are in no checkpoint, so a run resumed
    there would go another way than one left alone.
    """

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if not trainer.fit_loop._should_accumulate():
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)


def checkpoints(folder: RunFolder) -> list[ModelCheckpoint]:
    """``best.ckpt`` at validations, by WER; ``last.ckpt`` after every epoch, and OFTEN."""
    best, last = folder.best.stem, folder.last.stem
    place: dict[str, Any] = {"dirpath": folder.checkpoints, "enable_version_counter": False}
    return [
        ModelCheckpoint(filename=best, monitor="val/wer", save_on_train_epoch_end=False, **place),
        Newest(filename=last, train_time_interval=OFTEN, **place),
        ModelCheckpoint(filename=last, save_on_train_epoch_end=True, **place),
    ]
