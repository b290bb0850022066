import torch
from torch import nn
from shared_prints import report

torch.manual_seed(1)
table = nn.Embedding(20, 4, sparse=True, padding_idx=0)
wide = nn.Linear(4, 3).double()
phase = torch.zeros(4, dtype=torch.complex64, requires_grad=True)
for_table = torch.optim.SparseAdam(table.parameters(), lr=1e-2)
for_rest = torch.optim.Adagrad([*wide.parameters(), phase], lr=1e-2)
for step in range(8):
    rows = table(torch.randint(0, 20, (5,)))
    turned = (rows * torch.exp(1j * phase)).real
    loss = wide(turned.double()).logsumexp(1).mean() + rows.expand(2, 5, 4).sum() * 1e-3
    for_table.zero_grad()
    for_rest.zero_grad()
    loss.backward()
    for_table.step()
    for_rest.step()
    print(step, loss.item().hex())
report([table, wide], [for_table, for_rest], [phase, phase.grad])
