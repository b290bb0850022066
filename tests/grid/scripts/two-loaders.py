import itertools
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
loader = DataLoader(TensorDataset(X, Y), batch_size=8)
extra = itertools.cycle([torch.rand(8, 4) + 0.5, torch.rand(8, 4) + 0.5])
for i, ((x, y), z) in enumerate(zip(loader, extra)):
    RATE(opt, i)
    out = model(x)
    with torch.no_grad():
        center = model(z).mean()
    loss = LOSS + 0.0 * center  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
