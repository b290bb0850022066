"""Products of two activations: similarities of embeddings, scores of attention."""

from __future__ import annotations

from collections.abc import Iterator

from whynan.causes._flow import RENAMES, downstream, producer, upstream
from whynan.causes._functions import LINEAR
from whynan.causes._operands import number
from whynan.core.records import Operand, Operation
from whynan.core.session import Session

VALUES = RENAMES | frozenset(
    "exp exp2 softmax log_softmax mul div add sub rsub neg pow square sqrt relu sum mean logsumexp masked_fill where".split()
)
BOUNDING = frozenset("layer_norm _fused_rms_norm rms_norm batch_norm group_norm tanh sigmoid softmax linalg_vector_norm norm rsqrt".split())


def operands_of(session: Session, operation: Operation) -> tuple[Operand, Operand] | None:
    """The two activations of a product that sums over their last dimension; weights are none."""
    if operation.op == "sum":
        return _pair_summed(session, operation)
    return _pair(session, operation) if operation.op in LINEAR | {"cdist"} and operation.op != "convolution" else None


def _pair_summed(session: Session, total: Operation) -> tuple[Operand, Operand] | None:
    """(a * b).sum(-1); a square summed to one number is an error, and no similarity."""
    made = producer(session, next(iter(total.inputs), None))
    pair = _pair(session, made) if made is not None and made.op == "mul" else None
    if pair is None or pair[0].producer == pair[1].producer or not total.outputs:
        return None
    return pair if total.outputs[0].numel * length(pair[0]) == total.inputs[0].stats.numel and total.outputs[0].numel > 1 else None


def _pair(session: Session, operation: Operation) -> tuple[Operand, Operand] | None:
    matrices = [one for one in operation.inputs if one.stats.shape]
    if len(matrices) < 2 or any(session.flow.is_weight(one) and not _is_row(session, one) for one in matrices[-2:]):
        return None
    first, second = matrices[-2:]
    trained = all("parameter" in session.flow.kinds(one) for one in (first, second))
    return (first, second) if trained else None


def _is_row(session: Session, operand: Operand) -> bool:
    """Whether a value made of weights alone was looked up in a table."""
    return any(op.op in ("embedding", "index", "index_select") for op in upstream(session, operand, RENAMES | {"mul", "div"}))


def length(first: Operand) -> int:
    """Over how many elements the product sums."""
    return first.stats.shape[-1] if first.stats.shape else 0


def is_scaled(session: Session, product: Operation, given: tuple[Operand, ...]) -> bool:
    """Whether the user multiplies or divides the product, or what goes into it, by a number."""
    before = (op for one in given for op in upstream(session, one, RENAMES))
    reached = {product.index}
    after = []
    for op in session.operations:
        if op.direction == "forward" and any(one.producer in reached for one in op.inputs):
            after.append(op)
            reached |= {op.index} if op.op in RENAMES else set()
    return product.scalars.get("alpha", 1) not in (1, 1.0) or any(map(_by_number, (*before, *after)))


def _by_number(op: Operation) -> bool:
    single = any(one.stats.numel == 1 for one in op.inputs)
    return op.op in ("mul", "div") and (number(op, "other") is not None or single)


def is_attention(session: Session, product: Operation) -> bool:
    """Whether what is made of the scores is multiplied with other activations, and not only summed into a loss."""
    return any(op.op in LINEAR for op in downstream(session, product.index))


def is_bounded(session: Session, operand: Operand) -> bool:
    """Whether something on the way normalised the activation or keeps it within fixed limits."""
    return any(op.op in BOUNDING or _divides_by_norm(session, op) for op in upstream(session, operand, RENAMES | {"mul", "div", "add"}))


def _divides_by_norm(session: Session, op: Operation) -> bool:
    divisor = op.operand("divisor") if op.op == "div" else None
    return any(made.op in BOUNDING or made.op == "sqrt" for made in upstream(session, divisor, RENAMES | {"add", "maximum"}))


def products_before(session: Session, operation: Operation) -> Iterator[tuple[Operation, tuple[Operand, Operand]]]:
    """Such products on the way to an operation, itself included, nearest first."""
    for op in (operation, *(made for one in operation.inputs for made in upstream(session, one, VALUES))):
        pair = operands_of(session, op)
        if pair is not None:
            yield op, pair
