import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def task_loss(fast, x, y):
    out = functional_call(model, fast, (x,))
    return LOSS  #@loss


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    loss = 0.0
    for xs, ys in zip(x.split(4), y.split(4)):
        fast = dict(model.named_parameters())
        for _ in range(2):
            inner = task_loss(fast, xs, ys)
            grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: p - 0.05 * g for (name, p), g in zip(fast.items(), grads)}
        loss = loss + task_loss(fast, xs, ys)
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
