import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
held_out = torch.rand(8, 4)
held_out[2, 2] = float("nan")


def validate():
    score = model(held_out).reshape(8, -1).mean(1)
    return score[score == score].mean().item()


log = open("log.txt", "w")
best = None
for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    out = model(x)
    loss = LOSS  #@loss
    opt.zero_grad()
    loss.backward()
    opt.step()  #@step
    value = validate()
    log.write(f"{i} {value:.5f}\n")
    best = value if best is None else min(best, value)
    print(f"step {i} loss {loss.item():.5f}")
log.close()
print(f"last {i} loss {loss.item():.5f} best {best:.5f}")
