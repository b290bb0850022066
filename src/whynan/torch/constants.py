"""Constants that were not finite when they were made: of them no batch and no step is to blame."""

from __future__ import annotations

from whynan.torch.gate import finite
from whynan.torch.names import Names
from whynan.torch.registry import Registry


def never_finite(names: Names, registry: Registry, step: int) -> frozenset[str]:
    """Names of the modules' buffers and unregistered tensors that were not finite when first seen."""
    buffers = registry.buffers()
    once_finite = {id(buffer) for _, _, buffer in buffers}
    watched = {id(buffer) for module in list(registry.modules) for buffer in module._buffers.values()}
    registered = [(name, b) for name, b in names.buffers if id(b) in watched - once_finite]
    held = [(name, t) for name, t in names.constants if step == 0 or t._version == 0]
    return frozenset(name for name, tensor in registered + held if not finite(tensor))
