import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
velocity = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for name, p in model.named_parameters():
            velocity[name] = 0.9 * velocity[name] + UPDATE(p.grad)  #@own
            p -= 0.05 * velocity[name]
    print(f"step {i} loss {loss.item():.5f}")
