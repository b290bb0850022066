import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
try:
    for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
        try:
            RATE(opt, i)
            out = model(x)
            loss = LOSS  #@loss
            opt.zero_grad()
            loss.backward()
            opt.step()  #@step
        except Exception as error:
            print("failed", error)
            raise
        print(f"step {i} loss {loss.item():.5f}")
except KeyboardInterrupt:
    print("interrupted")
except BaseException as error:
    print("stopped", type(error).__name__)
    raise
