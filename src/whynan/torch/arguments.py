"""What an operation is about to be given, and what it had been given once it has overwritten some of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whynan.core.records import Operand
from whynan.torch.copies import clone_some
from whynan.torch.kernels import Argument, Kernel
from whynan.torch.storages import Storage
from whynan.torch.whereabouts import Where


@dataclass(slots=True)
class Held:
    """The arguments of an operation that may be the birth, as they were before it ran."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(slots=True)
class Before:
    kernel: Kernel
    where: Where
    arguments: list[Argument]
    storages: list[Storage | None]
    operands: list[Operand]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def before_write(self) -> tuple[Any, ...]:
        """The arguments with copies of what the operation is about to overwrite, so that a birth can still be shown with its operands: of
        the target where its old content matters, and of whatever lies in the same memory (`y /= y`, `torch.log(y, out=y)`)."""
        pairs = list(zip(self.arguments, self.storages, strict=True))
        written = {id(s) for a, s in pairs if a.written and s}
        overwritten = {id(a.tensor) for a, s in pairs if id(s) in written and (self.kernel.reads_target or not a.written)}
        return tuple(clone_some(a, overwritten) for a in self.args)
