import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(x)
        loss = LOSS  #@loss
    scaler.scale(loss).backward()
    scaler.step(opt)  #@step
    scaler.update()
    print(f"step {i} loss {loss.item():.5f}")
