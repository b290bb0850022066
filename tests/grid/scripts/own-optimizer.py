import torch
from torch import nn
import torch.nn.functional as F

NET


DATA

class Normalised(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    direction = UPDATE(p.grad)  #@own
                    p.sub_(group["lr"] * direction)


model = Net()
opt = Normalised(model.parameters(), lr=0.05)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item():.5f}")
