"""Handwritten digits, a small convolutional network, and a cross-entropy written by hand."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
        self.head = nn.Linear(256, 10)

    def forward(self, images):
        return self.head(self.features(images))


def cross_entropy(logits, labels):
    probabilities = torch.softmax(logits, dim=1)
    picked = probabilities[torch.arange(len(labels)), labels]
    return -torch.log(picked).mean()


def main():
    torch.manual_seed(0)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None]
    labels = torch.tensor(digits.target)
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2)
    for epoch in range(5):
        total = 0.0
        for batch, target in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(target)
        print(f"epoch {epoch}: loss {total / len(images):.4f}")


if __name__ == "__main__":
    main()
