"""The gradients of the terms of a loss: how large each is, and which way it pulls the parameters that it shares with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.autograd.graph import GradientEdge

Gradients = Sequence[torch.Tensor | None]


@dataclass(frozen=True, slots=True)
class ComponentGradient:
    """`norm`: over all parameters; `shared`: over those that another component reaches as well; `cosine`: there, between this gradient
    and the sum of all others (None where one of the two is 0 or not finite, or nothing is shared)."""

    norm: float
    shared: float
    cosine: float | None


def component_gradients(
    components: Mapping[str, torch.Tensor | GradientEdge], parameters: Sequence[torch.Tensor], weights: Mapping[str, float] | None = None
) -> dict[str, ComponentGradient]:
    """The gradient that each component gives `parameters`.

    `components`: scalars that need a gradient, shape () or (1,), any floating dtype, or their edges in the autograd graph. `weights`: what
    each is multiplied by in the loss, by default 1. `parameters`: leaves, any shapes and floating dtypes. The graph is kept; no `.grad` is
    touched. Norms are taken in float64. Raises ValueError where a name in `weights` is no component.

    Source: Yu et al., Gradient Surgery for Multi-Task Learning (2020), for the cosine; Chen et al., GradNorm (2018), for the norms.
    """
    weights = weights or {}
    if unknown := sorted(set(weights) - set(components)):
        raise ValueError(f"weights: every name must be one of the components {sorted(components)}, found {unknown}")
    gradients = {name: _gradients(one, parameters, weights.get(name, 1.0)) for name, one in components.items()}
    return {name: _compared(name, gradients) for name in components}


def _gradients(component: torch.Tensor | GradientEdge, parameters: Sequence[torch.Tensor], weight: float) -> Gradients:
    shape, dtype = (component.shape, component.dtype) if isinstance(component, torch.Tensor) else ((), _dtype(component))
    given = torch.full(shape, weight, dtype=dtype, device=next((p.device for p in parameters), None))
    return torch.autograd.grad(component, list(parameters), given, retain_graph=True, allow_unused=True)


def _dtype(edge: GradientEdge) -> torch.dtype:
    metadata = getattr(edge.node, "_input_metadata", None)
    return metadata[edge.output_nr].dtype if metadata else torch.get_default_dtype()


def _compared(name: str, gradients: Mapping[str, Gradients]) -> ComponentGradient:
    own = gradients[name]
    others = [[one for one in column if one is not None] for column in zip(*(g for n, g in gradients.items() if n != name), strict=True)]
    shared = [(a, b) for a, b in zip(own, others, strict=True) if a is not None and b] if others else []
    mine = sum(_dot(a, a) for a, _ in shared) ** 0.5
    rest = [(a, torch.stack([one.double() for one in b]).sum(0)) for a, b in shared]
    theirs = sum(_dot(b, b) for _, b in rest) ** 0.5
    product = sum(_dot(a, b) for a, b in rest)
    cosine = product / (mine * theirs) if 0 < mine * theirs < float("inf") else None
    return ComponentGradient(sum(_dot(a, a) for a in own if a is not None) ** 0.5, mine, cosine)


def _dot(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one.detach().double() * other.detach().double()).sum())
