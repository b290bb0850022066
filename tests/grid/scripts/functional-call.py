import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call

NET


DATA
model = Net()
params = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
opt = OPTIMIZER(params.values())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = functional_call(model, params, (x,))
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
