import torch
from torch import nn
import torch.nn.functional as F
from collections import deque

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1.0)
queue = deque(zip(X.split(8), Y.split(8)))
history, i = [], 0
while queue:
    x, y = queue.popleft()
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    history.append(len(history))
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    schedule.step()
    assert history[-1] == i
    print(f"step {i} loss {loss.item():.5f}")
    i += 1
