"""Numbers and rows as the sentences show them."""

from __future__ import annotations

from collections.abc import Sequence

from whynan.core.records import Operand, Operation, TensorStats
from whynan.core.session import Birth

SHOWN = 5


def num(value: float | None) -> str:
    return "an unknown value" if value is None else f"{value + 0.0:.4g}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(items: Sequence[object]) -> str:
    shown = [str(item) for item in items[:SHOWN]]
    if len(items) > SHOWN:
        return f"{', '.join(shown)} and {len(items) - SHOWN} more"
    return " and ".join(([", ".join(shown[:-1])] if len(shown) > 1 else []) + shown[-1:])


def at_rows(birth: Birth) -> str:
    """` at rows 17, 40 and 41 of the batch`, or nothing where the rows are not known."""
    rows, of = (birth.samples, " of the batch") if birth.samples else (birth.operation.rows, "")
    return f" at {'row' if len(rows) == 1 else 'rows'} {listing(rows)}{of}" if rows else ""


def shape(stats: TensorStats) -> str:
    return f"{stats.dtype} {'x'.join(str(size) for size in stats.shape)}" if stats.shape else f"{stats.dtype} scalar"


def extent(operand: Operand) -> str:
    """`the argument (float32 4x6) runs from 0 to 0.98`."""
    stats = operand.stats
    if stats.min is None or stats.max is None:
        return f"the {operand.role} ({shape(stats)}) has no finite element"
    return f"the {operand.role} ({shape(stats)}) runs from {num(stats.min)} to {num(stats.max)}"


OPERATORS = {
    "operator.truediv": "the division",
    "operator.pow": "the power",
    "operator.mul": "the product",
    "operator.add": "the sum",
    "operator.sub": "the difference",
    "operator.matmul": "the matrix product",
}


def called(birth: Birth, operation: Operation | None = None) -> str:
    """What the user wrote: `torch.log`, `the division` for a `/`, `F.poisson_nll_loss (log)` where that ran another operation."""
    shown = operation or birth.operation
    call = shown.site.call if shown.site else None
    if call is None or call.startswith("operator."):
        return OPERATORS.get(call or "", shown.op)
    return call if shown.op.strip("_") in call or call.rpartition(".")[2] in shown.op else f"{call} ({shown.op})"


def outcome(operation: Operation) -> str:
    """`3 NaN and 2 inf`."""
    outputs = operation.outputs
    counts = [
        (sum(out.nan for out in outputs), "NaN"),
        (sum(out.posinf for out in outputs), "inf"),
        (sum(out.neginf for out in outputs), "-inf"),
    ]
    return listing([f"{number} {name}" for number, name in counts if number]) or "no non-finite value"
