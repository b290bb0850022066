import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
batches = list(zip(X.split(8), Y.split(8)))
for it in range(3):
    RATE(opt, 3 * it)
    opt.zero_grad()
    for micro in range(2):
        x, y = batches[2 * it + micro]
        out = model(x)
        loss = LOSS  #@loss
        (loss / 2).backward()
        print(f"step {2 * it + micro} loss {loss.item():.5f}")
    opt.step()  #@step
