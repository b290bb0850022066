import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def make_step(model, opt):
    def step(i, x, y):
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        return loss

    return step


step = make_step(model, opt)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    loss = step(i, x, y)
    print(f"step {i} loss {loss.item():.5f}")
