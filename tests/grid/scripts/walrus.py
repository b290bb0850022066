import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
stream = iter(list(zip(X.split(8), Y.split(8))))
i = -1
while (batch := next(stream, None)) is not None:
    i += 1
    x, y = batch
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
