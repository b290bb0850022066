import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
model = Net()
opt = OPTIMIZER(model.parameters())
max_iters = 1
exec("max_iters = 3\nmicro_steps = 2")
k = 0


def get_batch():
    global k
    rows = slice(8 * k, 8 * k + 8)
    k = (k + 1) % 6
    return X[rows], Y[rows]


x, y = get_batch()
it = 0
while True:
    RATE(opt, 3 * it)
    for micro in range(micro_steps):
        out = model(x)
        loss = LOSS  #@loss
        x, y = get_batch()
        (loss / micro_steps).backward()
        print(f"step {micro_steps * it + micro} loss {loss.item():.5f}")
    opt.step()  #@step
    opt.zero_grad(set_to_none=True)
    it += 1
    if it >= max_iters:
        break
