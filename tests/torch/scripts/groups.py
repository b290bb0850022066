import copy
import io

import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
body, head = nn.Sequential(nn.Conv1d(1, 3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Flatten()), nn.Linear(18, 2)
head.register_buffer("seen", torch.zeros(2))
nn.init.orthogonal_(head.weight)
for parameter in body.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD([{"params": head.parameters()}], lr=0.1)
for step in range(10):
    if step == 4:
        for parameter in body.parameters():
            parameter.requires_grad_(True)
        optimizer.add_param_group({"params": body.parameters(), "lr": 0.01})
    if step == 7:
        saved = io.BytesIO()
        torch.save([body.state_dict(), optimizer.state_dict()], saved)
        saved.seek(0)
        weights, state = torch.load(saved)
        body = copy.deepcopy(body)
        body.load_state_dict(weights)
        optimizer = torch.optim.SGD([{"params": head.parameters()}, {"params": body.parameters()}], lr=0.1)
        optimizer.load_state_dict(state)
    out = head(body(torch.randn(4, 1, 8)))
    head.seen += out.detach().mean(0)
    loss = nn.functional.cross_entropy(out, torch.randint(0, 2, (4,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item().hex(), [g["lr"] for g in optimizer.param_groups])
report([body, head], [optimizer])
