"""A traced step written by hand: `op` gives the operand that reads the operation's result."""

from __future__ import annotations

from typing import Any

from whynan.core.locate import locate
from whynan.core.records import Operand, Operation, Site, Source, TensorStats
from whynan.core.session import Birth, Seed, Session, What

BATCH = 4


class Step:
    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._outside = 0

    def outside(self, source: Source = "input", *, shape: tuple[int, ...] = (BATCH, 3), **rest: Any) -> Operand:
        """A tensor that was there before the step; finite unless `nan`, `posinf` or `neginf` say otherwise."""
        self._outside += 1
        rest.setdefault("identity", self._outside)
        return Operand("input", _stats(shape, rest), source=source, from_batch=source == "input", **rest)

    def op(self, name: str, *inputs: Operand, shape: tuple[int, ...] = (BATCH, 3), line: int | None = 7, **rest: Any) -> Operand:
        stats = _stats(shape, rest)
        rest.setdefault("batch_rows", shape[:1] == (BATCH,))
        rest.setdefault("direction", "forward")
        index = len(self.operations)
        site = Site("/work/train.py", line, "step") if line is not None else None
        self.operations.append(Operation(index, name, f"aten.{name}.default", site=site, inputs=inputs, outputs=(stats,), **rest))
        return Operand("input", stats, producer=index)

    def raises(self, name: str, *inputs: Operand) -> Operand:
        index = len(self.operations)
        operation = Operation(index, name, f"aten.{name}.default", "forward", inputs=inputs, failed="did not converge")
        self.operations.append(operation)
        return Operand("input", TensorStats((), "float32"), producer=index)

    def birth(self, *seeds: Operand, what: What = "loss", **rest: Any) -> Birth | None:
        gone_bad = tuple(Seed(what, "", seed.producer) for seed in seeds)
        return locate(Session(5, what, seeds=gone_bad, operations=self.operations, **rest))

    def found(self, *seeds: Operand, what: What = "loss", **rest: Any) -> Birth:
        birth = self.birth(*seeds, what=what, **rest)
        assert birth is not None
        return birth


def _stats(shape: tuple[int, ...], rest: dict[str, Any]) -> TensorStats:
    counts = {key: rest.pop(key, 0) for key in ("nan", "posinf", "neginf")}
    bad = any(counts.values())
    return TensorStats(shape, "float32", None if bad else 0.0, None if bad else 1.0, **counts)


def assert_leads(birth: Birth, operations: list[Operation], to: Operand) -> None:
    """The chain starts at the birth, ends at what went bad, and each of its operations read what the one before wrote."""
    assert birth.chain[-1] == to.producer
    for earlier, later in zip(birth.chain, birth.chain[1:], strict=False):
        assert earlier in [operand.producer for operand in operations[later].inputs]
