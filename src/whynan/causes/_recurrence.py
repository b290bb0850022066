"""Weights that are applied again and again in one forward pass, each time to the result of the time before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from whynan.causes._flow import RENAMES, producer
from whynan.causes._functions import LINEAR
from whynan.core.records import Operand, Operation
from whynan.core.session import Session

TIMES = 8  # applications from which a weight counts as recurrent
FUSED = frozenset({"mkldnn_rnn_layer", "_cudnn_rnn", "miopen_rnn", "lstm", "gru", "rnn_tanh", "rnn_relu"})


def recurrences(session: Session) -> Iterator[list[Operation]]:
    """For every recurrent weight its longest chain of products, each fed by the one before it."""
    products = [op for op in session.operations if op.direction == "forward" and op.op in LINEAR | {"mul"}]
    read = {op.index: _weights(session, op) for op in products}
    applied = Counter(weight for weights in read.values() for weight in weights)
    for weight in (weight for weight, times in applied.items() if times >= TIMES):
        chain = _longest(session, {index for index, weights in read.items() if weight in weights})
        if len(chain) >= TIMES:
            yield [op for op in products if op.index in chain]


def fused(session: Session) -> Iterator[tuple[Operation, int]]:
    """Kernels that run over a whole sequence, and its length."""
    for op in session.operations:
        shape = op.inputs[0].stats.shape if op.inputs else ()
        if op.direction == "forward" and op.op in FUSED and len(shape) == 3:
            yield op, max(shape[:2]) if op.scalars.get("batch_first") else shape[0]


def gradients(session: Session, chain: list[Operation]) -> list[float | None]:
    """The largest gradient of the state that each product was given, from the last time step back to the first."""
    shapes = {op.index: {one.stats.shape for one in op.inputs if not session.flow.is_weight(one)} for op in chain}
    found: dict[int, float] = {}
    for op in session.operations:
        if op.direction == "backward" and op.forward in shapes and op.outputs and op.outputs[0].shape in shapes[op.forward]:
            found[op.forward] = max(found.get(op.forward, 0.0), op.outputs[0].absmax or 0.0)
    return [found.get(op.index) for op in reversed(chain)]


def _weights(session: Session, product: Operation) -> set[int]:
    least = 0 if product.op == "mul" else 1  # a recurrence may have a factor for each feature
    weights = (one for one in product.inputs if len(one.stats.shape) > least and session.flow.is_weight(one))
    numbers = {_memory(session, one) for one in weights}
    return {number for number in numbers if number is not None}


def _memory(session: Session, weight: Operand) -> int | None:
    """Where the weight itself lies, behind the copies that autocast makes of it."""
    for _ in range(4):
        made = producer(session, weight)
        if made is None or made.op not in RENAMES or len(made.inputs) != 1:
            break
        weight = made.inputs[0]
    return weight.identity


def _longest(session: Session, reading: set[int]) -> set[int]:
    """The indices along the longest chain of these operations."""
    deepest: dict[int, tuple[int, int | None]] = {}  # operation -> depth, the last of the readers on the way to it
    before: dict[int, int | None] = {}
    for op in session.operations:
        if op.direction != "forward":
            continue
        depth, last = max((deepest.get(one.producer, (0, None)) for one in op.inputs if one.producer is not None),
                          key=lambda found: found[0], default=(0, None))  # fmt: skip
        if op.index in reading:
            before[op.index] = last
            depth, last = depth + 1, op.index
        deepest[op.index] = (depth, last)
    at: int | None = max(before, key=lambda index: deepest[index][0], default=None)
    chain = set[int]()
    while at is not None and at not in chain:
        chain.add(at)
        at = before[at]
    return chain
