import copy
import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
target = copy.deepcopy(model).requires_grad_(False)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    with torch.no_grad():
        aim = target(x)
    loss = LOSS + 0.1 * F.mse_loss(out, aim)  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    with torch.no_grad():
        for old, new in zip(target.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
    print(f"step {i} loss {loss.item():.5f}")
