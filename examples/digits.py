"""Handwritten digits that scikit-learn ships, every pixel standardised, and a cross-entropy written by hand."""

import torch
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn.functional import one_hot
from torch.utils.data import DataLoader, TensorDataset

TRAINING = 1500  # the images after these are held out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        self.head = nn.Linear(512, 10)

    def forward(self, images):
        return self.head(self.body(images))


def cross_entropy(logits, labels):
    log_probabilities = torch.log(torch.softmax(logits, dim=1))
    return -(one_hot(labels, 10) * log_probabilities).sum(dim=1).mean()


def load():
    digits = load_digits()
    scaler = StandardScaler().fit(digits.data[:TRAINING])
    images = torch.tensor(scaler.transform(digits.data), dtype=torch.float32)
    return images, torch.tensor(digits.target)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)  # a small network: more threads only wait for each other
    images, labels = load()
    loader = DataLoader(TensorDataset(images[:TRAINING], labels[:TRAINING]), batch_size=32, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(10):
        total = 0.0
        for batch, target in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(batch), target)
            loss.backward()
            optimizer.step()
            total += loss.item()
        accuracy = (model(images[TRAINING:]).argmax(dim=1) == labels[TRAINING:]).float().mean()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, accuracy on held-out images {accuracy:.3f}")


if __name__ == "__main__":
    main()
