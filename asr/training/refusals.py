"""What of Lightning's Trainer a run does not take, and every mistake as one line."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from jsonargparse import ArgumentError
from lightning.fabric.utilities.exceptions import MisconfigurationException

from asr.errors import InputError
from asr.training import NEEDED
from asr.training.initial import told
from asr.training.keys import accepted

#: keys of the trainer whose other values would do nothing here, or break what a run leaves: the
#: values that are fine, and what to do instead
_ONLY: dict[str, tuple[tuple[Any, ...], str]] = {
    "barebones": ((False,), "a run logs, validates and keeps checkpoints"),
    "default_root_dir": ((None,), "--runs and --name say where a run is"),
    "enable_autolog_hparams": ((True,), "config.yaml has all of them"),
    "enable_checkpointing": ((True, None), "the bundle is made of the best checkpoint"),
    "enable_model_summary": (
        (False, None),
        "the first line of a run says the size, asr bundle --show that of each part",
    ),
    "fast_dev_run": ((False, 0), "--trainer.max_steps=2 tries everything, a bundle at the end too"),
    "gradient_clip_algorithm": (("norm", None), "the norm of all gradients together is clipped"),
    "inference_mode": ((True,), "it does nothing for validation within a run"),
    "limit_predict_batches": ((None, 1.0), "a run predicts nothing"),
    "limit_test_batches": ((None, 1.0), "a report is about whole sets: name shorter data.test"),
    "limit_train_batches": (
        (None, 1.0),
        "--trainer.max_steps says how long a run is, --trainer.val_check_interval how often it "
        "validates",
    ),
    "model_registry": ((None,), "a run registers nothing"),
    "num_nodes": ((1,), "a run has one device"),
    "overfit_batches": ((0,), "name a manifest of a few utterances as data.train"),
    "strategy": (("auto",), "a run has one device"),
    "sync_batchnorm": ((False,), "a run has one device"),
    "use_distributed_sampler": ((False,), "a run has one device"),
}

#: the least that makes sense; -1 is no bound where it is allowed
_LEAST: dict[str, tuple[float, tuple[int, ...]]] = {
    "accumulate_grad_batches": (1, ()),
    "check_val_every_n_epoch": (1, ()),
    "gradient_clip_val": (0, ()),
    "log_every_n_steps": (1, ()),
    "max_epochs": (1, (-1,)),
    "max_steps": (1, (-1,)),
    "min_epochs": (0, ()),
    "min_steps": (0, ()),
    "num_sanity_val_steps": (0, (-1,)),
}

#: above 0: without validation a run would have nothing to choose by
_ABOVE_0 = ("limit_val_batches", "val_check_interval")

_PRECISIONS = {
    "32-true": ("32",),
    "bf16-mixed": ("bf16",),
    "16-mixed": ("16",),
    "64-true": ("64",),
}


def check_name(name: str, runs: str) -> None:
    """InputError for a run that would not lie in the folder of runs."""
    if name in ("", ".", "..") or re.search(r"[/\\\0]", name):
        raise InputError(
            f"--name={name}: the name of a folder in {runs} is expected, without / in it; "
            "--runs=DIR says where"
        )


def check_trainer(given: Mapping[str, Any]) -> None:
    """InputError for the first option of the trainer that a run cannot have, with what it can."""
    for key, (fine, instead) in _ONLY.items():
        if given.get(key) not in fine:
            valid = ", ".join(_shown(value) for value in fine)
            raise InputError(f"trainer.{key}={_shown(given[key])}: valid: {valid}; {instead}")
    for key, (least, besides) in _LEAST.items():
        value = given.get(key)
        if value is not None and value not in besides and not value >= least:
            also = "".join(f", or {other} for no bound" for other in besides)
            raise InputError(f"trainer.{key}={value}: at least {least}{also} is needed")
    for key in _ABOVE_0:
        value = given.get(key)
        if isinstance(value, int | float) and not value > 0:
            raise InputError(
                f"trainer.{key}={value}: must be above 0; what a run keeps is chosen by validation"
            )
    _check_precision(given.get("precision"), given.get("accelerator"))


def _check_precision(given: Any, accelerator: Any) -> None:
    device = torch.accelerator.current_accelerator(check_available=True)
    on_cpu = accelerator == "cpu" or (accelerator == "auto" and device is None)
    valid = [name for name in _PRECISIONS if name != "16-mixed" or not on_cpu]
    if given is None or any(str(given) in (name, *_PRECISIONS[name]) for name in valid):
        return
    why = "; a CPU has no half precision to train in" if str(given).startswith("16") else ""
    raise InputError(f"trainer.precision={given}: valid: {', '.join(valid)}{why if on_cpu else ''}")


def explained(error: BaseException, arguments: Iterable[str]) -> str | None:
    """What parsing and building raised as one line; None for what is a mistake of the program's.

    An error of ours as it is; jsonargparse's as the key, its value and what is valid; Lightning's.
    """
    if isinstance(error, ArgumentError | ValueError):
        own = _ours(error)
        return str(own) if own is not None else _parsed(str(error), arguments)
    if isinstance(error, TypeError) and _raised_in(error).startswith("lightning."):
        return str(error)
    return lightnings(error)


def lightnings(error: BaseException) -> str | None:
    """What Lightning itself has against a configuration; None for any other error.

    Some options it looks at only when the run begins, or later.
    """
    kinds = (MisconfigurationException, ValueError, RuntimeError, ImportError)
    from_there = isinstance(error, kinds) and _raised_in(error).startswith("lightning.")
    return str(error) if from_there else None


def _parsed(message: str, arguments: Iterable[str]) -> str:
    """What jsonargparse says, short of types that only a programmer can read.

    It names a key level by level, the inner ones within the messages of the outer.
    """
    message = " ".join(message.split())
    if re.search(r'required: data$|"data" is required', message):
        return NEEDED
    *levels, innermost = re.split(r'Parser key "([^"]+)": ', message)
    key = ".".join(levels[1::2])
    component = re.search(
        r"given class_path '(?:\w+\.)*(\w+)': (.+?)(?: - | Given value|$)", innermost
    )
    if component:
        return (
            f"{key}: {component[1]}: {component[2]}" if key else f"{component[1]}: {component[2]}"
        )
    valid = ", ".join(_PRECISIONS) if key == "trainer.precision" else accepted(key)
    if not valid:
        said = re.split(r" Given value(?: type)?:", message)[0].rpartition(" Errors: ")[2]
        parts = said.removeprefix("- ").split(" - ")
        return " - ".join(part for part in parts if not part.startswith("Expected ")) or said
    value = told(arguments, key)
    if value is None and (
        found := re.search(r"Got value: (.+?)(?:\. | - | Given value|$)", innermost)
    ):
        value = found[1]
    return f"{key}{'' if value is None else f'={_shown(value)}'}: valid: {valid}"


def _ours(error: BaseException | None) -> BaseException | None:
    """The error that one of our constructors raised, below what jsonargparse made of it."""
    while error is not None:
        if isinstance(error, InputError) or _raised_in(error).startswith("asr."):
            return error
        error = error.__cause__ or error.__context__
    return None


def _raised_in(error: BaseException) -> str:
    """The module whose code raised it."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")) if frames else ""


def _shown(value: Any) -> str:
    """As YAML has it."""
    return value if isinstance(value, str) else json.dumps(value, default=str)
