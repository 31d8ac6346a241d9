"""Short names for components, so that YAML, bundles and ``--help`` speak the field's terms.

A family (attention mechanisms, encoders, ...) is a base class; each concrete class names itself
and is found by that name. Only classes that were registered this way can be built from a bundle,
so a class path in somebody else's file never imports anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from torch import nn

from asr.errors import InputError


class Component(nn.Module):
    """A module with a short ``name``, known to its family, that remembers how it was made.

    Dimensions are positional (the model supplies them); everything else is keyword-only, and is
    what :meth:`spec` gives back, JSON-ready.
    """

    name: ClassVar[str] = ""
    registry: ClassVar[dict[str, type[Component]]]
    _arguments: dict[str, Any]

    def __init_subclass__(cls, family: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if family:
            cls.registry = {}
        elif cls.__dict__.get("name"):
            known = cls.registry.setdefault(cls.name, cls)
            if known is not cls and known.__qualname__ != cls.__qualname__:
                raise TypeError(f"the name {cls.name!r} is taken by {known.__qualname__}")
            cls.registry[cls.name] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        # nn.Module's own __setattr__ needs __init__ to have run; this is a plain note.
        object.__setattr__(self, "_arguments", dict(kwargs))
        return self

    def spec(self) -> dict[str, Any]:
        """The short name and every keyword argument, defaults included: all that it takes."""
        parameters = inspect.signature(type(self).__init__).parameters.values()
        defaults = {
            p.name: p.default
            for p in parameters
            if p.kind is p.KEYWORD_ONLY and p.default is not p.empty
        }
        return {"name": self.name, **defaults, **self._arguments}

    @classmethod
    def resolve(cls, name: str) -> type[Self]:
        """The class of that short name; InputError lists the valid ones."""
        try:
            return cls.registry[name]  # type: ignore[return-value]
        except (KeyError, TypeError):
            valid = ", ".join(sorted(cls.registry))
            raise InputError(f"unknown {cls.__name__.lower()} {name!r}; valid: {valid}") from None

    @classmethod
    def build(cls, spec: Mapping[str, Any], *dimensions: int) -> Self:
        """Make what a ``spec`` describes; InputError names an argument that it does not take."""
        arguments = {key: value for key, value in spec.items() if key != "name"}
        made = cls.resolve(spec.get("name", ""))
        try:
            return made(*dimensions, **arguments)
        except TypeError as error:
            raise InputError(f"{made.name}: {error}") from None
