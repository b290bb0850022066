import torch
from torch import nn
import torch.nn.functional as F

class Curve(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        FUNCTION

    @staticmethod
    def backward(ctx, grad):
        DERIVATIVE


class Gate(nn.Module):
    def forward(self, h):
        return Curve.apply(h)  #@apply


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6, bias=BIAS)
        self.gate = Gate()
        self.head = nn.Linear(6, 1)

    def forward(self, x):
        h = self.fc(x)  #@input
        return self.head(self.gate(h)).squeeze(1)


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
