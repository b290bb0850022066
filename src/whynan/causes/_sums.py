"""Sums: over how many elements they go, and what that makes of their terms."""

from __future__ import annotations

from whynan.core.records import Operation

UNEVEN = frozenset({"scatter_add", "index_add", "scatter_reduce"})
SUMS = UNEVEN | {"sum", "cumsum"}


def summed(op: Operation) -> int:
    """Over how many elements it sums."""
    return op.inputs[0].stats.numel // max(op.outputs[0].numel, 1) if op.inputs and op.outputs else 0


def enlarged(op: Operation) -> tuple[int, float]:
    """Over how many elements an operation sums, and its largest term; (0, 0) where that has not made it much larger."""
    if op.op not in SUMS or not op.inputs or not op.outputs:
        return 0, 0.0
    given, result = max(op.inputs, key=lambda one: one.stats.numel), op.outputs[0]
    over = op.inputs[0].stats.shape if op.op == "cumsum" else ()
    size = max(over, default=given.stats.numel // max(result.numel, 1))
    terms, most = given.stats.absmax or 0.0, result.absmax or 0.0
    if op.op in UNEVEN and terms:
        size = max(size, int(most / terms))  # a node may have far more neighbours than the others
    return (size, terms) if terms and (not result.finite or most >= 0.5 * size**0.5 * terms) else (0, 0.0)
