"""The terms of which a loss is the sum, as the record shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from whynan.core.operands import operands
from whynan.core.records import Operand, Operation, Site

ADDING = frozenset({"add", "sub"})
REDUCING, STACKING = frozenset({"sum", "mean"}), frozenset({"stack", "cat"})
SCALING = frozenset({"mul", "div"})
UNTRAINED = frozenset({"buffer", "unknown"})
SAME = frozenset({"view", "reshape", "squeeze", "unsqueeze", "to", "_to_copy", "clone", "expand", "alias", "select"})
MOST = 16


@dataclass(frozen=True, slots=True)
class Component:
    """One term of the loss: `operation` is the index of the one that made it, `weight` the product of the numbers that it was multiplied
    by, the last of them at `site`. `value` is its own, without the weight. `norm`: of the gradient that the weighted term gives the
    trained parameters; `shared`: of its part for parameters that other terms reach as well; `cosine`: between that part and the one
    that all other terms give together. None where it was not taken."""

    name: str
    operation: int
    weight: float = 1.0
    value: float | None = None
    site: Site | None = None
    norm: float | None = None
    shared: float | None = None
    cosine: float | None = None


def components(operations: list[Operation], last: int | None) -> list[Component]:
    """Those of the loss that the operation `last` made: at least two, or none."""
    found = list(_terms(operations, last, 1.0, None)) if last is not None and last < len(operations) else []
    kept = {component.operation: component for component in found}
    return list(kept.values())[:MOST] if len(kept) > 1 else []


def _terms(operations: list[Operation], index: int, weight: float, site: Site | None, depth: int = 0) -> Iterator[Component]:
    operation = operations[index]
    inner = [one for one in operation.inputs if one.producer is not None and one.producer < len(operations)]
    if depth < 32 and inner and operation.outputs and operation.outputs[0].numel == 1 and operation.direction == "forward":
        if operation.op in SCALING and len(inner) == 1:
            factor = _factor(operation)
            if factor is not None:
                yield from _terms(operations, inner[0].producer or 0, weight * factor, operation.site or site, depth + 1)
                return
        if operation.op in SAME | {"neg"} and len(inner) == 1 and _is_single(inner[0]):
            sign = -1.0 if operation.op == "neg" else 1.0
            yield from _terms(operations, inner[0].producer or 0, weight * sign, site, depth + 1)
            return
        if operation.op in REDUCING and len(inner) == 1:
            stacked = operations[inner[0].producer or 0]
            factor = _factor(stacked) if stacked.op in SCALING else None
            if factor is not None:  # each element was multiplied, which comes to the same
                yield Component(_name(operation), index, weight * factor, None, site or stacked.site)
                return
            share = 1 / len(stacked.inputs) if operation.op == "mean" and stacked.inputs else 1.0
            if stacked.op in STACKING and all(map(_is_single, stacked.inputs)):
                yield from _of_each(operations, list(stacked.inputs), [weight * share] * len(stacked.inputs), site, depth)
                return
        if operation.op in ADDING and all(map(_is_single, inner)) and not _is_comprehension(operations, operation):
            yield from _of_each(operations, inner, [weight * sign for sign in _signs(operation, inner)], site, depth)
            return
    yield Component(_name(operation), index, weight, _value(operation), site or operation.site)


def _is_comprehension(operations: list[Operation], operation: Operation) -> bool:
    """Whether it is part of a call of `sum` over values that one expression makes: they are one component, however many."""
    if operation.site is None or operation.site.call != "sum":
        return False
    pending, sites = [operation], set()
    while pending:
        for one in pending.pop().inputs:
            if one.producer is not None and one.producer < len(operations):
                made = operations[one.producer]
                if made.op == operation.op and made.site == operation.site:
                    pending.append(made)
                else:
                    sites.add(made.site)
    return len(sites) == 1


def _of_each(operations: list[Operation], inner: list[Operand], weights: list[float], site: Site | None, depth: int) -> Iterator[Component]:
    for one, weight in zip(inner, weights, strict=True):
        if one.producer is not None and one.producer < len(operations):
            yield from _terms(operations, one.producer, weight, site, depth + 1)


def _signs(operation: Operation, inner: list[Operand]) -> list[float]:
    alpha = operation.scalars.get("alpha", 1)
    second = (-1.0 if operation.op == "sub" else 1.0) * (float(alpha) if isinstance(alpha, (int, float)) else 1.0)
    return [second if operation.inputs.index(one) == 1 and operation.op in ("add", "sub") else 1.0 for one in inner]


def _is_single(operand: Operand) -> bool:
    return operand.stats.numel == 1


def _factor(operation: Operation) -> float | None:
    """The number by which the operation multiplies."""
    known = [one.constant for one in operands(operation) if one.constant is not None]
    single = [one.stats.min for one in operation.inputs if one.producer is None and one.source in UNTRAINED and _is_single(one)]
    factors = {factor for factor in (*known, *single) if factor}
    if len(factors) != 1:
        return None
    factor = factors.pop()
    return 1 / factor if operation.op == "div" else factor


def _value(operation: Operation) -> float | None:
    return operation.outputs[0].min if operation.outputs and operation.outputs[0].numel == 1 else None


def _name(operation: Operation) -> str:
    """The variable that the user gave it, else the expression."""
    site = operation.site
    if site is None:
        return operation.op
    named = re.match(r"([A-Za-z_][\w.]*)\s*=(?!=)\s*", site.source)
    if named is not None and site.expression == site.source[named.end() :].rstrip():
        return named[1]
    return site.expression or site.source or operation.op
