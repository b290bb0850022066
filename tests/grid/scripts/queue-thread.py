import queue
import threading
import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
batches = queue.Queue(maxsize=2)


def produce():
    for batch in zip(X.split(8), Y.split(8)):
        batches.put(batch)
    batches.put(None)


threading.Thread(target=produce, daemon=True).start()
i = 0
while True:
    batch = batches.get()
    if batch is None:
        break
    x, y = batch
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
    i += 1
