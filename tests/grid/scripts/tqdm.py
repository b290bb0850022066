import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from tqdm import tqdm

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
loader = DataLoader(TensorDataset(X, Y), batch_size=8)
bar = tqdm(enumerate(loader), total=len(loader), desc="train")
for i, (x, y) in bar:
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    bar.set_postfix(loss=loss.item())
    print(f"step {i} loss {loss.item():.5f}")
