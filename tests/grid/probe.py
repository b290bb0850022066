"""What goes bad first in a script under plain Python, seen by plain torch alone: the oracle that the expectations are held against.

Writes {"what": loss | gradient | parameter, "names": [...], "printed": number of `step` lines so far} once.
"""

import builtins
import gc
import json
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

UNTRAINED = ("x", "out", "?")  # leaves that no script of the grid trains: its batch, its cached features, a checkpoint's own


class Probe:
    def __init__(self, path):
        self.path, self.printed, self.done = path, 0, False

    def event(self, what, tensors):
        if not self.done:
            self.done = True
            event = {"what": what, "names": sorted(map(self.name, tensors)), "printed": self.printed}
            with open(self.path, "w") as file:
                json.dump(event, file)

    def name(self, tensor):
        for module in roots():
            for name, parameter in module.named_parameters():
                if parameter is tensor:
                    return name
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename == "<probe>" or "site-packages" in frame.f_code.co_filename:
                frame = frame.f_back
                continue
            for scope in (frame.f_locals, frame.f_globals):
                for name, value in list(scope.items()):
                    if value is tensor:
                        return name
                    if isinstance(value, dict):
                        for key, part in value.items():
                            if part is tensor:
                                return f"{name}['{key}']"
            frame = frame.f_back
        return "?"


def roots():
    modules = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module) and "_modules" in o.__dict__]
    children = {id(c) for m in modules for c in m.children()}
    return [m for m in modules if id(m) not in children]


def leaves():
    return [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter) and o.requires_grad and o.is_leaf]


def bad(tensor):
    if tensor is None:
        return False
    tensor = tensor.detach()
    tensor = tensor.coalesce().values() if tensor.is_sparse else tensor
    return not bool(torch.isfinite(tensor).all())


def tracing():
    """Inside a compiler that runs the script with tensors that hold no numbers."""
    return torch._C._len_torch_dispatch_stack() > 0


def install(path):
    probe = Probe(path)
    backward, grad, say = torch.autograd.backward, torch.autograd.grad, builtins.print

    def before(tensors):
        if found := [p for p in leaves() if bad(p) and (type(p) is torch.nn.Parameter or owned(p))]:
            probe.event("parameter", found)
        if any(bad(t) for t in ([tensors] if isinstance(tensors, torch.Tensor) else tensors)):
            probe.event("loss", [])

    def owned(leaf):
        """A leaf that is trained without being a Parameter: it has a name of its own, other than the batch's."""
        return probe.name(leaf) not in UNTRAINED

    def watched_backward(tensors, *args, **kwargs):
        if tracing():
            return backward(tensors, *args, **kwargs)
        before(tensors)
        result = backward(tensors, *args, **kwargs)
        if found := [p for p in leaves() if bad(p.grad) and probe.name(p) not in UNTRAINED]:
            probe.event("gradient", found)
        return result

    def watched_grad(outputs, inputs, *args, **kwargs):
        if tracing():
            return grad(outputs, inputs, *args, **kwargs)
        before(outputs)
        results = grad(outputs, inputs, *args, **kwargs)
        inputs = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
        if found := [i for i, r in zip(inputs, results) if bad(r)]:
            probe.event("gradient", found)
        return results

    def counted_print(*args, **kwargs):
        probe.printed += bool(args) and str(args[0]).startswith("step ")
        say(*args, **kwargs)

    def after_step(optimizer, args, kwargs):
        if found := [p for group in optimizer.param_groups for p in group["params"] if bad(p)]:
            probe.event("parameter", found)

    torch.autograd.backward, torch.autograd.grad, builtins.print = watched_backward, watched_grad, counted_print
    register_optimizer_step_post_hook(after_step)
