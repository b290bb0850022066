"""The derivative of a square root at zero.

What happens
    A root is taken of an exact 0: the distance of two equal points, the norm of a zero vector written by hand, the root of a
    mean square error of 0, the standard deviation of equal numbers, the magnitude of a silent spectrum.

Why it gives NaN or Inf
    The derivative of sqrt(x) is 1 / (2 sqrt(x)), infinite at 0. The chain rule multiplies it by the derivative of what is
    inside, 2d with d = 0, and inf * 0 is NaN. An inactive hinge behind the root sends the gradient 0, and 0 * inf is NaN as
    well.

How to recognise it
    The loss is finite, the birth lies in the backward pass of the root, and its argument in the forward pass was exactly 0.

How to fix it
    Put an epsilon inside the root, sqrt(x + eps), not behind it; or use torch.linalg.vector_norm, torch.cdist or
    F.pairwise_distance, whose derivative at 0 is defined as 0.

When this diagnosis is wrong
    If the argument is tiny but not 0, the derivative is large and finite; the overflow then came from elsewhere.

References
    https://github.com/pytorch/pytorch/issues/2421
"""

from __future__ import annotations

from whynan.causes._flow import RENAMES, upstream
from whynan.causes._functions import node_is, subject
from whynan.causes._operands import argument, divisors, is_zero, meets
from whynan.causes._words import at_rows, called, extent, outcome, zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

SQUARES = frozenset({"pow", "square", "mul"})
EDITS = (Edit("argument", "({} + 1e-8)", calls=("sqrt",), half="({} + 1e-4)"),)


def _is_norm_by_hand(birth: Birth, session: Session) -> bool:
    """Whether the root is taken of a sum of squares."""
    root = subject(birth, session)
    if root is None or root.op != "sqrt":
        return False
    summed = next((op for op in upstream(session, argument(root), RENAMES) if op.op == "sum"), None)
    return summed is not None and any(op.op in SQUARES for op in upstream(session, argument(summed), RENAMES))


CAUSE = Cause(
    name="sqrt-grad-at-zero",
    title="the derivative of a square root at zero",
    level="operation",
    why="The derivative of sqrt(x) is 1 / (2 sqrt(x)), infinite at 0; times the 0 of the inner derivative it is NaN.",
    doubt="Wrong if the argument of the root was not exactly 0.",
    remedies=(
        Advice("epsilon-inside-root", "Put an epsilon inside the root.", EDITS),
        Advice("use-vector-norm", "Use torch.linalg.vector_norm, whose derivative at 0 is defined as 0.", when=_is_norm_by_hand),
    ),
)
ROOTS = frozenset(["sqrt", "std", "std_mean", "linalg_vector_norm", "norm", "hypot", "cdist", "frobenius_norm"])
NODES = ("Sqrt", "Std", "StdMean", "LinalgVectorNorm", "Norm", "Hypot", "Cdist", "EuclideanDist")


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.direction != "backward":
        return None
    root = subject(birth, session)
    if not (root is not None and root.op in ROOTS) and not node_is(birth, *NODES):
        return None
    if not _at_zero(birth, root):
        return None
    facts = [extent(one) for one in root.inputs[:2]] if root is not None else []
    given = argument(root)
    if given is not None and given.stats.zero:
        facts.append(zeros(given.stats, "argument"))
    elif root is not None and root.outputs and root.outputs[0].zero:
        facts.append(zeros(root.outputs[0], "result"))
    facts.append(f"gradient: {outcome(birth.operation)}")
    name = called(birth, root) if root is not None else "the root"
    return Verdict(0.94, f"{name} was given 0{at_rows(birth)}; the derivative of the root there is infinite", tuple(facts))


def _at_zero(birth: Birth, root: Operation | None) -> bool:
    if root is None:
        return any(meets(one, is_zero) for one in divisors(birth.operation))
    result = next(iter(root.outputs), None)
    if result is not None and (result.zero or result.min == 0):
        return True
    return root.op == "sqrt" and meets(argument(root), is_zero)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
anchor, positive, negative = (torch.randn(4, 5) for _ in range(3))
positive[1] = anchor[1]
for step in range(3):
    a, p, n = model(anchor), model(positive), model(negative)
    near = torch.sqrt(((a - p) ** 2).sum(1))  # culprit
    loss = torch.relu(near - (a - n).norm(dim=1) + 0.5).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("((a - p) ** 2).sum(1)", "((a - p) ** 2).sum(1) + 1e-8")
