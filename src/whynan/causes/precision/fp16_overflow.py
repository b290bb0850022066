"""A value beyond the range of float16.

What happens
    An activation, score, squared error, sum or statistic exceeds 65504 in half precision: a model trained in bfloat16 and run
    in float16, a query-key product without its scaling, a loss summed under autocast, a squared error above 256.

Why it gives NaN or Inf
    float16 has five bits of exponent; what exceeds 65504 is inf. A normalisation or softmax behind it makes NaN of it.

How to recognise it
    The result is float16 and infinite, all operands are finite, and the same operation in float64 is finite.

How to fix it
    Run this part in bfloat16 or float32 (the loss and reductions before all), scale before the product instead of after it,
    and take a mean instead of a sum.

When this diagnosis is wrong
    If the value grew over many steps, the rate or the initialisation is at fault, and a wider format only delays the end.

References
    https://pytorch.org/docs/stable/amp.html
    https://github.com/huggingface/transformers/issues/5651
"""

from __future__ import annotations

from whynan.causes._functions import EXPONENTIALS, LINEAR
from whynan.causes._operands import output_type
from whynan.causes._words import at_rows, called, extent, outcome
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.session import Birth, Session

PRODUCTS = LINEAR | frozenset("mul sum pow square prod cumsum add linalg_vector_norm norm scaled_dot_product_attention".split())
CAUSE = Cause(
    name="fp16-overflow",
    title="a value beyond the range of float16",
    level="operation",
    why="float16 holds at most 65504; what exceeds it is inf, and a normalisation or softmax behind it makes NaN of it.",
    doubt="Wrong if the value grew over many steps: then a wider format only delays the end.",
    remedies=(
        Advice("use-bfloat16", "Use bfloat16 instead of float16: the same speed with the range of float32."),
        Advice("compute-in-float32", "Compute this operation in float32 (x.float(), or autocast with enabled=False around it)."),
        Advice(
            "scale-before-product",
            "Scale before the product or sum instead of after it; take a mean instead of a sum.",
            when=lambda birth, session: birth.operation.op in PRODUCTS,
        ),
    ),
)
SINGULAR = frozenset("log log2 log10 log1p reciprocal atanh lgamma digamma erfinv logit xlogy".split())


def probe(birth: Birth, session: Session) -> Verdict | None:
    operation = birth.operation
    if birth.direction == "backward" or birth.op in ("input", "param", "buffer") or operation.op in SINGULAR:
        return None
    infinite = any(out.inf and out.dtype == "float16" for out in operation.outputs)
    nan_sum = any(out.nan and out.dtype == "float16" for out in operation.outputs) and operation.float64_finite
    if not (infinite or nan_sum) or any(one.stats.nan or one.stats.inf for one in operation.inputs):
        return None
    confidence = 0.9 if operation.float64_finite else 0.4 if operation.float64_finite is False else 0.75
    if operation.op in EXPONENTIALS or operation.op in ("div", "rsqrt", "pow"):
        confidence -= 0.25
    facts = [extent(one) for one in operation.inputs[:3]]
    facts.append(f"result: {outcome(operation)}; {output_type(operation)} holds at most 65504")
    if operation.float64_finite:
        facts.append("the same operation in float64 is finite")
    return Verdict(confidence, f"{called(birth)} exceeded 65504, the largest float16{at_rows(birth)}", tuple(facts))


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(16, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
x, y = torch.randn(32, 16), torch.randn(32, 64) * 8
for step in range(3):
    error = model(x).half() - y.half()
    loss = (error * error).sum()  # culprit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("(error * error)", "(error.float() * error.float())")
