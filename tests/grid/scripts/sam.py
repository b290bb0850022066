import torch
from torch import nn
import torch.nn.functional as F

NET


DATA

class SAM(torch.optim.Optimizer):
    def __init__(self, params, rho=0.05):
        super().__init__(params, {"rho": rho, "lr": 0.05})
        self.base = OPTIMIZER(self.param_groups)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def first_step(self):
        ps = [p for group in self.param_groups for p in group["params"]]
        norm = torch.stack([p.grad.norm() for p in ps]).norm()
        for p in ps:
            self.state[p]["e"] = p.grad * (0.05 / norm)  #@own
            p.add_(self.state[p]["e"])
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()  #@step
        self.zero_grad()


model = Net()
opt = SAM(model.parameters())


def criterion(x, y):
    out = model(x)
    return LOSS  #@loss


for i, (x, y) in enumerate(zip(X.split(8), Y.split(8))):
    RATE(opt, i)
    loss = criterion(x, y)
    loss.backward()
    opt.first_step()
    criterion(x, y).backward()
    opt.second_step()
    print(f"step {i} loss {loss.item():.5f}")
