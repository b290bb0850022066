"""Constants that were not finite when they were made: of them no batch and no step is to blame."""

from __future__ import annotations

from whynan.torch.gate import finite
from whynan.torch.names import Names
from whynan.torch.registry import Registry


def never_finite(names: Names, registry: Registry, step: int) -> frozenset[str]:
    """Names of the modules' buffers and unregistered tensors that were not finite when first seen."""
    registry.buffers.refresh()
    never = set(map(id, registry.buffers.all)) - set(map(id, registry.buffers.watched))
    registered = [(name, b) for name, b in names.buffers if id(b) in never]
    held = [(name, t) for name, t in names.constants if step == 0 or t._version == 0]
    return frozenset(name for name, tensor in registered + held if not finite(tensor))
