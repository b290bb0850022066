import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
batches = list(zip(X.split(8), Y.split(8)))


def fit(i):
    if i == len(batches):
        return
    x, y = batches[i]
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    fit(i + 1)


fit(0)
