import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def endless(batches):
    while True:
        yield from batches


stream = endless(list(zip(X.split(8), Y.split(8))))
i = 0
while i < 6:
    x, y = next(stream)
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    i += 1
