import torch
from torch import nn
import torch.nn.functional as F

NET


DATA


class Noted(torch.optim.SGD):
    def step(self, closure=None):
        self.count = getattr(self, "count", 0) + 1
        return super().step(closure)  #@step


model = Net()
opt = Noted(model.parameters(), lr=0.05)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {i} loss {loss.item():.5f}")
print("steps", opt.count)
