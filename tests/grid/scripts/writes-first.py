import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
log = open("log.txt", "w")
seen = []
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    log.write(f"begin {i}\n")
    print("begin", i, flush=True)
    seen.append(i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    log.write(f"end {i} {len(seen)}\n")
    print(f"step {i} loss {loss.item():.5f}")
log.close()
