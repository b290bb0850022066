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
        yield i
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")


for i in steps():
    print("consumer saw", i)
