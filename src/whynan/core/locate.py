"""Find where the first harmful value was born: follow the data flow back from what went bad.

The birth is not the first non-finite value. An infinity that never reaches the loss, a gradient or a parameter is not on the way back;
one that somebody wrote on purpose (an attention mask) is passed over for the operation that turned it into NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from whynan.core.records import Direction, Operand, Operation
from whynan.core.session import Birth, Kind, Phase, Seed, Session

INTENDED = frozenset("full full_like fill scalar_tensor new_full constant_pad_nd masked_fill where index_put scatter index_fill "
                     "masked_scatter copy lift_fresh".split())  # fmt: skip
MASK_CONSUMERS = frozenset("softmax log_softmax logsumexp scaled_dot_product_attention _transformer_encoder_layer_fwd "
                           "_native_multi_head_attention".split())  # fmt: skip
PICKING = frozenset({"index", "index_select"})  # put a batch together out of a whole data set
OUTSIDE_NAMES = {"input": "input", "parameter": "param", "buffer": "buffer"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a walk back ended: an operation with nothing bad before it, or an operand that was bad before the record began."""

    operation: Operation
    operand: Operand | None = None
    intended: bool = False
    from_infinity: bool = False


class Walk:
    """One walk back; `towards` leads from every operation met to the next one on the way to what went bad."""

    def __init__(self, operations: list[Operation]) -> None:
        self.operations = operations
        self.towards: dict[int, int | None] = {}

    def origins(self, start: int, successor: int | None = None) -> list[Origin]:
        found: list[Origin] = []
        pending = [(start, successor)]
        while pending:
            index, nearer = pending.pop()
            if index in self.towards:
                continue
            self.towards[index] = nearer
            operation = self.operations[index]
            bad = _followed(operation)
            if not bad:
                found.append(Origin(operation, intended=_is_intended(operation)))
            elif operation.makes_nan and not any(o.stats.nan for o in bad):
                found.extend(self._from_infinity(operation, bad))
            else:
                found.extend(Origin(operation, o, intended=_outside_constant(o)) for o in bad if o.producer is None)
                pending.extend((o.producer, index) for o in bad if o.producer is not None)
        return found

    def _from_infinity(self, operation: Operation, bad: list[Operand]) -> list[Origin]:
        """NaN made of infinities: their origin is to blame unless each was intended or harmless; then this operation is."""
        origins: list[Origin] = []
        for operand in bad:
            if operand.producer is None:
                origins.append(Origin(operation, operand, intended=_outside_constant(operand) or operation.op in MASK_CONSUMERS))
            else:
                origins.extend(self.origins(operand.producer, operation.index))
        blamed = [o for o in origins if not o.intended and not _excused(o, operation, bad)]
        return blamed or [Origin(operation, from_infinity=True)]


def locate(session: Session) -> Birth | None:
    """The birth of the incident, None where the record does not tell."""
    walk = Walk(session.operations)
    origins = [origin for seed in session.seeds for origin in _start(walk, seed, session.operations)]
    if not origins:
        return None
    chosen = min((o for o in origins if not o.intended), key=_order, default=None) or min(origins, key=_order)
    return _birth(chosen, walk, session)


def _start(walk: Walk, seed: Seed, operations: list[Operation]) -> list[Origin]:
    if seed.operation is None or not 0 <= seed.operation < len(operations):
        return []
    operation = operations[seed.operation]
    if seed.what == "exception" and not _followed(operation):
        return []
    return walk.origins(seed.operation)


def _order(origin: Origin) -> tuple[int, int]:
    return origin.operation.index, 0 if origin.operand is None else 1


def _followed(operation: Operation) -> list[Operand]:
    """The operands that explain the result: NaN explains NaN, and infinity whatever it becomes."""
    bad = [o for o in operation.inputs if not o.stats.finite]
    nan = [o for o in bad if o.stats.nan]
    if operation.failed is not None or operation.makes_nan:
        return nan or bad
    return [o for o in bad if o.stats.inf] or nan


def _is_intended(operation: Operation) -> bool:
    """Whether the infinity was written by the programmer: it stands as a number among the arguments of a filling operation."""
    if operation.makes_nan or operation.op not in INTENDED:
        return False
    numbers = [v for v in operation.scalars.values() if isinstance(v, float)]
    return operation.op == "copy" or any(math.isinf(v) for v in numbers)


def _outside_constant(operand: Operand) -> bool:
    return operand.source in ("constant", "buffer") and not operand.stats.nan


