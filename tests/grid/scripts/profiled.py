import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
with torch.autograd.profiler.profile() as profile:
    for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
        RATE(opt, i)
        with torch.autograd.profiler.record_function("forward"):
            out = model(x)
            loss = LOSS  #@loss
        with torch.autograd.profiler.record_function("backward"):
            opt.zero_grad()
            loss.backward()
        with torch.autograd.profiler.record_function("step"):
            opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")
