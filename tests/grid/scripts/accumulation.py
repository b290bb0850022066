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
    loss = (LOSS) / 2  #@loss
    loss.backward()
    if (i + 1) % 2 == 0:
        opt.step()  #@step
        opt.zero_grad()
    print(f"step {i} loss {loss.item():.5f}")
