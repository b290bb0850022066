import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def train_step(i, x, y):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    return loss.item()


losses = [train_step(i, x, y) for i, (x, y) in enumerate(zip(X.split(8), Y.split(8)))]
print("mean", sum(losses) / len(losses))
