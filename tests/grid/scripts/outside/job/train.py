import torch
from torch import nn
import torch.nn.functional as F
from losses.regression import criterion

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    loss = criterion(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
