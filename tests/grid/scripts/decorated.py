import functools
import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def counted(function):
    function.calls = 0

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        function.calls += 1
        return function(*args, **kwargs)

    return wrapper


@counted
@torch.enable_grad()
def train_step(i, x, y):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    return loss


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    loss = train_step(i, x, y)
    print(f"step {i} loss {loss.item():.5f}")
print("calls", train_step.__wrapped__.calls if hasattr(train_step.__wrapped__, "calls") else "?")
