import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
loader = DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(7))
i = 0
for epoch in range(2):
    for x, y in loader:
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")
        i += 1
    print("epoch", epoch)
