import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
schedule = torch.optim.lr_scheduler.LambdaLR(opt, FACTOR)
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    schedule.step()
    print(f"step {i} loss {loss.item():.5f}")
