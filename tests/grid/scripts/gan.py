import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
G = Net()
D = nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g = OPTIMIZER(G.parameters())
opt_d = torch.optim.Adam(D.parameters(), lr=0.01)


def judge(out):
    return D(out.reshape(8, -1).mean(1, keepdim=True))


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt_g, i)
    fake = G(torch.rand(8, 4) + 0.5).detach()
    loss_d = F.softplus(judge(fake)).mean() + F.softplus(-judge(torch.randn(8))).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    out = G(x)
    fooled = F.softplus(-judge(out)).mean()
    loss = LOSS + 0.1 * fooled  #@loss
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
