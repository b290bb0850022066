import torch
from torch import nn
import torch.nn.functional as F

DATA
w = torch.randn(4, 6).mul(0.5).requires_grad_()
v = torch.randn(6, WIDTH).mul(0.5).requires_grad_()


def net(w, v, x):
    h = x @ w  #@input
    HIDDEN
    return OUT


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    out = net(w, v, x)
    loss = LOSS  #@loss
    grads = torch.autograd.grad(loss, [w, v])
    w, v = [(p - 0.05 * UPDATE(g)).detach().requires_grad_() for p, g in zip((w, v), grads)]  #@own
    print(f"step {i} loss {loss.item():.5f}")
