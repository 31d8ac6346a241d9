"""``asr train``: LightningCLI with short names, honest errors and a run folder."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import Callback, Timer
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.trainer.states import TrainerStatus

from asr.errors import InputError
from asr.inference.bundle import Bundle, Settings
from asr.training import NEEDED, initial, names, refusals
from asr.training.average import Average
from asr.training.checkpoints import checkpoints
from asr.training.data import SpeechData
from asr.training.folder import RUN_KEY, RunFolder, checkpoint_of, finish, load_checkpoint
from asr.training.module import LASModule, TrainingStopped
from asr.training.reporting import Figures, JsonLines, Lines, StderrProgressBar

#: what a resumed run must have in common with the first: all that decides its weights
FIXED = ("model", "data", "average", "seed_everything")


class TrainCLI(LightningCLI):
    """Parses and builds; :func:`main` runs."""

    folder: RunFolder
    checkpoint: Path | None = None

    def __init__(self, arguments: Sequence[str], begins_as: Bundle | None = None) -> None:
        self.begins_as = begins_as
        self.arguments = list(arguments)
        super().__init__(
            LASModule,
            SpeechData,
            subclass_mode_data=True,
            save_config_callback=None,
            seed_everything_default=1,
            trainer_defaults={
                "devices": 1,
                "logger": True,
                "log_every_n_steps": 20,
                "num_sanity_val_steps": 0,
                "gradient_clip_val": 5.0,
                "enable_model_summary": False,
                "use_distributed_sampler": False,
            },
            parser_kwargs={
                "exit_on_error": False,
                "prog": "asr train",
                "description": f"Train a speech recogniser. Short names: {names.listed()}",
            },
            args=list(arguments),
            run=False,
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
        )

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.add_argument("--name", type=str, default="run", help="of the run's folder")
        parser.add_argument("--runs", type=str, default="runs", help="folder of all runs")
        parser.add_argument(
            "--resume",
            "--ckpt_path",
            type=str | None,
            default=None,
            help="a run's folder, or a checkpoint, to go on from",
        )
        parser.add_argument(
            "--init_from",
            type=str | None,
            default=None,
            help="a bundle to fine-tune: its model, tokenizer and weights, but for what is told",
        )
        parser.add_argument(
            "--threads", type=int, default=0, help="CPU threads of the model; 0 leaves it to torch"
        )
        parser.add_lightning_class_args(Average, "average")
        parser.add_lightning_class_args(Figures, "figures")
        parser.link_arguments("data.tokenizer", "model.tokenizer", apply_on="instantiate")
        parser.link_arguments("data.sample_rate", "model.sample_rate", apply_on="instantiate")
        parser.link_arguments("seed_everything", "model.seed")
        parser.link_arguments("seed_everything", "data.init_args.seed")

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        self.config = parser.parse_args(args)

    def before_instantiate_classes(self) -> None:
        """Everything that can be refused is refused here, before anything is built."""
        config = self.config
        if self.begins_as is not None:
            self._as_begun(self.begins_as)
        refusals.check_name(config.name, config.runs)
        refusals.check_trainer(config.trainer)
        self.used = names.shortened(
            yaml.safe_load(self.parser.dump(config, skip_none=False, skip_link_targets=True))
        )
        for key in ("config", "resume"):
            self.used.pop(key, None)
        if config.resume:
            self.checkpoint = checkpoint_of(Path(config.resume))
            _check_same(
                load_checkpoint(self.checkpoint)[RUN_KEY]["config"], self.used, self.checkpoint
            )
        self.folder = RunFolder(Path(config.runs) / config.name)
        own = self.checkpoint is not None and (
            self.folder.path.resolve() in self.checkpoint.resolve().parents
        )
        if not own:
            self.folder.refuse_another()
        if config.threads:
            torch.set_num_threads(config.threads)

    def _as_begun(self, found: Bundle) -> None:
        """What the data has to be like for the bundle, unless something else was told."""
        data = self.config.data.init_args
        if initial.told(self.arguments, "data.sample_rate") is None:
            data.sample_rate = found.model.sample_rate
        if "tokenizer" in data and initial.told(self.arguments, "data.tokenizer") is None:
            data.tokenizer = str(self.config.init_from)

    def instantiate_classes(self) -> None:
        super().instantiate_classes()
        if self.begins_as is None:
            return
        model = self.model.model
        left = initial.copy(self.begins_as, model, self.model.tokenizer)
        print(initial.said(self.begins_as, model, left), file=sys.stderr, flush=True)

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        folder = self.folder
        config = self._get(self.config_init, "trainer", default={})
        callbacks: list[Callback] = [
            self._get(self.config_init, "average"),
            Lines(),
            self._get(self.config_init, "figures"),
            *checkpoints(folder),
        ]
        bar = config.get("enable_progress_bar")
        shown = sys.stderr.isatty() if bar is None else bar
        if shown:
            callbacks.append(StderrProgressBar())
        loggers = config.get("logger")
        if loggers is True or loggers is None:
            loggers = TensorBoardLogger(folder.path, name="", version="tensorboard")
        others = loggers if isinstance(loggers, list) else [loggers] if loggers else []
        trainer = self._instantiate_trainer(
            {
                **config,
                "default_root_dir": str(folder.path),
                "enable_progress_bar": shown,
                "logger": [*others, JsonLines(folder.log)],
            },
            callbacks,
        )
        if trainer.world_size > 1:
            raise InputError(f"trainer.devices: {trainer.world_size} devices; valid: 1")
        timers = [c for c in trainer.callbacks if isinstance(c, Timer)]  # type: ignore[attr-defined]
        if self.checkpoint is None and any(t.time_remaining() == 0 for t in timers):
            raise InputError(f"trainer.max_time={config['max_time']}: must be above 0")
        return trainer

    def describe(self) -> None:
        """What the model's card and its checkpoints say, and the lines that open a run."""
        self.folder.make()
        data = self.datamodule.describe()
        if self.config.init_from:
            data["began as"] = self.config.init_from
        self.model.card = {
            "summary": "A listen-attend-spell speech recogniser.",
            "data": [
                f"{key}: {', '.join(map(str, value)) if isinstance(value, list) else value}"
                for key, value in data.items()
            ],
            "seed": self.config.seed_everything,
        }
        self.model.settings = Settings(name=self.config.name)
        self.model.config = self.used
        self.folder.config.write_text(
            yaml.safe_dump(self.used, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        count = sum(p.numel() for p in self.model.model.parameters())
        print(
            f"run {self.folder.path}: {count:,} parameters, "
            f"{self.model.tokenizer.vocabulary_size} tokens, "
            f"on {self.trainer.strategy.root_device}, precision {self.trainer.precision}, "
            f"{torch.get_num_threads()} threads",
            file=sys.stderr,
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the arguments say, evaluate; exit status 0, 1, 2 (usage) or 130 (interrupted)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given:
        return _fail(NEEDED, 2)
    _quiet()
    try:
        given = names.arguments(_with_checkpoint(given))
        cli = _parsed(given)
        cli.describe()
    except Exception as error:
        if said := refusals.explained(error, given):
            return _fail(said, 2)
        raise
    try:
        return _train(cli)
    except (InputError, TrainingStopped) as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if said := refusals.lightnings(error):
            return _fail(said, 2)
        raise


def _train(cli: TrainCLI) -> int:
    trainer = cli.trainer
    try:
        trainer.fit(
            cli.model,
            datamodule=cli.datamodule,
            ckpt_path=str(cli.checkpoint) if cli.checkpoint else None,
            weights_only=True,
        )
    except SystemExit:
        # Lightning turns an interrupt into its own exit status.
        if trainer.state.status == TrainerStatus.INTERRUPTED:
            kept = cli.folder.last.is_file()
            how = f"; go on with --resume={cli.folder.path}" if kept else " before any checkpoint"
            print(f"interrupted{how}", file=sys.stderr)
            return 130
        raise
    report = finish(
        cli.folder,
        cli.datamodule,
        device=trainer.strategy.root_device,
        facts={
            "name": cli.config.name,
            "seed": cli.config.seed_everything,
            "steps": trainer.global_step,
            "skipped_steps": cli.model.non_finite,
            "training_seconds": round(cli.model.seconds, 1),
        },
    )
    for one in report["sets"]:
        print(f"{one['set']}: {_sentence(one)}")
    print(f"bundle: {cli.folder.bundle}", file=sys.stderr)
    return 0


def _sentence(figures: Mapping[str, Any]) -> str:
    rate = "" if figures["wer"] is None else f"{figures['wer']:.2%} "
    return (
        f"WER {rate}({figures['substitutions']} substitutions, {figures['deletions']} deletions, "
        f"{figures['insertions']} insertions, {figures['reference_words']} reference words)"
    )


def _parsed(arguments: list[str]) -> TrainCLI:
    """Everything built, as the resolved arguments or a bundle to begin with say."""
    path = initial.told(arguments, "init_from")
    resumed = initial.told(arguments, "resume") or initial.told(arguments, "ckpt_path")
    if not path or resumed:  # a resumed run has its weights from the checkpoint
        return TrainCLI(arguments)
    found = initial.load(str(path))
    return TrainCLI(initial.with_parts_of(found, arguments), found)


def _with_checkpoint(given: list[str]) -> list[str]:
    """On a resume, the checkpoint's own configuration comes first, so that none need be given."""
    for index, argument in enumerate(given):
        key, equals, value = argument.partition("=")
        if key in ("--resume", "--ckpt_path"):
            value = value if equals else "".join(given[index + 1 : index + 2])
            path = checkpoint_of(Path(value or "."))
            config = load_checkpoint(path)[RUN_KEY]["config"]
            return [names.inline(config), *given]
    return given


def _check_same(before: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """InputError, with the differences, where a resumed run is not the one that was begun."""
    was = names.flat({key: before.get(key) for key in FIXED})
    new = names.flat({key: now.get(key) for key in FIXED})
    differences = [
        f"--{key}: {was.get(key)!r} there, {new.get(key)!r} here"
        for key in sorted(was.keys() | new.keys())
        if was.get(key) != new.get(key)
    ]
    if differences:
        raise InputError(
            f"{path}: a resumed run must be the one that was begun; it differs in "
            + "; ".join(differences)
        )


def _quiet() -> None:
    """Leave out what Lightning says that is of no use to somebody who trains."""
    for name in ("lightning.pytorch", "lightning.fabric", "lightning_utilities"):
        logging.getLogger(name).setLevel(logging.WARNING)
    # ... but for what a profiler found: somebody asked for it.
    logging.getLogger("lightning.pytorch.profilers").setLevel(logging.INFO)
    for text in (
        ".*does not have many workers.*",
        ".*your dataloader is not resumable.*",  # it is: see data.Consecutive
        ".*Checkpoint directory .* exists and is not empty.*",
        ".*LightningCLI's args parameter is intended.*",
        ".*The number of training batches .* is smaller than the logging interval.*",
    ):
        warnings.filterwarnings("ignore", text)
    for category in (DeprecationWarning, FutureWarning):
        warnings.filterwarnings("ignore", category=category)


def _fail(error: object, status: int) -> int:
    print(f"asr: error: {' '.join(str(error).split())}", file=sys.stderr)
    return status
