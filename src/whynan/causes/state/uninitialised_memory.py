"""A tensor that was created but never filled.

What happens
    A parameter, buffer or intermediate tensor is made with torch.empty (or by a layer on the meta device that was only
    materialised) and used before anything was written into it.

Why it gives NaN or Inf
    Such memory holds whatever was there before: often 0 or a small number, sometimes 1e30 or NaN. The run therefore fails on
    some machines, or on some days, and not on others.

How to recognise it
    A parameter is not finite, or absurdly large, before the first update was made.

How to fix it
    Initialise it: nn.init.xavier_uniform_(w) and its like, torch.zeros, reset_parameters() after to_empty(). With
    torch.use_deterministic_algorithms(True) torch fills such memory with NaN, which finds all places at once.

When this diagnosis is wrong
    If a checkpoint was loaded, the numbers may come from it.

References
    https://pytorch.org/docs/stable/generated/torch.empty.html
    https://pytorch.org/docs/stable/deterministic.html#torch.utils.deterministic.fill_uninitialized_memory
"""

from __future__ import annotations

from whynan.causes._operands import carried
from whynan.causes._words import called, extent, num, shape
from whynan.core.catalogue import Advice, Cause, Verdict
from whynan.core.records import Operand
from whynan.core.session import Birth, Session

CAUSE = Cause(
    name="uninitialised-memory",
    title="a tensor that was created but never filled",
    level="run",
    why="Memory that nothing was written into holds whatever was there before, NaN and huge numbers included.",
    doubt="Wrong if these numbers come from a checkpoint.",
    remedies=(Advice("initialise-parameter", "Initialise it where it is created, for example with nn.init.xavier_uniform_(w)."),),
)
EMPTY = frozenset({"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"})
ABSURD = 1e15  # no initialisation draws such a number


def probe(birth: Birth, session: Session) -> Verdict | None:
    if birth.op == "param":
        return _parameter(birth, session)
    if birth.operation.op in EMPTY and not birth.operation.finite:
        facts = (f"{called(birth)} made {shape(birth.operation.outputs[0])}", "nothing was written into it before it was read")
        return Verdict(0.9, f"{called(birth)} made a tensor that was read before it was filled", facts)
    if birth.op in ("input", "buffer") or session.step:
        return None
    absurd = next((one for one in birth.operation.inputs if one.source == "parameter" and (one.stats.absmax or 0.0) > ABSURD), None)
    if absurd is None:
        return None
    summary = f"{_named(absurd)} holds numbers up to {num(absurd.stats.absmax)} before the first update"
    return Verdict(0.8, summary, (extent(absurd), "no update has been made yet"), site=session.made.get(absurd.name or ""))


def _parameter(birth: Birth, session: Session) -> Verdict | None:
    operand = carried(birth)
    if operand is None:
        return None
    stats = operand.stats
    facts = [f"{stats.nan} NaN and {stats.inf} infinite elements of {stats.numel} in {_named(operand)} ({shape(stats)})"]
    facts.append("no update has been made yet" if not session.step else f"{session.step} steps have been made")
    summary = f"{_named(operand)} was not finite" + (" before the first update" if not session.step else " when the step began")
    return Verdict(0.95 if not session.step else 0.5, summary, tuple(facts), site=session.made.get(operand.name or ""))


def _named(operand: Operand) -> str:
    return f"the parameter {operand.name}" if operand.name else "a parameter"


EXAMPLE = """
import torch
from torch import nn

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)  # fills memory that torch.empty returns with NaN
model = nn.Linear(4, 4)
model.query = nn.Parameter(torch.empty(4, 3))  # culprit
torch.use_deterministic_algorithms(False)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
for step in range(3):
    loss = nn.functional.cross_entropy(torch.relu(model(x)) @ model.query, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4g}")
"""
TWIN = EXAMPLE.replace("torch.empty(4, 3)", "torch.randn(4, 3) / 2")
