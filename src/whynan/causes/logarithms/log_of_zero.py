"""The logarithm of an exact zero.

What happens
    A logarithm is taken of a number that is exactly 0: a softmax or sigmoid that underflowed, a product of many
    probabilities, a difference of two equal numbers, a target that is 0.

Why it gives NaN or Inf
    log(0) is -inf. The mean over the batch is then infinite, its gradient 1/0 too, and the next 0 * inf is NaN.

How to recognise it
    The smallest argument is 0, not merely small. In float32 a softmax underflows to 0 once a logit lies 104 below the largest
    (17 in float16); a product of 400 probabilities of one half does so too.

How to fix it
    Compute the logarithm without the number: log_softmax, logsigmoid, logsumexp, cross_entropy or
    binary_cross_entropy_with_logits on the logits, a sum of logarithms in place of the logarithm of a product. Where the zero
    is genuine, give the argument a floor.

When this diagnosis is wrong
    If zeros are expected and selected away later, the gradient of the unused branch is at fault: see where-grad-trap.

References
    https://pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html
    Blanchard, Higham, Higham: Accurately computing the log-sum-exp and softmax functions (2021)
"""

from __future__ import annotations

from whynan.causes._flow import CARRIES_ZERO, producer, upstream
from whynan.causes._functions import POLES, log_argument, subject
from whynan.causes._operands import meets
from whynan.causes._words import at_rows, called, made_by, num, with_zeros
from whynan.core.catalogue import Advice, Cause, Edit, Verdict
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

BETWEEN = frozenset("mul neg add sub sum mean where masked_fill index gather clone _to_copy cat stack select".split())
MAKERS = frozenset("softmax sigmoid prod cumprod exp relu sub rsub div linalg_det bmm mm".split())
EXPONENTIALS = frozenset({"softmax", "sigmoid", "exp"})
THROUGH = CARRIES_ZERO | {"add", "sub", "rsub"}


def _has_logits(birth: Birth, session: Session) -> bool:
    """Whether an exponential, softmax or sigmoid made the argument."""
    log = _log(birth, session)
    return log is not None and any(op.op in EXPONENTIALS for op in upstream(session, log_argument(log), THROUGH))


def _is_product(birth: Birth, session: Session) -> bool:
    log = _log(birth, session)
    return log is not None and any(op.op in ("prod", "cumprod") for op in upstream(session, log_argument(log), THROUGH))


CAUSE = Cause(
    name="log-of-zero",
    title="the logarithm of an exact zero",
    level="operation",
    why="log(0) is -inf and its derivative 1/0 is infinite; a mean over the batch carries it into the loss and every gradient.",
    doubt="Wrong if the zeros are meant and masked out afterwards: then the mask has to act on the argument.",
    remedies=(
        Advice(
            "use-log-softmax",
            "Take log_softmax, logsigmoid or logsumexp of the logits instead of the logarithm of their softmax, sigmoid or exponentials.",
            (
                Edit("whole", ".log_softmax({})", calls=("log",), inner=("softmax",)),
                Edit("whole", "torch.nn.functional.logsigmoid({})", calls=("log",), inner=("sigmoid",)),
                Edit("whole", "{}", calls=("log",), inner=("exp",)),
            ),
            when=_has_logits,
        ),
        Advice("sum-logarithms", "Sum the logarithms of the factors instead of taking the logarithm of their product.", when=_is_product),
        Advice(
            "floor-log-argument",
            "Give the argument of the logarithm a positive floor that its format can hold.",
            (Edit("argument", "{}.clamp_min(1e-6)", calls=("log", "log2", "log10")),),
        ),
    ),
)


def probe(birth: Birth, session: Session) -> Verdict | None:
    log = _log(birth, session)
    if log is None:
        return None
    operand, pole = log_argument(log), POLES[log.op]
    if operand is None or not meets(operand, lambda value: value == pole):
        return None
    confidence = 0.75 if birth.direction == "backward" else 0.93 if log is birth.operation else 0.94
    return Verdict(confidence, _summary(birth, log, pole), _evidence(birth, session, operand), None if log is birth.operation else log.site)


def _log(birth: Birth, session: Session) -> Operation | None:
    log = _log_before(birth, session) if birth.from_infinity else subject(birth, session)
    return log if log is not None and log.op in POLES else None


def _log_before(birth: Birth, session: Session) -> Operation | None:
    """The logarithm whose -inf became NaN at the birth."""
    infinite = [operand for operand in birth.operation.inputs if operand.stats.neginf or operand.stats.posinf]
    found = (op for operand in infinite for op in upstream(session, operand, BETWEEN))
    return next((op for op in found if op.op in POLES and any(out.neginf or out.posinf for out in op.outputs)), None)


def _summary(birth: Birth, log: Operation, pole: float) -> str:
    given = f"{called(birth, log)} was given {num(pole)}{at_rows(birth)}"
    if birth.direction == "backward":
        return f"{given}; its derivative there is 1/0"
    return f"{given}; {log.op}({num(pole)}) is -inf"


def _evidence(birth: Birth, session: Session, operand: Operand) -> tuple[str, ...]:
    facts = with_zeros(operand, "element")
    made = producer(session, operand)
    maker = next((op for op in upstream(session, operand, CARRIES_ZERO) if op.op in MAKERS), None) if made else None
    if maker is not None:
        facts.append(f"the zeros come out of {made_by(maker, birth)}")
    elif operand.from_batch and operand.source == "input":
        facts.append("the zeros are in the batch itself")
    return tuple(facts)


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(5, 3) * 200, torch.randint(0, 4, (5,))
for step in range(3):
    p = torch.softmax(model(x), 1)
    loss = -torch.log(p)[range(5), y].mean()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.log(p)", "torch.log_softmax(model(x), 1)")
