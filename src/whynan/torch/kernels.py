"""What a kernel's schema says: which arguments it reads, which it writes, and the numbers it is called with."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from whynan.torch.optables import HIDDEN_WRITES, canonical, kernel_name, role

OVERWRITING = frozenset("copy fill zero normal uniform bernoulli exponential log_normal cauchy geometric random set resize".split())
NUMBER = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Kernel:
    """`arguments` are (name, written in place) in the schema's order; `reads_target` is false where the old content does not matter."""

    name: str
    op: str
    arguments: tuple[tuple[str, bool], ...]
    reads_target: bool
    mutable: bool


@dataclass(frozen=True, slots=True)
class Argument:
    role: str
    name: str
    tensor: torch.Tensor
    written: bool


@functools.cache
def kernel_of(function: Any) -> Kernel:
    text = str(function)
    schema = getattr(function, "_schema", None)
    hidden = HIDDEN_WRITES.get(kernel_name(text), ())
    arguments = tuple(
        (a.name, bool(a.alias_info is not None and a.alias_info.is_write) or a.name in hidden) for a in (schema.arguments if schema else ())
    )
    reads = kernel_name(text) not in OVERWRITING and not any(name == "out" for name, _ in arguments)
    return Kernel(text, canonical(text), arguments, reads, any(written for _, written in arguments))


def named(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, bool, Any]]:
    names = [*kernel.arguments, *(("argument", False) for _ in args[len(kernel.arguments) :])]
    written = dict(kernel.arguments)
    for (name, writes), value in zip(names, args, strict=False):
        yield name, writes, value
    for name, value in kwargs.items():
        yield name, written.get(name, False), value


def tensors(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Argument]:
    found = []
    for name, writes, value in named(kernel, args, kwargs):
        writes = writes and not (name.startswith("running_") and not _training(kernel, args))
        if isinstance(value, torch.Tensor):
            found.append(Argument(role(kernel.op, name), name, value, writes))
        elif isinstance(value, (list, tuple)):
            found.extend(
                Argument(f"{role(kernel.op, name)}[{i}]", f"{name}[{i}]", v, writes)
                for i, v in enumerate(value)
                if isinstance(v, torch.Tensor)
            )
    return found


def scalars(kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, object]:
    """Arguments that are plain numbers or short lists of them."""
    found: dict[str, object] = {}
    for name, _, value in named(kernel, args, kwargs):
        if isinstance(value, NUMBER):
            found[name] = value
        elif isinstance(value, (list, tuple)) and len(value) <= 16 and all(isinstance(v, NUMBER) for v in value):
            found[name] = list(value)
        elif isinstance(value, torch.dtype):
            found[name] = str(value).removeprefix("torch.")
    return found


def outputs(result: Any) -> list[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for part in result for tensor in outputs(part)]
    return []


def _training(kernel: Kernel, args: tuple[Any, ...]) -> bool:
    """Whether a batch norm writes its running statistics; the flag is the sixth argument of all its kernels."""
    position = next((i for i, (name, _) in enumerate(kernel.arguments) if name in ("training", "train")), None)
    return True if position is None or position >= len(args) else bool(args[position])
