import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    h = model.fc(x)  #@input
    out = model.head(checkpoint(model.gate, h, use_reentrant=True)).squeeze(1)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
