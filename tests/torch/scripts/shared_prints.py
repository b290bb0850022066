"""What a run ends with, printed by the script itself: every bit of it counts."""
import hashlib
import random

import numpy as np
import torch

random.seed(3)  # not left to chance where a script does not seed


def digest(*values):
    hashed = hashlib.sha256()
    for value in values:
        add(hashed, value)
    return hashed.hexdigest()[:16]


def add(hashed, value):
    if isinstance(value, torch.Tensor):
        hashed.update(f"{value.dtype}{tuple(value.shape)}{value._version}".encode())
        if value.is_sparse:
            value = value.coalesce()
            value = torch.cat([value.indices().flatten().float(), value.values().flatten().float()])
        flat = value.detach().flatten().clone()
        hashed.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    elif isinstance(value, dict):
        for key, part in value.items():
            add(hashed, key if isinstance(key, (str, int)) else "?")
            add(hashed, part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            add(hashed, part)
    else:
        hashed.update(repr(value).encode())


def report(modules=(), optimizers=(), others=()):
    for module in modules:
        print("weights", digest(module.state_dict()), "gradients", digest([p.grad for p in module.parameters()]))
    for optimizer in optimizers:
        print("optimizer", digest(optimizer.state_dict()["state"], [sorted(g) for g in optimizer.state_dict()["param_groups"]]))
    print("others", digest(list(others)))
    print("torch", digest(torch.get_rng_state()), "numpy", digest(repr(np.random.get_state())), "python", digest(random.getstate()))
