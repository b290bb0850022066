"""The loop shapes: how a script is built around its step, and what each expects where it differs from the usual.

The template of a shape is `scripts/<name>.py`, or a folder of files. In it NET, DATA, LOSS, OPTIMIZER(parameters), RATE(optimizer, step)
and UPDATE(gradient) stand for what a birth supplies; `fills` has a shape's own placeholders by birth ("*": any other, "-name": its twin).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.grid.births import ALL, RECORD

ANY = object()
TORCH = ("input", "forward", "loss", "backward", "rate", "eps0")
HAND = ("input", "forward", "loss", "backward", "own")
WITHOUT_EPS0 = ("input", "forward", "loss", "backward", "rate")
EVERY_WEIGHT = {"eps0": "another term of the loss gives every weight a gradient"}
HANDED_ON = "an update that makes new tensors shows in the next step only; what it made is no leaf that could be watched"
NO_OPTIMIZER = {"rate": "there is no optimizer of torch's", "eps0": "there is no optimizer of torch's"}


@dataclass(frozen=True, slots=True)
class Shape:
    """`step`, `row`: where the faulty record comes. `at`: what differs for one birth ("*": for all of them). `impossible`: why the step
    can't be run again in its frame, so that only `--trace-step` places it. `absent`: why a birth does not exist here. `unwinds`: what the
    script's own `finally` prints when it is stopped. `noisy`: others write on standard error too."""

    name: str
    births: tuple[str, ...] = TORCH
    step: int = 3
    row: int = 5
    steps: Any = 6
    first_update: int = 0
    prefix: str = ""
    at: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fills: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    faulty: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    impossible: str | None = None
    command: tuple[str, ...] = ("train.py",)
    cwd: str = "."
    pythonpath: str | None = None
    noisy: bool = False
    needs: str | None = None
    template: str = ""
    unwinds: str = ""


def in_shuffled_loader() -> tuple[int, int]:
    """Step and row of the faulty record under the shuffling of the shapes `epochs` and `workers`."""
    import torch
    from torch.utils.data import DataLoader

    loader = DataLoader(list(range(48)), 8, shuffle=True, generator=torch.Generator().manual_seed(7))
    position = [int(k) for batch in loader for k in batch].index(RECORD)
    return divmod(position, 8)


def in_rollout() -> tuple[int, int]:
    """The same for `rollout`, which shuffles an array in place."""
    import numpy as np

    random, order = np.random.RandomState(1), np.arange(24)
    random.shuffle(order)
    random.shuffle(order)
    step, row = divmod(order.tolist().index(RECORD - 24), 8)
    return step + 3, row


def in_random_rows(source: str, rows: str) -> tuple[int, int]:
    """The first step of `random-rows` with the faulty record, and its row."""
    import random

    import numpy as np
    import torch

    scope: dict[str, Any] = {"random": random, "np": np, "torch": torch}
    state = random.getstate()
    exec(source, scope)
    drawn = [[int(k) for k in eval(rows, scope)] for _ in range(10)]
    random.setstate(state)
    return next((step, numbers.index(RECORD)) for step, numbers in enumerate(drawn) if RECORD in numbers)


def random_rows(name: str, source: str, rows: str) -> Shape:
    """Batches drawn from a generator that the script holds itself: another draw in the second run would be another batch."""
    step, row = in_random_rows(source, rows)
    at = {**at_data(step), "input": {"step": step, "module": ("fc", None)}}
    return Shape(name, template="random-rows", row=row, steps=10, at=at, fills={"SOURCE": {"*": source}, "ROWS": {"*": rows}})


def at_data(step: int, **more: Any) -> dict[str, dict[str, Any]]:
    """The step of the births that come of the faulty record, where it differs from that of `rate`."""
    return {birth: {"step": step, **more} for birth in ("input", "forward", "loss", "backward")}


GATE_WITH_ROOT = """
class Gate(nn.Module):
    def forward(self, h):
        n = h.pow(2).sum(1, keepdim=True).sqrt()  #@forward
        return h * n


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6, bias=False)
        self.gate = Gate()
        self.head = nn.Linear(6, 1)
"""
IN_GATE = {"marker": ("forward",), "module": "gate", "parameters": ("fc.weight",)}
ROOT_IN_GATE = {"NET": {"backward": GATE_WITH_ROOT}, "LOSS": {"backward": "F.mse_loss(out, y)"}}
PARAMS = {"parameters": (ALL, tuple(f"params['{name}']" for name in ALL))}
PARAMS_BACKWARD = {"parameters": (("fc.weight", "head.weight"), ("params['fc.weight']", "params['head.weight']"))}
PARAMS_EPS0 = {"parameters": (("fc.weight",), ("params['fc.weight']",))}
YIELDS = "the body yields: it can't be run again in its own frame"

SHUFFLED, ROLLOUT = in_shuffled_loader(), in_rollout()

