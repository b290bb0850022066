"""From a variant and a random generator to the text of a script and of its repaired twin."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass

from benchmarks.generated.families import FAMILIES, GROUPS, TARGETS
from benchmarks.generated.loops import Parts, written
from benchmarks.generated.parts import Variant, decided, draw_sizes, filled

OPTIMIZERS = (
    "torch.optim.SGD(model.parameters(), lr=$lr)",
    "torch.optim.SGD(model.parameters(), lr=$lr, momentum=0.9)",
    "torch.optim.Adam(model.parameters(), lr=$lr)",
    "torch.optim.AdamW(model.parameters(), lr=$lr, weight_decay=0.01)",
    "torch.optim.RMSprop(model.parameters(), lr=$lr)",
)
SCHEDULES = (
    "",
    "",
    "scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10, gamma=0.5)",
    "scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)",
    "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))",
)
CLIPS = ("", "", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "nn.utils.clip_grad_norm_(model.parameters(), 5.0)")


@dataclass(frozen=True, slots=True)
class Pair:
    """A script with its mistake, and the same script without."""

    failing: str
    healthy: str


def compose(variant: Variant, rng: random.Random) -> Pair:
    sizes = draw_sizes(rng, variant)
    text = variant.text or assembled(variant, rng)
    text = filled(text.strip("\n") + "\n", sizes)
    return Pair(decided(text, faulty=True), decided(text, faulty=False))


def assembled(variant: Variant, rng: random.Random) -> str:
    inputs, net = model_of(variant, rng)
    parts = Parts(
        net=net,
        data=variant.sample or data_of(variant, inputs),
        loss=variant.loss.strip("\n"),
        setup=variant.setup,
        opt="optimizer = " + (variant.opt or rng.choice(OPTIMIZERS)),
        names=variant.returns,
        sample=bool(variant.sample),
        size="$b",
        epochs="$epochs",
        steps="$steps",
        seed="$seed",
        shuffle=variant.shuffle,
        schedule=rng.choice(SCHEDULES) if variant.extras else "",
        clip=rng.choice(CLIPS) if variant.extras else "",
    )
    return written(rng, parts)


def model_of(variant: Variant, rng: random.Random) -> tuple[str, str]:
    if "\n" in variant.net:
        return "", variant.net
    names = [name for part in variant.net.split("|") for name in GROUPS.get(part, (part,))]
    family = FAMILIES[rng.choice(names)]
    return family.inputs, family.source


def data_of(variant: Variant, inputs: str) -> str:
    if variant.data.lstrip().startswith("def "):
        return variant.data.strip("\n") + "\n"
    lines = [inputs, TARGETS.get(variant.data, variant.data).strip("\n"), textwrap.dedent(variant.spoil).strip("\n")]
    body = textwrap.indent("\n".join(line for line in lines if line), "    ")
    return f"def load_data():\n{body}\n    return {variant.returns}\n"
