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
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.05 * UPDATE(p.grad)  #@own
    print(f"step {i} loss {loss.item():.5f}")
