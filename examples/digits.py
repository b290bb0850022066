"""Handwritten digits from two scanners, a small convolutional network, and a cross-entropy written by hand."""

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


def load():
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None]
    images[-12:] *= 16  # the second scanner writes 0..255, the first one 0..16
    return TensorDataset(images, torch.tensor(digits.target))


def main():
    torch.manual_seed(0)
    loader = DataLoader(load(), batch_size=64, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(5):
        for step, (images, labels) in enumerate(loader):
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                print(f"epoch {epoch} step {step:2d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
