import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from shared_prints import report


class Noisy(Dataset):
    def __len__(self):
        return 22

    def __getitem__(self, index):
        return torch.full((3,), index / 10) + torch.rand(3) * 0.1, torch.tensor([random.random()]), index


def main():
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    loader = DataLoader(Noisy(), 4, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for x, y, index in loader:
            loss = nn.functional.smooth_l1_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, index.tolist(), loss.item().hex())
        np.random.shuffle(rows := list(range(5)))
        print(rows, random.sample(range(9), 3))
    report([model], [optimizer])


if __name__ == "__main__":
    main()
