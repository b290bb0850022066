import torch
from torch import nn
import torch.nn.functional as F

class Gate(nn.Module):
    def forward(self, h):
        GATE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(48, 4, sparse=True)
        self.gate = Gate()
        self.head = nn.Linear(4, WIDTH, bias=BIAS)

    def forward(self, x):
        return self.head(self.gate(self.emb(x))).squeeze(1)


torch.manual_seed(0)
Y = torch.rand(48) + 0.5
model = Net()
PLANT
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(torch.arange(48).split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
