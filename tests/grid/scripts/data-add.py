import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data.add_(UPDATE(p.grad), alpha=-0.05)  #@own
    print(f"step {i} loss {loss.item():.5f}")
