"""What goes bad first in a script under plain torch, written to a file once: the check of a generated script's own claim.

Looks at a loss when its backward begins, and at gradients and parameters around each optimizer's step; notes an exception by its type.
"""

import atexit
import json
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def finite(tensors):
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors if tensor is not None and tensor.is_floating_point())


class Probe:
    def __init__(self, path):
        self.path, self.steps, self.event = path, 0, None

    def note(self, what):
        if self.event is None:
            self.event = {"what": what, "step": self.steps}

    def backward(self, loss):
        if not finite([loss]):
            self.note("loss")

    def before(self, optimizer, *_):
        if not finite(p.grad for p in parameters(optimizer)):
            self.note("gradient")

    def after(self, optimizer, *_):
        self.steps += 1
        if not finite(parameters(optimizer)):
            self.note("parameter")

    def write(self):
        with open(self.path, "w") as file:
            json.dump({"event": self.event, "steps": self.steps}, file)


def parameters(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def install(path):
    probe = Probe(path)
    register_optimizer_step_pre_hook(probe.before)
    register_optimizer_step_post_hook(probe.after)
    original, hook = torch.Tensor.backward, sys.excepthook

    def backward(tensor, *args, **kwargs):
        probe.backward(tensor.detach())
        return original(tensor, *args, **kwargs)

    def raised(kind, value, trace):
        probe.note("exception " + kind.__name__)
        hook(kind, value, trace)

    torch.Tensor.backward, sys.excepthook = backward, raised
    atexit.register(probe.write)
