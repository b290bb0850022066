import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def optimize(loss):
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    optimize(loss)
    print(f"step {i} loss {loss.item():.5f}")
