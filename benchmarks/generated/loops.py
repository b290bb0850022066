"""Shapes of training loops: each turns the parts of a run into the text of a script."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
LOADER = "from torch.utils.data import DataLoader, TensorDataset\n"


@dataclass(frozen=True, slots=True)
class Parts:
    """`names` are the batch's, as the loss takes them; `sample` says that the data come from `sample()` anew in each step."""

    net: str
    data: str
    loss: str
    setup: str
    opt: str
    names: str
    sample: bool
    size: str
    epochs: str
    steps: str
    seed: str
    shuffle: bool
    schedule: str
    clip: str


def written(rng: random.Random, parts: Parts) -> str:
    feed = rng.choice(("draw", "range")) if parts.sample else rng.choice(("loader", "slices", "generator", "permutation"))
    shape = rng.choice((script, main_function, step_function, trainer))
    loader = LOADER if feed == "loader" else ""
    body = shape(parts, *FEEDS[feed](rng, parts))
    sections = (HEAD + loader, *("\n" + part.strip("\n") + "\n" for part in (parts.net, parts.data, parts.loss, body)))
    return "\n".join(sections)


def loader(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    shuffle = ", shuffle=True" if parts.shuffle and rng.random() < 0.6 else ""
    made = f"loader = DataLoader(TensorDataset(*load_data()), batch_size={parts.size}{shuffle})"
    return made, f"for epoch in range({parts.epochs}):\n    for {parts.names} in loader:\n        ", "epoch {epoch}"


def slices(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    head = f"for epoch in range({parts.epochs}):\n    for start in range(0, len(data[0]), {parts.size}):\n"
    head += f"        {parts.names} = (t[start:start + {parts.size}] for t in data)\n        "
    return "data = load_data()", head, "{epoch}/{start}"


def generator(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    made = """
        def batches(data, size, epochs):
            for _ in range(epochs):
                for start in range(0, len(data[0]), size):
                    yield [t[start:start + size] for t in data]


        data = load_data()"""
    head = f"for i, ({parts.names}) in enumerate(batches(data, {parts.size}, {parts.epochs})):\n    "
    return textwrap.dedent(made).strip("\n"), head, "iter {i}"


def permutation(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    order = "torch.randperm(len(data[0]))" if parts.shuffle else "torch.arange(len(data[0]))"
    head = f"for epoch in range({parts.epochs}):\n    for index in {order}.split({parts.size}):\n"
    return "data = load_data()", head + f"        {parts.names} = (t[index] for t in data)\n        ", "[{epoch}]"


def drawn(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    return "step = 0", f"while step < {parts.steps}:\n    {parts.names} = sample()\n    step += 1\n    ", "step {step}"


def ranged(rng: random.Random, parts: Parts) -> tuple[str, str, str]:
    return "", f"for step in range({parts.steps}):\n    {parts.names} = sample()\n    ", "{step}"


FEEDS = {"loader": loader, "slices": slices, "generator": generator, "permutation": permutation, "draw": drawn, "range": ranged}


def made(parts: Parts, data: str) -> str:
    return "\n".join(line for line in ("model = Net()", parts.setup, parts.opt, parts.schedule, data) if line)


def update(parts: Parts, model: str = "model", optimizer: str = "optimizer") -> str:
    lines = [f"{optimizer}.zero_grad()", "loss.backward()", parts.clip.replace("model.", f"{model}."), f"{optimizer}.step()"]
    return "\n".join(line for line in lines if line)


def nested(head: str, body: str) -> str:
    """The body of a loop, whose head ends with the indentation of its body."""
    indent = head.rpartition("\n")[2]
    return head[: len(head) - len(indent)] + textwrap.indent(body, indent)


def called(parts: Parts) -> str:
    return f"loss = loss_fn(model, {parts.names})"


def shown(label: str) -> str:
    return f'print(f"{label} loss {{loss.item():.5g}}")'


def script(parts: Parts, data: str, head: str, label: str) -> str:
    body = "\n".join(filter(None, (called(parts), update(parts), "scheduler.step()" if parts.schedule else "", shown(label))))
    return f"torch.manual_seed({parts.seed})\n{made(parts, data)}\n\n{nested(head, body)}"


def main_function(parts: Parts, data: str, head: str, label: str) -> str:
    inside = textwrap.indent(script(parts, data, head, label), "    ")
    return f'def main():\n{inside}\n\n\nif __name__ == "__main__":\n    main()'


def step_function(parts: Parts, data: str, head: str, label: str) -> str:
    body = "\n".join(filter(None, (called(parts), update(parts), "return loss.detach()")))
    call = f"loss = train_step(model, optimizer, {parts.names})"
    calls = "\n".join(filter(None, (call, "scheduler.step()" if parts.schedule else "", shown(label))))
    function = f"def train_step(model, optimizer, {parts.names}):\n{textwrap.indent(body, '    ')}"
    return f"{function}\n\n\ntorch.manual_seed({parts.seed})\n{made(parts, data)}\n{nested(head, calls)}"


def trainer(parts: Parts, data: str, head: str, label: str) -> str:
    loss = called(parts).replace("(model,", "(self.model,")
    body = "\n".join((loss, update(parts, "self.model", "self.optimizer"), "return loss.item()"))
    call, show = f"value = trainer.fit_batch({parts.names})", f'print(f"{label} loss {{value:.5g}}")'
    calls = "\n".join(filter(None, (call, "scheduler.step()" if parts.schedule else "", show)))
    return f"""class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def fit_batch(self, {parts.names}):
{textwrap.indent(body, "        ")}


torch.manual_seed({parts.seed})
{made(parts, data)}
trainer = Trainer(model, optimizer)
{nested(head, calls)}"""
