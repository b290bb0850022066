import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)

    def closure():
        opt.zero_grad()
        out = model(x)
        loss = LOSS  #@loss
        loss.backward()
        return loss

    loss = opt.step(closure)  #@step
    print(f"step {i} loss {loss.item():.5f}")
