"""Numbers, rows and what was written as the sentences show them."""

from __future__ import annotations

from collections.abc import Sequence

from whynan.core.operands import is_number
from whynan.core.records import Operand, Operation, Site, TensorStats
from whynan.core.session import Birth

SHOWN = 5
MATRICES = {"mat1": "input", "batch1": "input", "mat2": "second matrix", "batch2": "second matrix"}
WIDEST = 60  # characters of an expression that are shown


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
    """` at rows 17, 40 and 41 of the batch`, ` at row 2 of the result` of what has no batch; nothing where that would be all rows."""
    result = next(iter(birth.operation.outputs), None)
    size = result.shape[0] if result is not None and result.shape else 1
    if birth.samples:
        return f" at {_rows(birth.samples, size)} of the batch"
    rows = birth.operation.rows
    return f" at {_rows(rows, size)} of the result" if rows and len(rows) < size else ""


def _rows(rows: Sequence[int], size: int) -> str:
    if len(rows) == size > 1:
        return f"all {size} rows"
    return f"{'row' if len(rows) == 1 else 'rows'} {listing(rows)}"


def shape(stats: TensorStats) -> str:
    return f"{stats.dtype} {'x'.join(str(size) for size in stats.shape)}" if stats.shape else f"{stats.dtype} scalar"


def extent(operand: Operand) -> str:
    """`the argument (float32 4x6) runs from 0 to 0.98`, `the divisor is the number 0`."""
    stats, role = operand.stats, _role(operand)
    if is_number(operand):
        return f"the {role} is the number {num(operand.constant)}"
    named = f"the {role} ({shape(stats)})"
    if stats.min is None or stats.max is None:
        return f"{named} has no finite element"
    if stats.min == stats.max and stats.finite:
        return f"{named} is {num(stats.min)}" + ("" if stats.numel == 1 else " throughout")
    return f"{named} runs from {num(stats.min)}{_at(operand.lowest)} to {num(stats.max)}{_at(operand.highest)}"


def _at(index: tuple[int, ...] | None) -> str:
    return f" at {list(index)}" if index else ""


def _role(operand: Operand) -> str:
    """The kernel's name of an operand where a user knows it, else the user's."""
    if operand.role in MATRICES and operand.source == "parameter":
        return "weight"
    return MATRICES.get(operand.role) or ("other operand" if operand.role == "other" else operand.role)


def zeros(stats: TensorStats, noun: str) -> str:
    """`1 of the 6 divisors is exactly 0`."""
    number, total = stats.zero or 0, stats.numel
    if total == 1:
        return f"the {noun} is exactly 0"
    return f"{'all' if number == total else f'{number} of the'} {total} {noun}s {'is' if number == 1 else 'are'} exactly 0"


def with_zeros(operand: Operand, noun: str) -> list[str]:
    """Its extent and, where that does not say it, how many of its elements are 0."""
    mixed = bool(operand.stats.zero) and operand.stats.min != operand.stats.max
    return [extent(operand), *([zeros(operand.stats, noun)] if mixed else [])]


OPERATORS = {
    "operator.truediv": "the division",
    "operator.floordiv": "the floor division",
    "operator.mod": "the remainder",
    "operator.pow": "the power",
    "operator.mul": "the product",
    "operator.add": "the sum",
    "operator.sub": "the difference",
    "operator.matmul": "the matrix product",
    "operator.neg": "the negation",
}


def called(birth: Birth, operation: Operation | None = None) -> str:
    """What the user wrote: `torch.log`, `the division` for a `/`, `F.poisson_nll_loss (log)` where that ran another operation."""
    shown = operation or birth.operation
    call = shown.site.call if shown.site else None
    if call is None or call.startswith("operator."):
        return OPERATORS.get(call or "") or written(shown)
    return call if _is_call_of(call, shown) else f"{call} ({shown.op})"


def made_by(operation: Operation, birth: Birth) -> str:
    """`softmax on line 24`, `1 - cosine**2 on line 9 of loss.py`: what a value comes out of, in the user's own words."""
    site = operation.site
    if site is None:
        return operation.op
    elsewhere = birth.site is not None and birth.site.file != site.file
    return f"{written(operation)} on line {site.line}" + (f" of {site.file.replace(chr(92), '/').rpartition('/')[2]}" if elsewhere else "")


def written(operation: Operation) -> str:
    """The call that ran the operation or, where the kernel has a name that the user never wrote, the expression."""
    site = operation.site
    if site is None or (site.call and not site.call.startswith("operator.") and _is_call_of(site.call, operation)):
        return (site.call if site else None) or operation.op
    text = " ".join((site.source if _is_assigned(site) else site.expression or site.source).split())
    return f"`{text if len(text) <= WIDEST else text[: WIDEST - 3] + '...'}`" if text else operation.op


def _is_assigned(site: Site) -> bool:
    """Whether the expression is what a value is written into: `x[0]` of `x[0] = y`."""
    before, _, after = site.source.partition(site.expression or "=")
    return not before and after.lstrip().startswith("=") and not after.lstrip().startswith("==")


def _is_call_of(call: str, operation: Operation) -> bool:
    """Whether the operation goes by the name that was called: `linalg_det` by `torch.linalg.det`, `log` by `x.log_`."""
    last, name = call.rpartition(".")[2].strip("_"), operation.op.strip("_")
    return last == name or last in name.split("_") or (len(last) > 3 and last in name)


def outcome(operation: Operation) -> str:
    """`3 NaN and 2 inf`."""
    outputs = operation.outputs
    counts = [
        (sum(out.nan for out in outputs), "NaN"),
        (sum(out.posinf for out in outputs), "inf"),
        (sum(out.neginf for out in outputs), "-inf"),
    ]
    return listing([f"{number} {name}" for number, name in counts if number]) or "no non-finite value"
