"""Equal singular values or eigenvalues in a backward pass.

What happens
    Singular vectors or eigenvectors are differentiated where two singular values or eigenvalues are equal, or a singular
    value is 0: the identity, an isotropic covariance, a symmetric shape, a matrix of low rank.

Why it gives NaN or Inf
    The derivative of the vectors divides by the differences of the values (and by the values themselves), which are 0. Where
    values coincide the vectors are not unique, so there is no derivative to find.

How to recognise it
    The birth lies in the backward pass of svd or eigh, while the forward pass is finite.

How to fix it
    Use another way to the result that needs no vectors (a Gram-Schmidt or polar decomposition, Newton-Schulz iteration, a 6D
    rotation representation), use the values alone, or break the tie with a perturbation that differs from row to row.

When this diagnosis is wrong
    If only the values are used (svdvals, eigvalsh), their derivative is finite and the NaN comes from elsewhere.

References
    https://pytorch.org/docs/stable/generated/torch.linalg.svd.html (warning on its gradient)
"""

from __future__ import annotations

from whynan.causes._functions import node_is, subject
from whynan.causes._words import at_rows, called, num, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation, TensorStats
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="svd-degenerate",
    title="equal singular values or eigenvalues in a backward pass",
    level="operation",
    why="The derivative of singular vectors and eigenvectors divides by the differences of their values, 0 where two coincide.",
    doubt="Wrong if only the singular values or eigenvalues are used.",
    remedies=(
        Advice(
            "avoid-svd-gradient",
            "Use a decomposition whose derivative has no such differences (polar, Gram-Schmidt, Newton-Schulz).",
        ),
        Advice("perturb-matrix", "Break the tie: add a small diagonal whose elements differ from each other."),
    ),
)
DECOMPOSITIONS = frozenset({"linalg_svd", "svd", "linalg_eigh", "linalg_eig", "symeig"})
NODES = ("LinalgSvd", "Svd", "LinalgEigh", "LinalgEig", "Symeig")


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    known = function is not None and function.op in DECOMPOSITIONS
    if birth.direction != "backward" or not (known or node_is(birth, *NODES)):
        return None
    values = _values(function) if known else None
    facts = [f"gradient: {outcome(birth.operation)}"]
    if values is not None:
        facts.insert(0, f"the {_name(function)} run from {num(values.min)} to {num(values.max)}")
    if any(one.role == "divisor" and one.stats.zero for one in birth.operation.inputs):
        facts.append("a difference of two of them is exactly 0")
    name = called(birth, function) if function is not None else "the decomposition"
    return Verdict(
        0.95,
        f"two {_name(function)} of {name} coincide{at_rows(birth)}, and its derivative divides by their difference",
        tuple(facts),
    )


def _values(function: Operation | None) -> TensorStats | None:
    """The output of lowest rank: singular values or eigenvalues."""
    outputs = [out for out in function.outputs if out.dtype.startswith(("float", "bfloat")) and out.numel] if function else []
    return min(outputs, key=lambda out: len(out.shape), default=None) if len(outputs) > 1 else None


def _name(function: Operation | None) -> str:
    return "eigenvalues" if function is not None and "eig" in function.op else "singular values"


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(2, 9)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x, target = torch.randn(3, 2), torch.linalg.qr(torch.randn(3, 3, 3))[0]
x[1] = 0.0
with torch.no_grad():
    model.bias.copy_(torch.eye(3).flatten())
for step in range(1):
    u, _, vh = torch.linalg.svd(model(x).view(-1, 3, 3))  # culprit
    loss = (u @ vh - target).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("view(-1, 3, 3)", "view(-1, 3, 3) + torch.diag(torch.tensor([0.1, 0.2, 0.3]))")
