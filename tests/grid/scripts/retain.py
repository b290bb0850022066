import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    opt.zero_grad()
    small = 0.01 * out.pow(2).mean()
    small.backward(retain_graph=True)
    loss = LOSS  #@loss
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
