import torch
from torch import nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, opt, batches, callbacks=()):
        self.model, self.opt, self.batches = model, opt, batches
        self.callbacks = [self.report, *callbacks]
        self.step = 0

    def report(self):
        print(f"step {self.step} loss {self.loss.item():.5f}")

    def fit(self):
        for batch in self.batches:
            self.training_step(batch)
            for callback in self.callbacks:
                callback()
            self.step += 1

    def training_step(self, batch):
        x, y = batch
        RATE(self.opt, self.step)
        out = self.model(x)
        self.loss = LOSS  #@loss
        self.opt.zero_grad()
        self.loss.backward()
        self.opt.step()  #@step
