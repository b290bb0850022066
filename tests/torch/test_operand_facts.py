"""What the record says of single operands beside their statistics."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from whynan.torch.measure import label_share
from whynan.torch.trace import Trace


def test_prediction_is_told_from_the_same_prediction_detached() -> None:
    model, x = nn.Linear(2, 1), torch.ones(3, 2)
    with Trace() as trace:
        prediction = model(x)
        nn.functional.mse_loss(prediction, 2 * prediction.detach())
    loss = next(op for op in trace.operations if op.op == "mse_loss")
    assert [operand.graded for operand in loss.inputs] == [True, False]


def test_labels_come_with_the_share_of_the_commonest() -> None:
    with Trace() as trace:
        nn.functional.cross_entropy(torch.zeros(4, 3), torch.tensor([2, 2, 2, 0]))
    loss = next(op for op in trace.operations if op.op == "nll_loss")
    assert {operand.role: operand.share for operand in loss.inputs} == {"log_probabilities": None, "target": 0.75}


@pytest.mark.parametrize(
    ("labels", "share"),
    [
        (torch.tensor([1, 1, -100, 0]), 2 / 3),
        (torch.tensor([True, False]), 0.5),
        (torch.tensor([-100, -100]), None),
        (torch.tensor([], dtype=torch.long), None),
        (torch.tensor([1.0, 1.0]), None),
        (torch.zeros(3, dtype=torch.uint16), 1.0),
    ],
)
def test_share_leaves_out_what_is_ignored(labels, share) -> None:
    assert label_share(labels) == share
