import torch
from torch import nn
import torch.nn.functional as F
from .model import Net


def main():
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


if __name__ == "__main__":
    main()
