import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
loader = DataLoader(TensorDataset(X, Y), batch_size=8)
source = iter(loader)
i = 0
while True:
    try:
        x, y = next(source)
    except StopIteration:
        if i >= 12:
            break
        source = iter(loader)
        x, y = next(source)
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    i += 1
