import torch
from torch import nn
import torch.nn.functional as F

NET


DATA

class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.opt = OPTIMIZER(self.net.parameters())

    def train(self, mode=True, batches=()):
        super().train(mode)
        for i, (x, y) in enumerate(batches):
            RATE(self.opt, i)
            out = self.net(x)
            loss = LOSS  #@loss
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()  #@step
            print(f"step {i} loss {loss.item():.5f}")
        return self


Learner().train(batches=zip(X.split(8), Y.split(8)))
