import numpy as np
import torch
from shared_prints import report

generator = torch.Generator().manual_seed(5)
numbers = np.random.default_rng(6)
w = torch.randn(3, 3, generator=generator).requires_grad_()
b = torch.zeros(3, requires_grad=True)
velocity = [torch.zeros_like(p) for p in (w, b)]
hidden = torch.zeros(4, 3)
for step in range(10):
    x = torch.from_numpy(numbers.standard_normal((4, 3)).astype(np.float32))
    hidden = torch.tanh(x @ w + hidden.detach() + b)
    loss = (hidden - x).square().mean()
    loss.backward()
    with torch.no_grad():
        for p, v in zip((w, b), velocity):
            v.mul_(0.9).add_(p.grad)
            p -= 0.1 * v
            p.grad = None
    print(step, loss.item().hex(), w._version)
report(others=[w, b, velocity, hidden, generator.get_state(), numbers.bit_generator.state["state"]["state"]])
