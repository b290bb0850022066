"""Tables of judged runs, and docs/accuracy.md made of them."""

from __future__ import annotations

import itertools
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version

from benchmarks.generated.judge import Judged

BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0001)
AHEAD = 20  # steps that a warning is to come before the end


def missed(run: Judged) -> str:
    """What is wrong about the report, in a line; empty where nothing is."""
    kind = run.drawn.variant.kind if not run.drawn.healthy else "healthy"
    found = ", ".join(f"{name} {confidence:.2f}" for name, confidence in run.causes[:3]) or "no cause"
    if not run.reported:
        return f"NO REPORT (status {run.status}), expected {wanted(run)}"
    if kind == "healthy":
        warned = ", ".join(f"{name} at {step}" for step, name in run.warned)
        return f"FALSE ALARM at step {run.step}: {found}" if run.incidents else f"WARNED: {warned}" if run.warned else ""
    if kind == "slow" and (run.ahead is None or run.ahead < AHEAD):
        return f"LATE: warned {list(run.warned)}, not finite at step {run.drawn.bad_step} ({wanted(run)})"
    if kind == "failing" and not run.right(1):
        degree = "second or third" if run.right(3) else "MISSED"
        return f"{degree}: expected {wanted(run)}, got {found} (line {run.line}, step {run.step}, not finite at {run.drawn.bad_step})"
    return ""


def wanted(run: Judged) -> str:
    return " or ".join(run.drawn.variant.causes) or "nothing"


def tables(judged: Sequence[Judged], split: str) -> str:
    failing = [run for run in judged if not run.drawn.healthy and run.drawn.variant.kind == "failing"]
    healthy = [run for run in judged if run.drawn.healthy]
    slow = [run for run in judged if not run.drawn.healthy and run.drawn.variant.kind == "slow"]
    parts = [*summary(failing, healthy, slow, split), *by_cause(failing), *reliability(failing), *divergences(slow)]
    parts.append(f"{sum(run.drawn.redrawn for run in judged)} scripts did not fail, or stay healthy, as planned and were drawn anew.")
    return "\n".join(parts)


def summary(failing: Sequence[Judged], healthy: Sequence[Judged], slow: Sequence[Judged], split: str) -> Iterable[str]:
    held = [run for run in failing if run.drawn.variant.held_back]
    yield from ("| runs | number | result |", "|---|---:|---|")
    if failing:
        yield f"| failing ({split}) | {len(failing)} | {rates(failing)} |"
    if held:
        yield f"| of these, written apart and never looked at | {len(held)} | {rates(held)} |"
    if healthy:
        alarms, warned = (sum(bool(getattr(run, what)) for run in healthy) for what in ("incidents", "warned"))
        yield f"| healthy | {len(healthy)} | {alarms} with an incident, {share(warned, len(healthy))} with a warning |"
    if slow:
        early = sum(run.ahead is not None and run.ahead >= AHEAD for run in slow)
        yield f"| slow divergences | {len(slow)} | {share(early, len(slow))} with a warning at least {AHEAD} steps ahead |"
    yield ""


def rates(runs: Sequence[Judged]) -> str:
    first, three = (sum(run.right(count) for run in runs) for count in (1, 3))
    return f"first cause right {share(first, len(runs))}, among the first three {share(three, len(runs))}"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def by_cause(failing: Sequence[Judged]) -> Iterable[str]:
    if not failing:
        return
    yield from ("| cause | runs | first right | among three |", "|---|---:|---:|---:|")
    for cause in sorted({run.drawn.variant.causes[0] for run in failing}):
        own = [run for run in failing if run.drawn.variant.causes[0] == cause]
        yield f"| `{cause}` | {len(own)} | {sum(run.right(1) for run in own)} | {sum(run.right(3) for run in own)} |"
    yield ""


def reliability(failing: Sequence[Judged]) -> Iterable[str]:
    named = [run for run in failing if run.causes]
    if not named:
        return
    yield from ("| confidence of the first cause | runs | right |", "|---|---:|---:|")
    for low, high in itertools.pairwise(BINS):
        own = [run for run in named if low <= run.causes[0][1] < high]
        yield f"| {low:.1f} to {min(high, 1.0):.1f} | {len(own)} | {share(sum(run.right(1) for run in own), len(own))} |"
    yield ""


def divergences(slow: Sequence[Judged]) -> Iterable[str]:
    if not slow:
        return
    yield from ("| slow divergence | runs | warned in time | median steps ahead | cause right |", "|---|---:|---:|---:|---:|")
    for cause in sorted({run.drawn.variant.causes[0] for run in slow}):
        own = [run for run in slow if run.drawn.variant.causes[0] == cause]
        ahead = sorted(run.ahead or 0 for run in own)
        early = sum(steps >= AHEAD for steps in ahead)
        yield f"| `{cause}` | {len(own)} | {early} | {ahead[len(ahead) // 2]} | {sum(run.right(1) for run in own)} |"
    yield ""


def page(text: str, argv: Sequence[str]) -> str:
    made = f"whynan {version('whynan')}, torch {version('torch')}, Python {platform.python_version()} on {platform.machine()}"
    return f"""# Accuracy

Measured on generated training runs: a script is put together from a model, data, a loss, an optimizer and a loop, with one mistake whose
cause is known; under plain torch it is checked that it turns non-finite, and that it does not once the mistake is repaired. The test set
has seeds, and a variant of every cause, that were not looked at while the probes were tuned. Healthy runs are repaired ones, and ones that
are noisy by nature. A cause counts as right if it is the one planted, or one that is honestly the same there.

Written by `python benchmarks/generated/run.py {" ".join(argv)}` with {made}.

{text}
"""
