"""Holds a run against its expectation. Every function returns the complaints, none where all is right."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.grid.births import RECORD, Birth
from tests.grid.compose import Script
from tests.grid.runner import Ran
from tests.grid.shapes import ANY, Shape


@dataclass(frozen=True, slots=True)
class Expected:
    """Where the birth is to be found. Each field holds all answers that are accepted; `ANY` is not judged."""

    steps: tuple[int, ...]
    phases: tuple[str, ...]
    directions: tuple[str, ...]
    ops: tuple[str, ...]
    places: frozenset[tuple[str, int]]
    modules: Any
    samples: Any
    parameters: Any
    dataset_indices: Any
    seen: tuple[str, ...]


def several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def expected(shape: Shape, birth: Birth, script: Script) -> Expected:
    own = {**shape.at.get("*", {}), **shape.at.get(birth.name, {})}
    step = own.get("step", shape.first_update if birth.name == "eps0" else shape.step)
    prefixed = None if birth.parameters is None else tuple(shape.prefix + name for name in birth.parameters)
    module = own.get("module", None if birth.module is None else shape.prefix + birth.module)
    parameters = own.get("parameters", prefixed)
    if parameters is not None and parameters is not ANY:
        parameters = parameters if isinstance(parameters[0], tuple) else (parameters,)
    return Expected(
        steps=several(step),
        phases=several(own.get("phase", birth.phase)),
        directions=several(birth.direction),
        ops=own.get("ops", birth.ops),
        places=frozenset().union(*(script.lines[marker] for marker in own.get("marker", (birth.marker,)))),
        modules=module if module is ANY else several(module),
        samples=own.get("samples", [shape.row] if birth.has_rows else []),
        parameters=parameters,
        dataset_indices=own.get("dataset_indices", ANY),
        seen=birth.seen,
    )


def op_name(name: str | None) -> str:
    """`torch.log`, `aten.log_.default`, `SqrtBackward0` -> `log`, `log`, `sqrt`."""
    if not name:
        return ""
    parts = name.split(".")
    name = parts[1] if parts[0] == "aten" else parts[-1]
    return re.sub(r"(Fn)?Backward\d*$", "", name).lower().strip("_")


def place_complaints(ran: Ran, want: Expected, shape: Shape, script: Script) -> list[str]:
    """Whether the first incident's origin is the expected one in everything that the contract names."""
    incident = ran.report["incidents"][0] if ran.report else {}
    origin = incident.get("origin") or {}
    file, line = relative(origin.get("file"), ran), origin.get("line")
    names = {op_name(origin.get("op")), op_name(origin.get("autograd_node"))}
    found: list[str] = []

    def hold(right: bool, what: str, got: Any, wanted: Any) -> None:
        if not right:
            found.append(f"{what}: {got!r}, expected {wanted!r}")

    hold(incident.get("step") in want.steps, "step", incident.get("step"), want.steps)
    hold(incident.get("phase") in want.phases, "phase", incident.get("phase"), want.phases)
    hold(origin.get("direction") in want.directions, "direction", origin.get("direction"), want.directions)
    hold(bool(names & set(want.ops)), "op", (origin.get("op"), origin.get("call"), origin.get("autograd_node")), want.ops)
    hold((file, line) in want.places, "place", (file, line), sorted(want.places))
    hold(want.modules is ANY or origin.get("module") in want.modules, "module", origin.get("module"), want.modules)
    hold(want.samples is ANY or (origin.get("samples") or []) == want.samples, "samples", origin.get("samples"), want.samples)
    hold(parameters_right(origin.get("parameters"), want), "parameters", origin.get("parameters"), want.parameters)
    hold(indices_right(origin, want), "dataset_indices", origin.get("dataset_indices"), [RECORD])
    hold(incident["first_seen"]["what"] in want.seen, "first_seen", incident["first_seen"], want.seen)
    if file in script.files and (file, line) in want.places:
        hold(origin["source"] == script.source(file, line).strip(), "source", origin["source"], script.source(file, line).strip())
    return found


def parameters_right(got: Any, want: Expected) -> bool:
    if want.parameters is None:
        return got is None
    return want.parameters is ANY or any(sorted(got or ()) == sorted(names) for names in want.parameters)


def indices_right(origin: dict[str, Any], want: Expected) -> bool:
    """Exact where a loader gave them, else unknown; one that is named is the faulty record."""
    got = origin.get("dataset_indices")
    return got == want.dataset_indices if want.dataset_indices is not ANY else got in (None, [RECORD])


def relative(file: str | None, ran: Ran) -> str | None:
    return os.path.relpath(os.path.realpath(file), os.path.realpath(ran.folder / "work")) if file else None


