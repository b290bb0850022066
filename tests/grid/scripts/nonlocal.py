import torch
from torch import nn
import torch.nn.functional as F

NET


DATA


def main():
    model = Net()
    opt = OPTIMIZER(model.parameters())
    batches = list(zip(X.split(8), Y.split(8)))
    i = -1

    def advance():
        nonlocal i
        i += 1
        return batches[i]

    def train_step():
        x, y = advance()
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")

    while i + 1 < len(batches):
        train_step()


main()
