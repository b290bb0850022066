"""Small records written by hand, so that every probe is tested without a framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from whynan.causes import catalogue
from whynan.core.catalogue import Verdict
from whynan.core.explain import explain
from whynan.core.records import Operand, Operation, OptimizerState, Site, TensorStats, Trend
from whynan.core.session import Birth, Session

PROBES = {entry.cause.name: entry.probe for entry in catalogue()}


def stats(shape: tuple[int, ...] = (4,), dtype: str = "float32", **numbers: Any) -> TensorStats:
    """`stats(low=0, high=1, zero=2)`; nothing known where nothing is said."""
    low, high = numbers.pop("low", None), numbers.pop("high", None)
    absmax = max(abs(low), abs(high)) if low is not None and high is not None else None
    return TensorStats(shape, dtype, low, high, numbers.pop("absmax", absmax), **numbers)


def value(role: str = "input", *at_birth: float, of: int | None = None, **rest: Any) -> Operand:
    """An operand with these elements where the result is not finite; `of` is the operation that made it."""
    named = {key: rest.pop(key) for key in ("name", "source", "from_batch", "constant", "rows") if key in rest}
    source = named.pop("source", "operation" if of is not None else "input")
    found = rest.pop("stats", None) or stats(**rest)
    return Operand(role, found, producer=of, at_birth=at_birth, source=source, **named)


def site(line: int = 7, expression: str = "torch.log(p)", call: str = "torch.log", source: str | None = None) -> Site:
    return Site("/work/train.py", line, "step", source or f"loss = -{expression}.mean()", (8, 20), expression, call)


def op(index: int, name: str, *inputs: Operand, out: TensorStats | tuple[TensorStats, ...] | None = None, **rest: Any) -> Operation:
    outputs = out if isinstance(out, tuple) else (out or stats(),)
    direction = rest.pop("direction", "forward")
    return Operation(index, name, f"aten.{name}.default", direction, rest.pop("site", site()), inputs=inputs, outputs=outputs, **rest)


def bad(shape: tuple[int, ...] = (4,), dtype: str = "float32", **counts: int) -> TensorStats:
    return TensorStats(shape, dtype, **(counts or {"nan": 1}))


def born(operation: Operation, *before: Operation, after: tuple[Operation, ...] = (), **rest: Any) -> tuple[Birth, Session]:
    """The birth at `operation` in a session that recorded the operations before and after it."""
    direction = rest.pop("direction", operation.direction)
    phase = rest.pop("phase", "loss" if direction == "forward" else direction)
    birth = Birth(
        operation,
        rest.pop("op", operation.op),
        "nan" if operation.makes_nan else "inf",
        direction,
        phase,
        operation.site,
        samples=rest.pop("samples", None),
        chain=rest.pop("chain", (operation.index,)),
        from_infinity=rest.pop("from_infinity", False),
        origin_name=rest.pop("origin_name", None),
    )
    what = "gradient" if direction == "backward" else "parameter" if direction == "optimizer" else "loss"
    session = Session(rest.pop("step", 5), rest.pop("what", what), operations=[*before, operation, *after])
    return birth, replace(session, **rest)


Course = list[float | None]


def course(loss: Course, grad: Course | None = None, ratio: Course | None = None, lr: Course | None = None) -> Trend:
    count = len(loss)
    return Trend(list(range(count)), loss, grad or [1.0] * count, ratio or [1e-3] * count, lr or [0.1] * count)


def adam(**group: Any) -> OptimizerState:
    dtypes = group.pop("dtypes", ("float32",))
    return OptimizerState(
        "Adam", ({"lr": 1e-3, "eps": 1e-8, **group},), site(3, "torch.optim.Adam(p, lr=1e-3)", "torch.optim.Adam"), dtypes
    )


def verdict(name: str, case: tuple[Birth, Session]) -> Verdict | None:
    return PROBES[name](*case)


def ranked(case: tuple[Birth, Session]) -> list[str]:
    return [diagnosis.cause for diagnosis in explain(*case, catalogue())]
