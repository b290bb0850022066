import torch
from torch import nn
import torch.nn.functional as F

NET


DATA

class Runner:
    def __init__(self, n):
        self.step, self.n = 0, n
        self.model = Net()
        self.opt = OPTIMIZER(self.model.parameters())
        self.batches = list(zip(X.split(8), Y.split(8)))

    def run(self):
        while self.step < self.n:
            self.step += 1
            x, y = self.batches[self.step - 1]
            RATE(self.opt, self.step - 1)
            out = self.model(x)
            loss = LOSS  #@loss
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()  #@step
            print(f"step {self.step - 1} loss {loss.item():.5f}")


if __name__ == "__main__":
    Runner(6).run()
