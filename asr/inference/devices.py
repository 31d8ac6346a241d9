"""Where to compute."""

from __future__ import annotations

import torch

from asr.errors import InputError


class DeviceError(InputError):
    """A device that this machine, or this torch, does not have."""


def device(name: str) -> torch.device:
    """The device of a name, ``auto`` being CUDA where there is one, else the CPU.

    Raises DeviceError that says which there are.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError):  # an unknown name, no such number, no driver
        found = torch.device("meta")  # where nothing can be computed either
    if found.type == "meta":
        raise DeviceError(
            f"device {name!r}: there is none here; what there is: {', '.join(available())}"
        )
    return found


def available() -> list[str]:
    """The names of the devices that there are, ``auto`` first."""
    names = ["auto", "cpu"]
    if torch.cuda.is_available():
        names += ["cuda", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append("mps")
    return names
