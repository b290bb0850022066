"""A class weight that is infinite, or weights that are all zero.

What happens
    A loss is weighted by class: with 1 / count, where a class has no sample, or with a weight of 0 for a class (the
    background), where a batch holds no other.

Why it gives NaN or Inf
    1 / 0 is an infinite weight, and inf times a loss of 0 is NaN. The weighted mean divides by the sum of the weights of the
    labels at hand; where they are all 0 this is 0 / 0.

How to recognise it
    The weights that the loss was given hold inf or NaN, or the sum of the weights of the batch's labels is 0.

How to fix it
    Clamp the counts at 1 before the division, bound the weights, and divide a sum of losses by the sum of weights but at
    least a small number.

When this diagnosis is wrong
    If every label is ignored by ignore_index, the weights play no part: see empty-reduction.

References
    https://pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html (weight, and the weighted mean)
"""

from __future__ import annotations

from whynan.causes._conditions import unless
from whynan.causes._flow import downstream
from whynan.causes._operands import carried, sick
from whynan.causes._words import called, extent, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session


def _sum_to_zero(birth: Birth, session: Session) -> bool:
    """Whether the weights are finite and the batch's labels have none."""
    return birth.operation.op in LOSSES and _bad_weight(birth.operation) is None


CAUSE = Cause(
    name="bad-class-weight",
    title="a class weight that is infinite, or weights that are all zero",
    level="operation",
    why="An infinite weight times a loss of 0 is NaN, and a weighted mean with weights of 0 is 0 / 0.",
    doubt="Wrong if the labels of the batch are all ignored.",
    remedies=(
        Advice(
            "clamp-class-counts",
            "Clamp the class counts at 1 before taking 1 / count, and bound the weights.",
            when=unless(_sum_to_zero),
        ),
        Advice(
            "floor-weight-sum",
            "Sum the weighted losses and divide by the sum of their weights, but at least a small number.",
            when=_sum_to_zero,
        ),
    ),
)
LOSSES = frozenset(["nll_loss", "nll_loss2d", "binary_cross_entropy", "binary_cross_entropy_with_logits", "multi_margin_loss"])
ROLES = ("weight", "pos_weight")


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction != "forward":
        return None
    operation = birth.operation
    if operation.op in LOSSES:
        return _in_loss(birth, operation)
    if operation.op not in ("div", "reciprocal", "pow", "rsqrt", "log"):
        return None
    reader = next((op for op in downstream(session, operation.index) if op.op in LOSSES and _bad_weight(op) is not None), None)
    if reader is None:
        return None
    weight = _bad_weight(reader)
    facts = (*_facts(weight), *(extent(one) for one in operation.inputs))
    return Verdict(0.95, f"{called(birth)} made class weights that are not finite, which {called(birth, reader)} was given", facts)


def _in_loss(birth: Birth, operation: Operation) -> Verdict | None:
    weight = _bad_weight(operation)
    if weight is not None and (birth.op != "input" or carried(birth) is weight):
        return Verdict(0.97, f"{called(birth)} was given class weights that are not finite", _facts(weight))
    weight, total = operation.operand("weight"), operation.outputs[1] if len(operation.outputs) > 1 else None
    if weight is None or total is None or total.numel != 1 or total.absmax != 0 or not sick(operation)[0]:
        return None
    target = operation.operand("target")
    facts = (extent(weight), *([extent(target)] if target is not None else []), "the weights of the batch's labels sum to 0")
    return Verdict(0.95, f"{called(birth)} divided by the sum of its labels' weights, which is 0", facts)


def _bad_weight(operation: Operation) -> Operand | None:
    found = (operation.operand(role) for role in ROLES)
    return next((one for one in found if one is not None and not one.stats.finite), None)


def _facts(weight: Operand | None) -> tuple[str, ...]:
    if weight is None:
        return ()
    return (f"the {weight.role} ({shape(weight.stats)}) holds {weight.stats.posinf} inf and {weight.stats.nan} NaN",)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(6, 4), torch.zeros(6, dtype=torch.long)
weight = torch.tensor([0.0, 1.0, 2.0])
for step in range(3):
    loss = nn.functional.cross_entropy(model(x), y, weight=weight)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("[0.0, 1.0, 2.0]", "[0.1, 1.0, 2.0]")
