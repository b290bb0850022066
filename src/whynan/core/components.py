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
SAME = frozenset({"view", "reshape", "squeeze", "unsqueeze", "to", "_to_copy", "clone", "expand", "alias", "select", "neg"})
MOST, DEEP = 16, 32


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
    """The operation's own terms; itself where it is no sum of single numbers."""
    parts = _parts(operations, operations[index]) if depth < DEEP else None
    if parts is None:
        yield Component(_name(operations[index]), index, weight, _value(operations[index]), site or operations[index].site)
        return
    for part in parts:
        if part.whole:
            yield Component(_name(operations[index]), index, weight * part.factor, None, site or part.site)
        else:
            yield from _terms(operations, part.producer, weight * part.factor, part.site or site, depth + 1)


@dataclass(frozen=True, slots=True)
class Part:
    """What an operation adds, times `factor`, a number that the user wrote at `site`. `whole`: the operation itself, without the number."""

    producer: int
    factor: float = 1.0
    site: Site | None = None
    whole: bool = False


def _parts(operations: list[Operation], operation: Operation) -> list[Part] | None:
    made = [(one, one.producer) for one in operation.inputs if one.producer is not None and one.producer < len(operations)]
    if not made or not operation.outputs or operation.outputs[0].numel != 1 or operation.direction != "forward":
        return None
    if operation.op in ADDING and all(_is_single(one) for one, _ in made):
        if _is_comprehension(operations, operation):
            return None
        return [Part(producer, _sign(operation, one)) for one, producer in made]
    if len(made) > 1:
        return None
    (only, producer), *_ = made
    if operation.op in REDUCING:
        return _reduced(operations, operation, producer)
    if operation.op in SCALING and (factor := _factor(operation)) is not None:
        return [Part(producer, factor, operation.site)]
    if operation.op in SAME and _is_single(only):
        return [Part(producer, -1.0 if operation.op == "neg" else 1.0)]
    return None


def _reduced(operations: list[Operation], operation: Operation, producer: int) -> list[Part] | None:
    """Of a sum or mean: over what was stacked for it, or over elements that were each multiplied, which comes to the same."""
    below = operations[producer]
    factor = _factor(below) if below.op in SCALING else None
    if factor is not None:
        return [Part(producer, factor, below.site, whole=True)]
    stacked = [one.producer for one in below.inputs if one.producer is not None and one.producer < len(operations)]
    if below.op not in STACKING or not stacked or not all(map(_is_single, below.inputs)):
        return None
    share = 1 / len(below.inputs) if operation.op == "mean" else 1.0
    return [Part(one, share) for one in stacked]


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


def _sign(operation: Operation, one: Operand) -> float:
    alpha = operation.scalars.get("alpha", 1)
    if operation.inputs.index(one) != 1:
        return 1.0
    return (-1.0 if operation.op == "sub" else 1.0) * (float(alpha) if isinstance(alpha, (int, float)) else 1.0)


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
