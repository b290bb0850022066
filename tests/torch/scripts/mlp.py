import random

import numpy as np
import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
np.random.seed(2)
random.seed(3)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=14)
losses = []
for step in range(14):
    x = torch.randn(8, 6) + float(np.random.normal()) * random.random()
    loss = nn.functional.cross_entropy(model(x), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
    print(step, losses[-1].hex(), scheduler.get_last_lr())
model.eval()
with torch.no_grad():
    print(model(torch.ones(2, 6)).tolist())
report([model], [optimizer], losses)
