"""`torch.compile` gets the user's code as plain Python would have compiled it; rewritten code would break the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import nn

from whynan.torch.guard import UNGUARDED, Guard

Original = Callable[[CodeType], CodeType | None]


def patched(original_code: Original, begin: Callable[[], None], guard: Guard = UNGUARDED) -> tuple[Any, Any]:
    """(the patched `torch.compile`, the one it stands for). `begin` is called when the program compiles for the first time."""
    compile_ = torch.compile
    begun: list[bool] = []

    @functools.wraps(compile_)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not begun:
            begun.append(True)
            guard("leaving compiled code alone", begin)
        guard("compiling the user's own code", give_back, model, original_code)
        return compile_(model, *args, **kwargs)

    return compile, compile_


def give_back(thing: Any, original_code: Original) -> None:
    """Give `thing`, and every function of the user that it may call, the code that it had before it was rewritten."""
    pending, seen = [thing], set[int]()
    while pending:
        found = pending.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, FunctionType):
            code = original_code(found.__code__)
            if code is not None and code.co_freevars == found.__code__.co_freevars:
                found.__code__ = code
            if code is not None:
                pending += _named(found, found.__code__)
        else:
            pending += _functions_of(found)


def _named(function: FunctionType, code: CodeType) -> Iterator[Any]:
    """What the code of a function names: globals, and what it closes over."""
    names = {name for part in _nested(code) for name in part.co_names}
    yield from (function.__globals__[name] for name in names if name in function.__globals__)
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _functions_of(thing: Any) -> Iterator[Any]:
    """The functions behind a method, a module or any other object of a class."""
    if isinstance(thing, MethodType):
        yield thing.__func__
        yield thing.__self__
    elif isinstance(thing, nn.Module):
        yield from (type(module) for module in thing.modules())
    elif isinstance(thing, type):
        for base in thing.__mro__:
            yield from (getattr(value, "__func__", value) for value in vars(base).values() if callable(value) or hasattr(value, "__func__"))
    elif type(thing).__module__ not in ("builtins", "torch"):
        yield type(thing)
