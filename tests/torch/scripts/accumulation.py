import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Linear(6, 1))
average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
optimizer.zero_grad()
for step in range(12):
    x = torch.randn(4, 4)
    first, second = model(x).square().mean(), torch.utils.checkpoint.checkpoint(model, x, use_reentrant=False).abs().mean()
    first.backward(retain_graph=True)
    (second / 3 + first).backward()
    if step % 3 == 2:
        for parameter in model.parameters():
            parameter.grad.clamp_(-0.5, 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=step < 6)
        average.update_parameters(model)
    print(step, first.item().hex(), second.item().hex())
report([model, average], [optimizer], [p.grad for p in model.parameters()])