def _excused(origin: Origin, consumer: Operation, bad: Iterable[Operand]) -> bool:
    """A computed -inf that the consumer takes as a mask: other rows had it too and came out finite."""
    if consumer.op not in MASK_CONSUMERS or any(o.stats.posinf for o in bad) or origin.operation.rows is None:
        return False
    return set(consumer.nan_rows or ()) < set(origin.operation.rows)


def _birth(origin: Origin, walk: Walk, session: Session) -> Birth:
    operation, operand = origin.operation, origin.operand
    chain = tuple(_chain(walk, operation.index))
    outside = _outside(operand) if operand is not None else None
    if operand is not None and outside is not None:
        operation = _first_consumer(session.operations, operand, operation)
    samples = _samples(origin, operation, chain, session)
    direction: Direction = "forward" if outside and operation.direction != "optimizer" else operation.direction
    return Birth(
        operation=operation,
        op=outside or operation.op,
        kind=_kind(operation, operand),
        direction=direction,
        phase=_phase(operation, outside, direction, session),
        site=operation.site or session.site,
        samples=samples,
        dataset_indices=_indices(samples, session),
        parameters=_parameters(operand, direction, session),
        chain=chain,
        from_infinity=origin.from_infinity,
        origin_name=operand.name if operand else None,
        since_made=outside == "buffer" and operand is not None and operand.name in session.never_finite,
    )


def _outside(operand: Operand) -> str | None:
    """The report's name of where the operand came from; numbers that the step itself put into a tensor are its input."""
    if operand.source == "constant" and operand.stats.shape and operand.stats.nan:
        return "input"
    return OUTSIDE_NAMES.get(operand.source)


def _chain(walk: Walk, index: int) -> Iterable[int]:
    following: int | None = index
    while following is not None:
        yield following
        following = walk.towards.get(following)


def _first_consumer(operations: list[Operation], operand: Operand, default: Operation) -> Operation:
    """The first operation that read the memory in which the bad value came, and let it through (`isnan(x)` only looks at it)."""
    if operand.identity is None:
        return default
    readers = (op for op in operations if any(o.identity == operand.identity and not o.stats.finite for o in op.inputs))
    return next((op for op in readers if op.site is not None and not op.finite), default)


def _kind(operation: Operation, operand: Operand | None) -> Kind:
    nan = operand.stats.nan if operand is not None else operation.makes_nan
    return "nan" if nan else "inf"


def _phase(operation: Operation, outside: str | None, direction: Direction, session: Session) -> Phase:
    if outside == "input":
        return "input"
    if direction != "forward":
        return direction
    if outside is None and operation.module is None and _before_the_model(operation, session):
        return "input"
    if session.what == "gradient":
        return "backward"
    return "loss" if operation.module is None and outside is None else "forward"


def _before_the_model(operation: Operation, session: Session) -> bool:
    """Whether it works on data alone on their way into the model. A step that an exception ended may not have come to the model."""
    flow = session.flow
    return flow.prepares_input(operation) or (session.what == "exception" and not flow.has_met_the_model())


def _samples(origin: Origin, operation: Operation, chain: tuple[int, ...], session: Session) -> tuple[int, ...] | None:
    """The rows of the batch that are bad: of those born, the ones that go on being bad in the next operation of the same shape."""
    if origin.operand is not None:
        shape = origin.operand.stats.shape
        if operation.op in PICKING and operation.batch_rows:
            return operation.rows
        return origin.operand.rows if origin.operand.source in ("input", "constant") and shape and origin.operand.from_batch else None
    if not operation.batch_rows or operation.direction == "optimizer":
        return None
    rows = operation.nan_rows if origin.from_infinity else operation.rows
    following = session.operations[chain[1]] if len(chain) > 1 else None
    if rows and following is not None and following.outputs and following.outputs[0].shape == operation.outputs[0].shape:
        rows = tuple(r for r in rows if r in set(following.rows or ())) or rows
    return rows


def _indices(samples: tuple[int, ...] | None, session: Session) -> tuple[int, ...] | None:
    known = session.dataset_indices
    if samples is None or known is None or not samples or max(samples) >= len(known):
        return None
    return tuple(known[row] for row in samples)


def _parameters(operand: Operand | None, direction: Direction, session: Session) -> tuple[str, ...] | None:
    if operand is not None and operand.source == "parameter":
        bad = {o.name for op in session.operations for o in op.inputs if o.source == "parameter" and not o.stats.finite and o.name}
        return tuple(sorted(bad | ({operand.name} if operand.name else set())))
    if direction == "optimizer" and session.parameters is None:
        updates = (op for op in session.operations if op.direction == direction and not op.finite)
        return tuple(sorted({name for op in updates for name in op.writes})) or None
    return None if direction == "forward" else session.parameters
