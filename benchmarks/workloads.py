"""One training step of each workload, as a loop that a script would have.

python workloads.py NAME STEPS OUT [MODE]      MODE: plain, anomaly (under detect_anomaly) or fails (the last step's loss is not finite)

writes the clock (`time.perf_counter`) at the beginning of every step but the last to OUT, and the seconds to the next one's; where it
fails, the clock (`time.monotonic`) right before the backward that finds it.
"""

import contextlib
import itertools
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def mlp():
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, (torch.randn(128, 64), torch.randint(0, 10, (128,))), 1e-3


def conv():
    layers, width = [], 3
    for out in (32, 64, 64, 128):
        layers += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU()]
        width = out
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))
    return model, (torch.randn(4, 3, 32, 32), torch.randint(0, 10, (4,))), 1e-3


class Gpt(nn.Module):
    def __init__(self, vocabulary=512, width=256, depth=6, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        block = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.head(self.blocks(self.embedding(tokens), mask=mask, is_causal=True)).flatten(0, 1)


def gpt():
    tokens = torch.randint(0, 512, (8, 65))
    return Gpt(), (tokens[:, :-1], tokens[:, 1:].flatten()), 3e-4


def main(name, steps, path, mode="plain"):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, (x, y), rate = {"mlp": mlp, "conv": conv, "gpt": gpt}[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    around = torch.autograd.detect_anomaly(check_nan=True) if mode == "anomaly" else contextlib.nullcontext()
    with open(path, "w") as out, around:
        clocks = []
        note = clocks.append
        for step in range(steps):
            note(time.perf_counter())
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if mode == "fails" and step == steps - 1:
                loss = loss - torch.log(0 * loss)
                print(time.monotonic(), file=out, flush=True)
            loss.backward()
            optimizer.step()
            loss.item()
        out.writelines(f"{start!r} {end - start!r}\n" for start, end in itertools.pairwise(clocks))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
