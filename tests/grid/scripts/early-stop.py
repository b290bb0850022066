import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
batches = list(zip(X.split(8), Y.split(8)))
i = 0
for epoch in range(4):
    for k, (x, y) in enumerate(batches):
        if epoch == 1 and k == 2:
            print("enough")
            break
        if k == 4:
            continue
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")
        i += 1
    else:
        print("epoch", epoch)
        continue
    break
else:
    print("all epochs")
print("steps", i)
