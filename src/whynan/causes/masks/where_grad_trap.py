"""A branch that torch.where hides in the forward pass only.

What happens
    Two formulas are computed for every element and torch.where (or masked_fill, an index, nan_to_num) picks the valid one.
    The other formula is outside its domain: a root of a negative number, a logarithm of 0, a quotient by 0.

Why it gives NaN or Inf
    The loss never sees the unused value, so it is finite. The backward pass sends the gradient 0 into the unused branch, and
    there it is multiplied by an infinite or undefined derivative: 0 * inf = NaN.

How to recognise it
    The loss is finite and a gradient is NaN; the gradient that arrives at the birth is 0; a selection lies behind it.

How to fix it
    Give each branch an argument that is inside its domain before it is computed: y = torch.where(ok, x, 1.0), then
    torch.where(ok, f(y), other). This is the double where.

When this diagnosis is wrong
    If the gradient that arrives is not 0, the element is in use, and the operation itself is outside its domain.

References
    https://github.com/pytorch/pytorch/issues/4132
    https://docs.jax.dev/en/latest/faq.html (gradients contain NaN where using where)
"""

from __future__ import annotations

from whynan.causes._flow import downstream
from whynan.causes._functions import SELECTS, subject
from whynan.causes._operands import all_meet, is_zero
from whynan.causes._words import at_rows, called, extent, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="where-grad-trap",
    title="a branch that torch.where hides in the forward pass only",
    level="operation",
    why="The selection keeps the bad value out of the loss; its backward pass multiplies 0 by an infinite derivative.",
    doubt="Wrong if the elements born bad are in use: then the function itself is outside its domain.",
    remedies=(
        Advice(
            "double-where",
            "Select a safe argument first, then the result: y = torch.where(ok, x, 1.0); torch.where(ok, f(y), other).",
        ),
        Advice("select-before-compute", "Index the valid elements before the function, not its results."),
    ),
)
FOLLOWING = 24  # kernels of the same node looked at for the gradient that arrived


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    if session.what != "gradient" or function is None or birth.op in ("input", "param", "buffer"):
        return None
    selections = (op for op in downstream(session, function.index) if op.op in SELECTS)
    selection = next((op for op in selections if op.finite or function.finite), None)  # one that lets the value through hides nothing
    if selection is None:
        return None
    # a value that is not finite and does not show in the loss was hidden; only a finite one leaves the question open
    arrived = _gradient_is_zero(birth, session) if birth.direction == "backward" else None
    if arrived is None and not function.finite:
        arrived = True
    if arrived is False:
        return None
    line = f" on line {selection.site.line}" if selection.site else ""
    facts = [f"{called(birth, selection)}{line} selects behind it", "the loss is finite"]
    facts += [extent(one) for one in function.inputs[:2]]
    facts.append(f"{'gradient' if birth.direction == 'backward' else 'result'}: {outcome(birth.operation)}")
    if birth.direction == "backward" and arrived:
        facts.append("the gradient that arrives at these elements is 0")
    outside = f"{called(birth, function)} is outside its domain{at_rows(birth)}"
    summary = f"{outside}; {called(birth, selection)} hides that from the loss, not from the gradient"
    return Verdict(0.97 if arrived else 0.6, summary, tuple(facts))


def _gradient_is_zero(birth: Birth, session: Session) -> bool | None:
    """Whether the gradient that meets the infinite derivative is 0; None where the record does not show it."""
    born = birth.operation
    same = [op for op in session.operations if op.index >= born.index and op.node == born.node and op.forward == born.forward]
    for op in same[:FOLLOWING]:
        answer = _zero_factor(op)
        if answer is not None:
            return answer
    return None


def _zero_factor(op: Operation) -> bool | None:
    if op.op == "div":
        dividend = op.operand("dividend")
        return all_meet(dividend, is_zero) if dividend is not None and dividend.at_birth else None
    if op.op != "mul" or op.finite:
        return None
    finite = [one for one in op.inputs if one.at_birth and one.stats.finite]
    return any(all_meet(one, is_zero) for one in finite) if finite and len(finite) < len(op.inputs) else None


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = torch.linspace(-200, 200, 8)[:, None], torch.rand(8, 1)
for step in range(3):
    z = model(x)
    f = torch.where(z > 0, torch.sqrt(z), torch.zeros_like(z))  # culprit
    loss = (f - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.sqrt(z)", "torch.sqrt(torch.where(z > 0, z, torch.ones_like(z)))")
