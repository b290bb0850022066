import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value

NET


DATA
model = Net()
params = {name: p.detach().clone() for name, p in model.named_parameters()}


def criterion(params, x, y):
    out = functional_call(model, params, (x,))
    return LOSS  #@loss


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    grads, loss = grad_and_value(criterion)(params, x, y)
    params = {name: p - 0.05 * UPDATE(grads[name]) for name, p in params.items()}  #@own
    print(f"step {i} loss {loss.item():.5f}")
