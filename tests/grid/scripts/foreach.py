import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
params = list(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        updates = [UPDATE(g) for g in grads]  #@own
        torch._foreach_add_(params, updates, alpha=-0.05)
    print(f"step {i} loss {loss.item():.5f}")
