import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


class Helper:
    def backward(self, loss):
        opt.zero_grad()
        loss.backward()


def step(helper, i, x, y):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    helper.backward(loss)
    opt.step()  #@step
    return loss


helper = Helper()
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    loss = step(helper, i, x, y)
    print(f"step {i} loss {loss.item():.5f}")
