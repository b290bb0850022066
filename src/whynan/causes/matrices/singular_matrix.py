"""The inverse or log-determinant of a singular matrix.

What happens
    A matrix without an inverse is inverted, solved with, or its log-determinant taken: a kernel matrix with two equal points,
    a covariance of fewer samples than dimensions, a triangular factor with a 0 on its diagonal.

Why it gives NaN or Inf
    Its determinant is 0, so the log-determinant is -inf and the inverse 1 / 0. The backward pass multiplies by the inverse,
    which does not exist either.

How to recognise it
    The result of slogdet, det, inv or a solver is infinite, or the determinant is exactly 0 before a logarithm.

How to fix it
    Add a jitter to the diagonal (1e-6 times its mean), compute in float64, remove duplicate rows, or use a factorisation that
    yields the rank.

When this diagnosis is wrong
    If the matrix is far from singular but huge or tiny, its determinant over- or underflows: use slogdet instead of det.

References
    https://pytorch.org/docs/stable/generated/torch.linalg.slogdet.html
"""

from __future__ import annotations

from whynan.causes._conditions import narrower_than_double
from whynan.causes._flow import producer
from whynan.causes._functions import POLES, log_argument, subject
from whynan.causes._operands import is_zero, meets
from whynan.causes._words import at_rows, called, extent, num, outcome, zeros
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operation
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="singular-matrix",
    title="the inverse or log-determinant of a singular matrix",
    level="operation",
    why="The determinant is 0, so its logarithm is -inf and the inverse does not exist.",
    doubt="Wrong if the matrix is regular and its determinant only over- or underflows: then slogdet is enough.",
    remedies=(
        Advice("add-jitter", "Add a jitter to the diagonal: matrix + 1e-6 * torch.eye(n)."),
        Advice("use-float64", "Compute this part in float64.", when=narrower_than_double),
    ),
)
DETERMINANTS = frozenset({"linalg_det", "det"})
SOLVERS = frozenset(
    "linalg_slogdet slogdet logdet linalg_inv inverse linalg_solve linalg_solve_triangular triangular_solve "
    "linalg_lu_solve linalg_cholesky cholesky_inverse cholesky_solve linalg_lu_factor_ex linalg_lstsq linalg_pinv "
    "linalg_ldl_solve linalg_qr".split()
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    function = subject(birth, session)
    if function is None:
        return None
    if function.op in POLES:
        made = producer(session, log_argument(function))
        if made is not None and made.op in DETERMINANTS and meets(log_argument(function), is_zero):
            return _verdict(birth, made, 0.95)
        return None
    if function.op in SOLVERS or (function.op in DETERMINANTS and birth.direction == "backward"):
        return _verdict(birth, function, 0.95 if birth.direction == "forward" else 0.85)
    return None


def _verdict(birth: Birth, function: Operation, confidence: float) -> Verdict:
    facts = [extent(one) for one in function.inputs[:1]]
    square = [out for out in function.outputs if len(out.shape) >= 2]
    if function.op == "linalg_slogdet" and square and square[0].zero:
        facts.append(f"{zeros(square[0], 'element')} in its triangular factors; smallest other magnitude {num(square[0].absmin)}")
    facts.append(f"{'gradient' if birth.direction == 'backward' else 'result'}: {outcome(birth.operation)}")
    return Verdict(confidence, f"{called(birth)} was given a singular matrix{at_rows(birth)}", tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.linspace(0, 20, 6)[:, None]
x[3] = x[2]
for step in range(3):
    z = model(x)
    kernel = torch.exp(-0.5 * (z - z.t()) ** 2 * 100)
    loss = torch.logdet(kernel)  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.logdet(kernel)", "torch.logdet(kernel + 1e-3 * torch.eye(6))")
