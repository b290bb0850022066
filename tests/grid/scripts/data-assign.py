import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    loss.backward()
    for p in model.parameters():
        p.data = p.data - 0.05 * UPDATE(p.grad)  #@own
        p.grad = None
    print(f"step {i} loss {loss.item():.5f}")
