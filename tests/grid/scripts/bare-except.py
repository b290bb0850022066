import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
skipped = 0
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    try:
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
    except:
        skipped += 1
        print("skipped", i)
        continue
    print(f"step {i} loss {loss.item():.5f}")
print("skipped", skipped)
