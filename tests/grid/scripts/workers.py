import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

NET


class Records(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, k):
        return self.x[k], self.y[k]


def main():
    DATA
    loader = DataLoader(Records(X, Y), 8, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(7))
    model = Net()
    opt = OPTIMIZER(model.parameters())
    for i, (x, y) in enumerate(loader):
        RATE(opt, i)
        out = model(x)
        loss = LOSS  #@loss
        opt.zero_grad()
        loss.backward()
        opt.step()  #@step
        print(f"step {i} loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
