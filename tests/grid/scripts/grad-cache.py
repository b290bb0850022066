import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    with torch.no_grad():
        kept = torch.cat([model(part) for part in x.split(4)])
    out = kept.detach().requires_grad_()
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    for part, grad in zip(x.split(4), out.grad.split(4)):
        model(part).backward(grad)
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
