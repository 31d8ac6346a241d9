"""A model from its specification and its tensors, trusting neither.

A specification can claim any size. It is built first without memory (on torch's meta device), and
only where every tensor it asks for is in the file, name and shape, is it built for real.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from asr.errors import InputError
from asr.inference.archive import WEIGHTS, one_line
from asr.nn.las import LAS

Shapes: TypeAlias = Mapping[str, tuple[int, ...]]

_LARGEST_NUMBER = 1_000_000  # no width, rate or count of a recogniser is near it
_LARGEST_BUFFERS = 2**26  # elements of all tables that are computed rather than stored


def from_file(spec: Mapping[str, Any], file: Path, where: str) -> LAS:
    """The model of ``spec`` with the tensors of a safetensors file; InputError otherwise."""
    try:
        with safe_open(file, "pt") as header:
            shapes = {key: tuple(header.get_slice(key).get_shape()) for key in header.keys()}  # noqa: SIM118
        return restore(spec, shapes, lambda: load_file(file), where)
    except (SafetensorError, OSError) as error:
        raise InputError(f"{where}: {WEIGHTS}: damaged ({one_line(error)})") from None


def restore(
    spec: Mapping[str, Any], shapes: Shapes, read: Callable[[], Mapping[str, Tensor]], where: str
) -> LAS:
    """The model of ``spec`` in eval mode, with what ``read`` returns once ``shapes`` are right."""
    _bounded(spec, where, "model")
    _compare(_expected(spec, limit=len(shapes), where=where), shapes, where)
    with torch.random.fork_rng(devices=[]):  # the weights drawn here are thrown away
        model = _build(spec, where)
    tensors = read()
    for name, own in model.state_dict().items():
        if tensors[name].is_floating_point() != own.is_floating_point():
            raise InputError(
                f"{where}: {WEIGHTS}: {name} is {tensors[name].dtype}, not {own.dtype}"
            )
    _finite(tensors, where)
    model.load_state_dict(dict(tensors))
    return model.eval()


def stored(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model as a file holds them; InputError when training has diverged."""
    tensors = {
        name: tensor.detach().cpu().contiguous().clone()
        for name, tensor in model.state_dict().items()
    }
    _finite(tensors, "model")
    return tensors


def _finite(tensors: Mapping[str, Tensor], where: str) -> None:
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise InputError(f"{where}: {name} holds numbers that are not finite")


def _build(spec: Mapping[str, Any], where: str) -> LAS:
    try:
        return LAS.from_spec(dict(spec))
    except Exception as error:  # whatever a stranger's numbers and types lead to is their fault
        raise InputError(f"{where}: config.json: model: {one_line(error)}") from None


def _expected(spec: Mapping[str, Any], *, limit: int, where: str) -> Shapes:
    """Name and shape of every tensor the model of ``spec`` keeps, found without allocating any."""
    with torch.device("meta"), _Shapes(), _parameters_at_most(limit):
        model = _build(spec, where)
    if sum(buffer.numel() for buffer in model.buffers()) > _LARGEST_BUFFERS:
        raise InputError(f"{where}: config.json: model: asks for tables of absurd size")
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def _compare(expected: Shapes, found: Shapes, where: str) -> None:
    for problem, names in (
        ("lacks", expected.keys() - found.keys()),
        ("has unknown", found.keys() - expected.keys()),
    ):
        if names:
            first = [one_line(name) for name in sorted(names)[:3]]
            shown = ", ".join(first + ["..."] * (len(names) > 3))
            raise InputError(f"{where}: {WEIGHTS} {problem} {len(names)} tensors ({shown})")
    for name in sorted(expected):
        if expected[name] != found[name]:
            raise InputError(
                f"{where}: {WEIGHTS}: {name} is {list(found[name])}, "
                f"config.json says {list(expected[name])}"
            )


def _bounded(value: Any, where: str, key: str) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            _bounded(inner, where, f"{key}.{name}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _bounded(inner, where, f"{key}.{index}")
    elif isinstance(value, int | float) and not abs(value) <= _LARGEST_NUMBER:
        raise InputError(
            f"{where}: config.json: {key} is beyond {_LARGEST_NUMBER:,}, the most that makes sense"
        )


class _Shapes(TorchFunctionMode):
    """Lets constructors that look at values run on the meta device, which has none.

    Tables such as mel filters select and compare; where the shape would follow from the values,
    the whole tensor stands in for the selection.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.__bool__:
            return False
        if func is Tensor.__setitem__:
            return None
        if func is Tensor.__getitem__ and getattr(args[1], "dtype", None) == torch.bool:
            return args[0]
        return func(*args, **(kwargs or {}))


@contextmanager
def _parameters_at_most(limit: int) -> Iterator[None]:
    """Stops a specification of a million layers once it is far beyond what the file has."""
    count, builder = 0, threading.get_ident()
    allowed = 2 * limit + 100  # a few too many are better reported by name

    def counted(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal count
        if parameter is not None and threading.get_ident() == builder:
            count += 1
            if count > allowed:
                raise InputError(f"asks for more tensors than {WEIGHTS} has ({limit})")

    hook = register_module_parameter_registration_hook(counted)
    try:
        yield
    finally:
        hook.remove()
