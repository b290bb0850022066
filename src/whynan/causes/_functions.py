"""What the causes know of mathematical functions by their canonical names."""

from __future__ import annotations

import math

from whynan.causes._flow import operation
from whynan.causes._operands import argument, divisors, exponent, first, is_negative, is_zero, meets
from whynan.core.operands import POWERS
from whynan.core.records import Operand, Operation
from whynan.core.session import Birth, Session

# logarithm -> where its argument becomes 0
POLES = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "xlogy": 0.0, "special_xlog1py": -1.0, "special_entr": 0.0}
EXPONENTIALS = frozenset({"exp", "exp2", "expm1", "sinh", "cosh"})
# function -> where its domain begins and ends
DOMAINS = {
    "acos": (-1.0, 1.0), "asin": (-1.0, 1.0), "atanh": (-1.0, 1.0), "erfinv": (-1.0, 1.0), "special_erfinv": (-1.0, 1.0),
    "acosh": (1.0, math.inf), "logit": (0.0, 1.0), "special_logit": (0.0, 1.0), "lgamma": (0.0, math.inf),
    "digamma": (0.0, math.inf),
    "mvlgamma": (0.0, math.inf), "polygamma": (0.0, math.inf), "special_ndtri": (0.0, 1.0),
}  # fmt: skip
DIVISIONS = frozenset({"div", "reciprocal", "rsqrt", "addcdiv", "floor_divide", "remainder", "fmod"})
LINEAR = frozenset("addmm mm bmm baddbmm matmul mv addmv dot linear convolution conv1d conv2d conv3d einsum addbmm".split())
SPREADS = frozenset({"std", "var", "std_mean", "var_mean"})
SOFTMAXES = frozenset({"softmax", "log_softmax", "scaled_dot_product_attention"})
SELECTS = frozenset({"where", "masked_fill", "masked_scatter", "masked_select", "index", "nan_to_num"})


def subject(birth: Birth, session: Session) -> Operation | None:
    """The operation that the birth is about: the one that bore it, or that whose derivative did."""
    return operation(session, birth.operation.forward) if birth.direction == "backward" else birth.operation


def node_is(birth: Birth, *names: str) -> bool:
    """Whether the birth lies in the backward pass of one of these functions (`Sqrt`, `LinalgVectorNorm`)."""
    node = (birth.operation.node or "").rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return birth.direction == "backward" and node in names


def log_argument(log: Operation) -> Operand | None:
    return first(log, "other") if log.op in ("xlogy", "special_xlog1py") else first(log, "input") or first(log)


def below_bar(function: Operation | None) -> tuple[Operand, ...]:
    """What stands below a fraction bar: divisors, the argument of an inverse root, the base of a negative power."""
    if function is None:
        return ()
    power = function.op in POWERS and raises_to_negative(function)
    operand = argument(function) if function.op == "rsqrt" or power else None
    return (operand,) if operand is not None else divisors(function)


def raises_to_negative(power: Operation) -> bool:
    single = exponent(power)
    return single < 0 if single is not None else meets(power.operand("exponent"), is_negative)


def divides_by_zero(function: Operation | None) -> bool:
    return any(meets(operand, is_zero) for operand in below_bar(function))
