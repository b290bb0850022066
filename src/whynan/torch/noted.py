"""What is noted on entry of an attempt, so that the same step can be run again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from whynan.torch.copies import OptimizerCopy, TensorCopy


@dataclass(slots=True)
class Noted:
    """`sequence`: autograd's next number on entry; `steps_before`: steps done by then; `counted`: this attempt is one of them."""

    sequence: int
    steps_before: int
    random: torch.Tensor
    devices: list[tuple[torch.Generator, torch.Tensor]]
    scales: list[tuple[Any, torch.Tensor]]
    buffers: TensorCopy | None = None
    counted: bool = False
    backwards: int = 0
    stepped: bool = False
    written: list[OptimizerCopy] = field(default_factory=list)
    leaves: TensorCopy | None = None
    versions: dict[int, int] = field(default_factory=dict)


def device_generators() -> list[tuple[torch.Generator, torch.Tensor]]:
    """The states of accelerator generators, without waiting for the device: a seed and an offset each."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return []
    return [(g, g.get_state()) for g in torch.cuda.default_generators]


def put_back_random(noted: Noted) -> None:
    torch.set_rng_state(noted.random)
    for generator, state in noted.devices:
        generator.set_state(state)
