import torch
from torch import nn
import torch.nn.functional as F

NET


DATA
G = Net()
D = nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g = OPTIMIZER(G.parameters())
opt_d = torch.optim.Adam(D.parameters(), lr=0.01)
label = torch.full((8, 1), 1.0)


def judge(out):
    return D(out.reshape(8, -1).mean(1, keepdim=True))


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt_g, i)
    opt_d.zero_grad()
    label.fill_(1.0)
    real = F.binary_cross_entropy_with_logits(judge(torch.randn(8)), label)
    real.backward()
    out = G(x)
    label.fill_(0.0)
    fake = F.binary_cross_entropy_with_logits(judge(out.detach()), label)
    fake.backward()
    opt_d.step()
    opt_g.zero_grad()
    label.fill_(1.0)
    fooled = F.binary_cross_entropy_with_logits(judge(out), label)
    loss = LOSS + 0.1 * fooled  #@loss
    loss.backward()
    opt_g.step()  #@step
    print(f"step {i} loss {loss.item():.5f}")
