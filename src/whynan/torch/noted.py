"""What is noted on entry of an attempt, so that the same step can be run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from whynan.torch.buffers import Buffers
from whynan.torch.copies import OptimizerCopy, TensorCopy


class Noted:
    """`policy`: what is known of the attempt's place; `sequence`: autograd's next number on entry; `steps_before`: steps done by then;
    `counted`: this attempt is one of them."""

    scales: Sequence[tuple[Any, torch.Tensor]] = ()
    buffers: TensorCopy | None = None
    counted: bool = False
    backwards: int = 0
    stepped: bool = False
    written: tuple[OptimizerCopy, ...] = ()
    leaves: TensorCopy | None = None

    def __init__(
        self, policy: Any, sequence: int, steps_before: int, random: torch.Tensor, devices: Sequence[tuple[torch.Generator, torch.Tensor]]
    ) -> None:
        self.policy, self.sequence, self.steps_before = policy, sequence, steps_before
        self.random, self.devices = random, devices

    def take_buffers(self, buffers: Buffers, into: TensorCopy) -> None:
        """As they are on entry."""
        buffers.refresh()
        into.take(buffers.all)
        self.buffers = into


def device_generators() -> Sequence[tuple[torch.Generator, torch.Tensor]]:
    """The states of accelerator generators, without waiting for the device: a seed and an offset each."""
    return [(g, g.get_state()) for g in torch.cuda.default_generators]


def put_back_random(noted: Noted) -> None:
    torch.set_rng_state(noted.random)
    for generator, state in noted.devices:
        generator.set_state(state)