def stop_complaints(ran: Ran, plain: Ran, want: Expected, shape: Shape) -> list[str]:
    """Stopped with status 3 and one incident, standard output and files a beginning of plain Python's that ends at the step."""
    if ran.report is None:
        return [f"no report, exit status {ran.status}: {ran.stderr.strip()[-400:]}"]
    found = [] if ran.status == 3 else [f"exit status {ran.status}, expected 3"]
    if len(ran.report["incidents"]) != 1 or ran.report["run"]["status"] != "incident":
        return [
            *found,
            f"{len(ran.report['incidents'])} incidents, status {ran.report['run']['status']}, limits {ran.report['run']['limits']}",
        ]
    least, most = bounds(plain.stdout, want.steps)
    stdout = ran.stdout
    if shape.unwinds not in ran.stderr or not plain.stdout.startswith(stdout) or not least <= len(stdout) <= most:
        found.append(f"standard output is not plain Python's up to step {want.steps}: {ran.stdout[-200:]!r}, plain {plain.stdout!r}")
    ours, theirs = ran.left(shape), plain.left(shape)
    found += [
        f"{name} is not a beginning of plain Python's: {ours[name]!r}" for name in ours if not theirs.get(name, "").startswith(ours[name])
    ]
    return found


def bounds(stdout: str, steps: tuple[int, ...]) -> tuple[int, int]:
    """Where standard output may end: after the lines of all steps before the first of `steps`, before those of steps after the last."""
    lines = [(int(m[1]), m.start(), m.end()) for m in re.finditer(r"^step (\d+)\b.*\n?", stdout, re.M)]
    least = next((end for step, _, end in reversed(lines) if step < min(steps)), 0)
    most = next((start for step, start, _ in lines if step > max(steps)), len(stdout))
    return least, most


def trace_command(ran: Ran, want: Expected) -> list[str] | None:
    """The command that the report offers where it could not run the step again: in the reason, or as the terminal's next command."""
    texts: Iterable[str] = (str(ran.report["incidents"][0]["replay"]["reason"]), ran.stderr) if ran.report else ()
    for text in texts:
        if match := re.search(r"whynan run (--trace-step (\d+) [^\n;)`]*)", text):
            return match[1].split() if int(match[2]) in want.steps else None
    return None


def quiet_complaints(ran: Ran, plain: Ran, shape: Shape) -> list[str]:
    """A healthy run is left alone: same status, output, files; no incident, nothing said, the steps counted."""
    found = []
    if plain.status != 0:
        found.append(f"the twin itself ends with {plain.status}: {plain.stderr[-300:]}")
    if ran.status != plain.status:
        found.append(f"exit status {ran.status}, plain Python {plain.status}: {ran.stderr.strip()[-400:]}")
    if ran.stdout != plain.stdout:
        found.append(f"standard output {ran.stdout!r}, plain Python {plain.stdout!r}")
    if "whynan" in ran.stderr if shape.noisy else ran.stderr != plain.stderr:
        found.append(f"standard error {ran.stderr[-400:]!r}, plain Python {plain.stderr[-200:]!r}")
    if ran.left(shape) != plain.left(shape):
        found.append(f"files {ran.left(shape)}, plain Python {plain.left(shape)}")
    if ran.report is None:
        return [*found, "no report"]
    if ran.report["incidents"] or ran.report["run"]["status"] != "clean":
        found.append(f"false alarm: {ran.report['run']['status']} {[i['origin'] for i in ran.report['incidents']]}")
    if ran.report["run"]["steps"] not in several(shape.steps):
        found.append(f"run.steps {ran.report['run']['steps']}, expected {shape.steps}")
    return found


def plain_complaints(plain: Ran, want: Expected, birth: Birth, shape: Shape) -> list[str]:
    """Whether plain torch, too, sees the script go bad at the expected step, in the expected way."""
    event = plain.event
    if plain.status != 0 or event is None:
        return [f"the script does not go bad: status {plain.status}, {plain.stderr[-300:]}"]
    kinds = {"forward": ("loss",), "backward": ("gradient",), "optimizer": ("parameter",)}[birth.direction]
    afterwards = birth.direction == "optimizer" and event["what"] == "loss" and event["printed"] - 1 in want.steps
    found = [] if event["what"] in kinds or afterwards else [f"goes bad in a {event['what']}, expected {kinds}"]
    if event["printed"] not in {n for step in want.steps for n in (step, step + 1)}:
        found.append(f"goes bad after {event['printed']} printed steps, expected step {want.steps}")
    if want.parameters not in (None, ANY) and event["what"] == kinds[0] and "?" not in event["names"]:
        if tails(event["names"], shape) not in [tails(answer, shape) for answer in want.parameters]:
            found.append(f"bad are {event['names']}, expected one of {want.parameters}")
    return found


def tails(names: Iterable[str], shape: Shape) -> list[str]:
    """Names without what stands before them: of the root, or of the dictionary that holds a tensor."""
    return sorted(re.sub(r".*\['(.*)'\]$", r"\1", name.removeprefix("_orig_mod.").removeprefix(shape.prefix)) for name in names)
