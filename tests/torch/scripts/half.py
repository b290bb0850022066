import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1)).half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-4)
for step in range(8):
    x = torch.randn(8, 4).half()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    model[0].weight.grad[0, 0] = -0.0
    model[0].bias.grad[1] = 6e-8
    optimizer.step()
    print(step, loss.item().hex())
report([model], [optimizer])
