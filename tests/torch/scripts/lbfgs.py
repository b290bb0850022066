import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
x = torch.randn(20, 4)
y = x.prod(1, keepdim=True)
calls = 0


def closure():
    global calls
    calls += 1
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for step in range(6):
    print(step, optimizer.step(closure).item().hex(), calls)
report([model], [optimizer])
