"""Whether an exception of the script may come from a non-finite value: cheap signs, before a replay is tried."""

from __future__ import annotations

import re
from types import TracebackType

import torch

from whynan.core.user_code import is_user_file
from whynan.torch.gate import finite

MESSAGE = re.compile(
    r"non-?finite|\bnan\b|\binf\b|infinite|between 0 and 1|expected parameter|satisfy the constraint|probability tensor contains"
    r"|-9223372036854775808|-2147483648|failed to converge|ill-conditioned|invalid multinomial|all elements of target should be",
    re.IGNORECASE,
)
TYPES = (RuntimeError, ValueError, IndexError, ArithmeticError, AssertionError)
LOOKED_AT = 64


def may_be_non_finite(error: BaseException | None, trace: TracebackType | None) -> bool:
    """True for an exception whose message speaks of it, or that installed code raised where a tensor is not finite."""
    if not isinstance(error, TYPES) or isinstance(error, (NotImplementedError, RecursionError)):
        return False
    if MESSAGE.search(str(error)):
        return True
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or is_user_file(trace.tb_frame.f_code.co_filename):
        return False  # raised by the script itself, for a reason of its own
    values = list(trace.tb_frame.f_locals.values())[:LOOKED_AT]
    return any(isinstance(v, torch.Tensor) and not finite(v) for v in values)
