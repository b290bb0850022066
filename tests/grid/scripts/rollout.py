import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
np.random.seed(1)
obs, returns = torch.zeros(24, 4), torch.zeros(24)
order = np.arange(24)
i = 0
for update in range(2):
    for t in range(24):
        obs[t] = X[24 * update + t]
        returns[t] = Y[24 * update + t]
    np.random.shuffle(order)
    for start in range(0, 24, 8):
        rows = order[start : start + 8]
        x, y = obs[rows], returns[rows]  #@input
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")
        i += 1
