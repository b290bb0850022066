import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
records = [{"x": x, "target": {"y": y}} for x, y in zip(X, Y)]
loader = DataLoader(records, batch_size=8)
for i, batch in enumerate(loader):
    batch["x"] = batch["x"].to("cpu")
    RATE(opt, i)
    out, y = model(x=batch["x"]), batch["target"]["y"]
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
