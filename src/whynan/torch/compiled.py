"""`torch.compile` gets the user's function as plain Python would have compiled it; rewritten code would break the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch

from whynan.torch.guard import UNGUARDED, Guard

Original = Callable[[CodeType], CodeType | None]


def patched(original_code: Original, guard: Guard = UNGUARDED) -> tuple[Any, Any]:
    """(the patched `torch.compile`, the one it stands for)."""
    compile_ = torch.compile

    @functools.wraps(compile_)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        plain = guard("compiling the user's own code", unwrapped, model, original_code)
        return compile_(model if plain is None else plain, *args, **kwargs)

    return compile, compile_


def unwrapped(function: Any, original_code: Original) -> Any:
    """A function with the original code, globals, defaults and closure; anything else as it is."""
    if isinstance(function, MethodType):
        return MethodType(unwrapped(function.__func__, original_code), function.__self__)
    if not isinstance(function, FunctionType):
        return function
    code = original_code(function.__code__)
    if code is None or code.co_freevars != function.__code__.co_freevars:
        return function
    plain = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(plain, function, assigned=("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"))
