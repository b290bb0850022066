import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def steps():
    for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        yield i, loss.item()


for i, value in steps():
    print(f"step {i} loss {value:.5f}")
