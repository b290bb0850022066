import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    loss = torch.zeros(())
    for xs, ys in zip(x.split(4), y.split(4)):
        out, y = model(xs), ys
        loss += LOSS  #@loss
    loss += sum([1e-3 * p.pow(2).sum() for p in model.parameters()])
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
