import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
batches = list(zip(X.split(8), Y.split(8)))


def fit(low, high):
    if high - low > 1:
        middle = (low + high) // 2
        fit(low, middle)
        fit(middle, high)
        return
    x, y = batches[low]
    RATE(opt, low)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {low} loss {loss.item():.5f}")


fit(0, 6)
