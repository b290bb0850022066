"""Where parameters were made: the user's line that registered each, or that last called a function of `torch.nn.init` on it."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from whynan.core.places import site_of, user_frame
from whynan.core.records import Site
from whynan.torch.guard import UNGUARDED, Guard


class Origins:
    def __init__(self, guard: Guard = UNGUARDED) -> None:
        self._guard = guard
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], Site]] = {}
        self._undo: list[Callable[[], None]] = []

    def install(self) -> None:
        register = nn.Module.register_parameter

        @functools.wraps(register)
        def register_parameter(module: nn.Module, name: str, param: Any) -> None:
            register(module, name, param)
            self._guard("noting a parameter", self._note, param)

        self._replace(nn.Module, "register_parameter", register_parameter)
        for name in dir(nn.init):
            if name.endswith("_") and not name.startswith("_"):
                self._replace(nn.init, name, self._noting(getattr(nn.init, name)))

    def uninstall(self) -> None:
        while self._undo:
            self._undo.pop()()

    def named(self, names: dict[int, str]) -> dict[str, Site]:
        """By the parameter's name; `names` are the names by the tensor's id."""
        return {names[key]: site for key, (reference, site) in self._made.items() if key in names and reference() is not None}

    def _noting(self, function: Any) -> Any:
        @functools.wraps(function)
        def initialise(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self._guard("noting an initialisation", self._note, args[0] if args else kwargs.get("tensor"))
            return result

        return initialise

    def _note(self, tensor: Any) -> None:
        frame = user_frame(sys._getframe(3))
        if isinstance(tensor, torch.Tensor) and frame is not None:
            self._made[id(tensor)] = weakref.ref(tensor), site_of(frame)

    def _replace(self, owner: Any, name: str, function: Any) -> None:
        original = owner.__dict__[name]
        setattr(owner, name, function)
        self._undo.append(lambda: setattr(owner, name, original))