SHAPES = (
    # the fifteen loops of the first sketch
    Shape("plain"),
    Shape("prefetch", first_update=1),
    Shape("carried"),
    Shape("helper"),
    Shape("gan", prefix="G."),
    Shape("accumulation", first_update=1),
    Shape("micro", first_update=1),
    Shape("losses-list", WITHOUT_EPS0, absent=EVERY_WEIGHT),
    Shape("bare-except"),
    Shape("scaler"),
    Shape("manual-sgd", HAND, absent=NO_OPTIMIZER),
    Shape("autograd-grad"),
    Shape("yields", impossible=YIELDS),
    Shape("deque"),
    Shape(
        "epochs", step=3, row=SHUFFLED[1], steps=12, at=at_data(SHUFFLED[0], dataset_indices=[RECORD])
    ),
    # frames around the step
    Shape("train-step"),
    Shape("yields-after", impossible=YIELDS),
    Shape("recursion"),
    Shape("tail-recursion", at={"*": {"step": (0, 3)}, "eps0": {"step": 0}}, steps=(1, 6)),
    Shape("endless"),
    Shape("class-while"),
    Shape("module-train", prefix="net."),
    Shape("stop-iteration", steps=12),
    Shape("async-main"),
    Shape("async-await", impossible="the body awaits: it can't be run again in its own frame"),
    Shape("backward-helper"),
    Shape("factory"),
    Shape("early-stop", steps=7),
    Shape("retry", unwinds="tried\n"),
    Shape("interrupt"),
    Shape("finally"),
    Shape("decorated"),
    Shape("walrus"),
    Shape("comprehension"),
    Shape("nonlocal", impossible="a variable of the enclosing function, advanced by another function of its, can't be put back"),
    Shape("profiled", noisy=True),
    # files and objects around the step
    Shape("trainer"),
    Shape("package", command=("-m", "package.train")),
    Shape("outside", cwd="job", pythonpath="elsewhere"),
    Shape("saves"),
    Shape("callbacks"),
    Shape("writes-first"),
    Shape(
        "from-json",
        fills={
            "CONFIG": {
                "*": '{"model": "Net", "optimizer": "SGD", "args": {"lr": 0.05}}',
                "eps0": '{"model": "Net", "optimizer": "Adam", "args": {"lr": 0.01, "eps": 0.0}}',
                "-eps0": '{"model": "Net", "optimizer": "Adam", "args": {"lr": 0.01, "eps": 1e-08}}',
            }
        },
    ),
    # data
    Shape(
        "workers", step=3, row=SHUFFLED[1], at=at_data(SHUFFLED[0], dataset_indices=[RECORD])
    ),
    Shape("tqdm", noisy=True, needs="tqdm"),
    Shape(
        "rollout",
        step=3,
        row=ROLLOUT[1],
        at={**at_data(ROLLOUT[0]), "input": {"step": ROLLOUT[0], "module": ("fc", None)}},
    ),
    Shape(
        "rl",
        prefix="net.",
        at={"input": {"module": ANY, "samples": ANY}, "forward": {"samples": ANY}},
    ),
    Shape(
        "sparse",
        WITHOUT_EPS0,
        fills={
            "GATE": {"*": "e = torch.exp(h)  #@forward\nreturn e / (1 + e)", "backward": "return torch.tanh(h)"},
            "WIDTH": {"*": "1", "backward": "3"},
            "BIAS": {"*": "True", "backward": "False"},
            "PLANT": {
                "*": "Y[29] = 0.9",
                "input": 'Y[29] = float("nan")',
                "-input": "Y[29] = 0.9",
                "forward": "model.emb.weight.data[29] = 4000.0",
                "-forward": "model.emb.weight.data[29] = 0.5",
                "loss": "Y[29] = 0.0",
                "-loss": "Y[29] = 0.9",
                "backward": "model.emb.weight.data[29] = 0.0",
                "-backward": "model.emb.weight.data[29] = 0.5",
            },
        },
        at={
            "input": {"marker": ("loss",), "module": None},
            "backward": {"parameters": ("emb.weight", "head.weight")},
            "rate": {"parameters": ("emb.weight", "head.weight", "head.bias")},
        },
        absent={"eps0": "SparseAdam refuses an eps of 0"},
    ),
    Shape(
        "batch-norm",
        ("input", "loss", "rate", "eps0"),
        prefix="1.",
        at={"input": {"marker": ("bn",), "module": "0"}},
        absent={"forward": "batch normalisation brings the huge row back to size", "backward": "and moves the row of zeros away from zero"},
    ),
    Shape("two-loaders", at=at_data(3, dataset_indices=[RECORD])),
    Shape("dict-batch", at=at_data(3, dataset_indices=[RECORD])),
    Shape("queue-thread"),
    random_rows("numpy-generator", "rng = np.random.default_rng(2)", "rng.permutation(48)[:8]"),
    random_rows("torch-generator", "g = torch.Generator().manual_seed(3)", "torch.randperm(48, generator=g)[:8]"),
    random_rows("python-random", "random.seed(1)", "random.sample(range(48), 8)"),
    # losses and gradients
    Shape("retain"),
    Shape("closure"),
    Shape("subclass-optimizer", WITHOUT_EPS0, absent={"eps0": "SGD has no eps"}),
    Shape(
        "scheduler",
        fills={
            "FACTOR": {
                "*": "lambda epoch: 0.9**epoch",
                "rate": "lambda epoch: float((1 - torch.tensor(epoch / 2.5)).sqrt())",
                "-rate": "lambda epoch: float((1 - torch.tensor(epoch / 50.0)).sqrt())",
            }
        },
    ),
    Shape(
        "grad-cache",
        at={
            "input": {"samples": [1]},
            "forward": {"samples": [1]},
            "backward": {"parameters": ((), ("fc.weight", "head.weight"))},  # the cached features are no parameter
        },
    ),
    Shape("loss-plus", WITHOUT_EPS0, row=1, absent=EVERY_WEIGHT),
    Shape("ema", prefix="model."),
    Shape("gan-three", prefix="G."),
    Shape(
        "lbfgs",
        WITHOUT_EPS0,
        absent={"eps0": "LBFGS has no eps"},
    ),
    Shape("sam", (*TORCH, "own"), at={"own": {"ops": ("div", "reciprocal", "mul")}}),
    Shape("checkpoint", fills=ROOT_IN_GATE, at={"backward": IN_GATE}),
    Shape(
        "checkpoint-reentrant", fills=ROOT_IN_GATE, at={"backward": IN_GATE}
    ),
    Shape(
        "autograd-function",
        fills={
            "FUNCTION": {
                "*": "e = torch.exp(h)  #@forward\ny = e / (1 + e)\nctx.save_for_backward(y)\nreturn y",
                "backward": "n = h.pow(2).sum(1, keepdim=True).sqrt()\nctx.save_for_backward(h, n)\nreturn n.repeat(1, 6)",
            },
            "DERIVATIVE": {
                "*": "(y,) = ctx.saved_tensors\nreturn grad * y * (1 - y)",
                "backward": "h, n = ctx.saved_tensors\nreturn grad.sum(1, keepdim=True) * (h / n)  #@derivative",
            },
            "BIAS": {"*": "True", "backward": "False"},
            "LOSS": {"backward": "F.mse_loss(out, y)"},
        },
        at={"backward": {"marker": ("apply", "derivative"), "module": "gate", "ops": ("div", "curve"), "parameters": ("fc.weight",)}},
    ),
    Shape(
        "gradient-penalty",
        WITHOUT_EPS0,
        absent=EVERY_WEIGHT,
        faulty={"backward": "X[29] = 1e4"},
        fills={
            "PENALTY": {"*": "g.pow(2).sum(1).mean()", "backward": "(g.pow(2).sum(1).sqrt() - 1).pow(2).mean()"},
            "LOSS": {"backward": "F.mse_loss(out.sum(1), y)"},
        },
        at={"backward": {"marker": ("penalty",), "parameters": (("fc.weight", "head.weight"), ("fc.weight", "head.weight", "x"))}},
    ),
    Shape(
        "functional-call", at={"backward": PARAMS_BACKWARD, "rate": PARAMS, "eps0": PARAMS_EPS0}
    ),
    Shape("maml", row=1),
    # hand-written updates
    Shape("data-assign", HAND, absent=NO_OPTIMIZER),
    Shape("foreach", HAND, absent=NO_OPTIMIZER),
    Shape("data-add", HAND, absent=NO_OPTIMIZER),
    Shape("momentum", HAND, absent=NO_OPTIMIZER),
    Shape(
        "functional-sgd",
        HAND,
        impossible=HANDED_ON,
        fills={
            "WIDTH": {"*": "1", "backward": "3"},
            "HIDDEN": {"*": "e = torch.exp(h)  #@forward\nh = e / (1 + e)", "backward": "h = torch.tanh(h)"},
            "OUT": {"*": "(h @ v).squeeze(1)", "backward": "h @ v"},
        },
        at={
            "input": {"module": None},
            "forward": {"module": None, "phase": ("forward", "loss")},
            "backward": {"parameters": ("w", "v")},
            "own": {"parameters": ANY},
        },
        absent=NO_OPTIMIZER,
    ),
    Shape("own-optimizer", HAND, absent={"rate": "as `own`", "eps0": "as `own`"}),
    Shape(
        "func-grad",
        HAND,
        impossible=HANDED_ON,
        at={"backward": PARAMS_BACKWARD, "own": {"parameters": ANY}},
        absent=NO_OPTIMIZER,
    ),
    # half precision and compilation
    Shape("autocast"),
    Shape("compiled"),
    Shape("compiled-step"),
)  # fmt: skip
