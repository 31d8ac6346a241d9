"""The training step and the validation of a listen-attend-spell model."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import Timer
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from asr.glimpses import Frontend, LogMel, SpecAugment
from asr.inference import bundle
from asr.nn.attention import Attention, LocationAware
from asr.nn.decoders import Recurrent, Speller
from asr.nn.encoders import Conformer, Encoder
from asr.nn.las import LAS
from asr.text import Tokenizer
from asr.training import losses, schedules
from asr.training.folder import RUN_KEY
from asr.training.randomness import reseed
from asr.training.validation import Decoded, alignment_warning, decode, summarise
from asr.types import Batch, Encoded, Seconds

AttentionFactory = Callable[[int, int], Attention]


class TrainingStopped(RuntimeError):
    """The run cannot go on; the message is one line that says why."""


class LASModule(LightningModule):
    """Trains a model on ``(1 - c) * cross entropy + c * CTC + guided + the attention's own loss``.

    Args:
        tokenizer, sample_rate: from the data, so that neither is stated twice.
        seed: of every draw; each step starts from generators seeded by (seed, batch), so
            a run that was killed and resumed draws what one left alone draws.
        frontend, encoder, attention, speller: the parts of the model, by short name.
        augment: what training does to the glimpses; nothing by default.
        ctc_weight: share of the CTC loss, in [0, 1); 0 leaves the CTC output out of the model
            (Kim et al. 2017, eq. 12).
        label_smoothing: in [0, 1).
        guided_attention: weight of the guide at the start; it falls linearly to 0 over the first
            ``guided_share`` of the run. The guide is the diagonal, ``guided_width`` (a share of
            the utterance) wide; where the data knows when words are heard it is those moments,
            ``guided_seconds`` wide. See :func:`losses.guided_attention`.
        scheduled_sampling: probability that the speller is fed its own choice (Bengio et al.
            2015), reached linearly over the first ``sampling_share`` of the run.
        learning_rate, weight_decay, beta2: of AdamW; decay spares biases and norms.
        encoder_learning_rate: the listener's own, where it is not to learn as fast as the rest: a
            listener that has heard many voices (``--init_from``) forgets them while it is tuned on
            few (Howard & Ruder 2018, sect. 3.2). 0 leaves it as it is.
        warmup_steps, final_learning_rate: linear warm-up, then a cosine down to the given share
            of ``learning_rate``, over ``trainer.max_steps`` (or epochs), or ``trainer.max_time``
            if that is used up sooner.
        non_finite_limit: steps in a row whose loss or gradient is not finite before the run stops;
            each of them is skipped and counted.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        sample_rate: int,
        *,
        seed: int = 1,
        frontend: Callable[[int], Frontend] = LogMel,
        encoder: Callable[[int], Encoder] = Conformer,
        attention: Callable[[int, int], Attention] = LocationAware,
        speller: Callable[[int, AttentionFactory, int], Speller] = Recurrent,
        augment: SpecAugment | None = None,
        ctc_weight: float = 0.3,
        label_smoothing: float = 0.1,
        guided_attention: float = 1.0,
        guided_share: float = 0.3,
        guided_width: float = 0.2,
        guided_seconds: float = 0.06,
        scheduled_sampling: float = 0.0,
        sampling_share: float = 1.0,
        learning_rate: float = 2e-3,
        encoder_learning_rate: float | None = None,
        weight_decay: float = 1e-2,
        beta2: float = 0.98,
        warmup_steps: int = 200,
        final_learning_rate: float = 0.01,
        non_finite_limit: int = 20,
    ) -> None:
        super().__init__()
        _within("ctc_weight", ctc_weight, below=1)
        _within("label_smoothing", label_smoothing, below=1)
        _within("guided_attention", guided_attention)
        _within("guided_share", guided_share, most=1)
        _within("scheduled_sampling", scheduled_sampling, most=1)
        _within("sampling_share", sampling_share, most=1)
        _within("final_learning_rate", final_learning_rate, most=1)
        for key, value in (
            ("learning_rate", learning_rate),
            ("guided_width", guided_width),
            ("guided_seconds", guided_seconds),
        ):
            if not value > 0:
                raise ValueError(f"{key}={value}: must be above 0")
        if encoder_learning_rate is not None:
            _within("encoder_learning_rate", encoder_learning_rate)
        if non_finite_limit < 1:
            raise ValueError(f"non_finite_limit={non_finite_limit}: at least 1 is needed")
        self.tokenizer = tokenizer
        self.seed = seed
        self.model = LAS(
            sample_rate,
            tokenizer.vocabulary_size,
            frontend=frontend,
            encoder=encoder,
            attention=attention,
            speller=speller,
            ctc=ctc_weight > 0,
        )
        self.augment = augment
        self.ctc_weight = ctc_weight
        self.label_smoothing = label_smoothing
        self.guided_attention = guided_attention
        self.guided_share = guided_share
        self.guided_width = guided_width
        self.guided_seconds = guided_seconds
        self.scheduled_sampling = scheduled_sampling
        self.sampling_share = sampling_share
        self.learning_rate = learning_rate
        self.encoder_learning_rate = encoder_learning_rate
        self.weight_decay = weight_decay
        self.beta2 = beta2
        self.warmup_steps = warmup_steps
        self.final_learning_rate = final_learning_rate
        self.non_finite_limit = non_finite_limit

        #: for the bundle that a checkpoint makes, and to know the run again; set by the command
        self.card: dict[str, Any] = {}
        self.settings = bundle.Settings()
        self.config: dict[str, Any] = {}

        self.decoded: list[Decoded] = []
        self.metrics: dict[str, float] = {}
        self.non_finite = 0
        #: whether the run is at its last step
        self.ending = False
        self._non_finite_in_a_row = 0
        self._infeasible: Tensor | None = None
        self._loss: Tensor | None = None
        self._total_steps = 0
        #: of each group of parameters, once it is warm
        self._peak_rates: list[float] = []
        self._timer: Timer | None = None
        self._started: float | None = None
        self._seconds_before = 0.0

    # -- one step

    def losses(
        self, batch: Batch, progress: float, encoded: Encoded | None = None
    ) -> dict[str, Tensor]:
        """Each part of the loss by name, and their weighted sum as ``loss``; scalars.

        ``encoded`` is the batch as the listener hears it, where that is known already.
        """
        if encoded is None:
            augment = self.augment if self.training else None
            encoded = self.model.encode(batch.waves, batch.wave_lengths, augment=augment)
        inputs, outputs, mask = losses.teacher(batch.targets, batch.target_lengths)
        sampling = 0.0
        if self.training:
            sampling = self.scheduled_sampling * schedules.fade_in(progress, self.sampling_share)
        spelled = self.model.speller(encoded, inputs, batch.target_lengths + 1, sampling=sampling)

        parts = {
            "cross_entropy": losses.cross_entropy(
                spelled.logits, outputs, mask, self.label_smoothing
            )
        }
        loss = (1 - self.ctc_weight) * parts["cross_entropy"]
        if self.ctc_weight > 0:
            ctc = losses.ctc(
                self.model.ctc_log_probs(encoded),
                encoded.lengths,
                batch.targets,
                batch.target_lengths,
            )
            parts["ctc"], parts["ctc_infeasible"] = ctc.loss, ctc.infeasible
            loss = loss + self.ctc_weight * ctc.loss
        guide = self.guided_attention * schedules.fade_out(progress, self.guided_share)
        if guide > 0:
            parts["guided_attention"] = losses.guided_attention(
                self.model.speller.attention.guided(spelled.weights, spelled.terms),
                encoded.lengths,
                mask,
                self.guided_width,
                token_times=batch.token_times,
                seconds=self.guided_seconds,
                frame_shift=self.model.frame_shift,
            )
            loss = loss + guide * parts["guided_attention"]
        own = self.model.speller.attention.loss(
            spelled.terms, mask, losses.token_log_probs(spelled.logits, outputs)
        )
        if own is not None:
            parts["attention"] = own
            loss = loss + own
        return {"loss": loss, **parts}

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        parts = self.losses(batch, self.progress)
        self._loss = parts["loss"].detach()
        if "ctc_infeasible" in parts:
            self._infeasible = parts.pop("ctc_infeasible") + (
                0 if self._infeasible is None else self._infeasible
            )
        # Reading a value makes a GPU wait, and Lightning's own bookkeeping is not free either.
        if (self.trainer.global_step + 1) % self._run.log_every_n_steps == 0:
            self.log_dict({f"train/{name}": value.detach() for name, value in parts.items()})
            self.log("train/learning_rate", self.trainer.optimizers[0].param_groups[0]["lr"])
        self._run.datamodule.position += 1
        return parts["loss"]

    # -- the run

    @property
    def _run(self) -> Any:
        """The trainer, of which Lightning declares too little to a type checker."""
        return self.trainer

    @property
    def progress(self) -> float:
        """The share of the run that is over, in [0, 1]; see :func:`schedules.progress`."""
        elapsed, limit = 0.0, None
        if self._timer is not None:
            elapsed = self._timer.time_elapsed()
            limit = elapsed + (self._timer.time_remaining() or 0.0)
        return schedules.progress(self.trainer.global_step, self._total_steps, elapsed, limit)

    def configure_optimizers(self) -> Optimizer:
        listener = {id(p) for p in self.model.encoder.parameters()}
        main = self.learning_rate
        groups: dict[tuple[float, float], list[nn.Parameter]] = {
            (main, self.weight_decay): [],
            (main, 0.0): [],
        }
        for parameter in self.parameters():
            if parameter.requires_grad:
                own = self.encoder_learning_rate if id(parameter) in listener else None
                rate = main if own is None else own
                decay = self.weight_decay if parameter.ndim > 1 else 0.0
                groups.setdefault((rate, decay), []).append(parameter)
        self._peak_rates = [rate for rate, _ in groups]
        return AdamW(
            [{"params": alike, "weight_decay": decay} for (_, decay), alike in groups.items()],
            lr=main,
            betas=(0.9, self.beta2),
        )

    @property
    def seconds(self) -> Seconds:
        """How long the run has trained, the parts that it resumes included."""
        now = 0.0 if self._started is None else time.monotonic() - self._started
        return self._seconds_before + now

    def on_train_start(self) -> None:
        self._started = time.monotonic()
        total = self.trainer.estimated_stepping_batches
        self._total_steps = int(total) if total != float("inf") else 0
        timers = [c for c in self._run.callbacks if isinstance(c, Timer)]
        bounded = [t for t in timers if t.time_remaining() is not None]
        self._timer = bounded[0] if bounded else None

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        reseed(self.seed, self._run.datamodule.position, self.trainer.global_rank)
        factor = schedules.warmup_cosine(
            self.trainer.global_step,
            self.progress,
            warmup=self.warmup_steps,
            floor=self.final_learning_rate,
        )
        groups = self.trainer.optimizers[0].param_groups
        for group, peak in zip(groups, self._peak_rates, strict=True):
            group["lr"] = peak * factor

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        """Have the last step validated, wherever it falls; Lightning would wait for its interval.

        A run shorter than that interval would end with nothing chosen. Callbacks have had their
        say by now: that of ``max_time`` too.
        """
        run = self._run
        last = run.global_step == run.max_steps or (
            run.is_last_batch and run.current_epoch + 1 == run.max_epochs
        )
        if last or run.should_stop:
            self.ending = True
            run.check_val_every_n_epoch = None
        if last:  # stopping for another reason, Lightning validates by itself
            run.val_check_batch = 1
            run._val_check_time_interval = None

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip by the norm of all gradients together; drop them all when it is not a number.

        Without gradients the optimiser leaves parameters and moments as they are: the step is
        skipped. The loss is looked at too, and both in one go, since each look makes a GPU wait.
        """
        norm = torch.nn.utils.clip_grad_norm_(self.parameters(), gradient_clip_val or float("inf"))
        finite = torch.isfinite(norm)
        if self._loss is not None:
            finite = finite & torch.isfinite(self._loss).to(finite.device)
        if bool(finite):
            self._non_finite_in_a_row = 0
            return
        optimizer.zero_grad(set_to_none=True)
        self.non_finite += 1
        self._non_finite_in_a_row += 1
        if self._non_finite_in_a_row >= self.non_finite_limit:
            raise TrainingStopped(
                f"the loss or its gradient was not finite {self._non_finite_in_a_row} steps in a "
                f"row (step {self.trainer.global_step}); lower --model.learning_rate, or train "
                "with --trainer.precision=32-true"
            )

    def on_train_epoch_end(self) -> None:
        self.log("train/skipped_steps", float(self.non_finite))
        if self._infeasible is not None:
            self.log("train/ctc_infeasible", self._infeasible.float())
            self._infeasible = None

    # -- validation: free-running, as in use

    def on_validation_epoch_start(self) -> None:
        self.decoded = []

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        encoded = self.model.encode(batch.waves, batch.wave_lengths)
        self.decoded += decode(self.model, self.tokenizer, batch, encoded)
        # Beside the error rates, which are free-running: the loss that training minimises.
        parts = self.losses(batch, 1.0, encoded)
        self.log("val/loss", parts["loss"], batch_size=len(batch.ids))

    def on_validation_epoch_end(self) -> None:
        self.metrics = summarise(self.decoded)
        self.log_dict(
            {f"val/{name}": value for name, value in self.metrics.items()},
            batch_size=max(1, len(self.decoded)),
        )
        warning = alignment_warning(self.metrics, self.progress)
        if warning and self.trainer.is_global_zero:
            print(f"asr: warning: {warning}", file=sys.stderr, flush=True)

    # -- what a checkpoint holds besides

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[bundle.CHECKPOINT_KEY] = bundle.describe_for_checkpoint(
            self.model, self.tokenizer, card=self.card, settings=self.settings
        )
        checkpoint[RUN_KEY] = {
            "config": self.config,
            "non_finite": self.non_finite,
            "seconds": self.seconds,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.non_finite = checkpoint[RUN_KEY]["non_finite"]
        self._seconds_before = checkpoint[RUN_KEY]["seconds"]


def _within(
    name: str, value: float, *, below: float = float("inf"), most: float = float("inf")
) -> None:
    if not (0 <= value < below and value <= most):
        bound = f"< {below}" if below < float("inf") else f"<= {most}"
        raise ValueError(f"{name}={value}: needs 0 <= {name} {bound}")
