import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def fit(size):
    if size > 8:
        raise RuntimeError("out of memory")
    for i, (x, y) in enumerate(zip(X.split(size), Y.split(size))):
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")


size = 32
while True:
    try:
        fit(size)
        break
    except RuntimeError as error:
        print(error, size)
        size //= 2
    finally:
        print("tried")
