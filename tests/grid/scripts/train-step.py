import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())


def train_step(i, x, y):
    RATE(opt, i)
    opt.zero_grad()
    out = model(x)
    loss = LOSS  #@loss
    loss.backward()
    opt.step()  #@step
    return loss.item()


def main():
    for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
        print(f"step {i} loss {train_step(i, x, y):.5f}")


if __name__ == "__main__":
    main()
