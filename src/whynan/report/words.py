"""The sentences that all reports share, made from the document."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from whynan.report.model import Document, IncidentPart, Input, Number, Output, RemedyPart, RunPart

FEW = 8
COURSE, GREW = 4, 3.0  # steps that are shown of a course; growth from which one is worth showing
PHASES: dict[str, str] = {"input": "input preparation", "loss": "loss computation"}
OPERATORS = {
    "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "mul": "*", "add": "+", "sub": "-", "matmul": "@", "neg": "-", "pos": "+",
    "and_": "&", "or_": "|", "xor": "^", "invert": "~",
}  # fmt: skip
NUMBERS = ("int", "float", "bool")
CUT_OFF = "this run did not come to its end: it was killed, or still goes on"
LARGEST = {"float16": "65504", "bfloat16": "3.39e38", "float32": "3.40e38", "float64": "1.80e308"}
BECAME = {
    "nan": "became NaN",
    "inf": "became non-finite",
    "divergence": "diverged",
    "loss-scale-collapse": "is non-finite at every loss scale",
}


def what(incident: IncidentPart) -> str:
    """One sentence, the cause's name in brackets."""
    cause = next(iter(incident.causes), None)
    if cause is None:
        return f"{event(incident)}."
    return f"{event(incident)}: {cause.summary.rstrip('.')} [{cause.name}]."


def event(incident: IncidentPart) -> str:
    seen = incident.first_seen
    if seen.what == "exception":
        error = seen.names[0].rstrip(" .:;\n") if seen.names else "an exception"
        return f"At step {incident.step} a non-finite value raised {error}"
    became = BECAME[incident.kind]
    if seen.what == "loss":
        return f"The loss {became} at step {incident.step}"
    if len(seen.names) == 1:
        return f"The {seen.what} {'of ' if seen.what == 'gradient' else ''}{seen.names[0]} {became} at step {incident.step}"
    return f"{len(seen.names) or 'Some'} {seen.what}s {became} at step {incident.step}"


def circumstances(incident: IncidentPart) -> str:
    """Module, phase, step, and the rows or parameters."""
    origin = incident.origin
    parts = []
    if origin.module is not None:
        parts.append(f"module {origin.module}" if origin.module else "the root module")
    if incident.phase is not None:
        parts.append(PHASES.get(incident.phase, incident.phase) if origin.op != "input" else incident.phase)
    parts.append(f"step {incident.step}")
    if origin.samples:
        parts.append(several("row", origin.samples) + of_dataset(origin.dataset_indices))
    if origin.parameters:
        parts.append(several("parameter", origin.parameters))
    return ", ".join(parts)


def of_dataset(indices: Sequence[int] | None) -> str:
    return f" (dataset {several('index', indices, plural='indices')})" if indices else ""


def several(noun: str, items: Sequence[object], plural: str | None = None) -> str:
    if len(items) == 1:
        return f"{noun} {items[0]}"
    some = ", ".join(map(str, items[:FEW]))
    rest = f" and {len(items) - FEW} more ({len(items)} in all)" if len(items) > FEW else ""
    return f"{plural or noun + 's'} {some}{rest}"


def born_by(incident: IncidentPart) -> str | None:
    """The operation: the kernel that ran and what the user wrote where that has another name."""
    origin = incident.origin
    if origin.op is None:
        return None
    if origin.op == "input":
        return "it came with the input of the step"
    if origin.since_made is not None:
        return f"{origin.since_made} is not finite since it was made; no step of the training made it so"
    if origin.op in ("param", "buffer"):
        return f"it was already in a {'parameter' if origin.op == 'param' else 'buffer'} before this step"
    names = [name for name in (origin.autograd_node, written(origin.call)) if name and name.rpartition(".")[2] != origin.op]
    return f"operation: {origin.op}" + (f" ({', '.join(names)})" if names else "")


def written(call: str | None) -> str | None:
    """The sign of an operator in place of its function's name."""
    module, _, name = (call or "").rpartition(".")
    return OPERATORS.get(name, call) if module == "operator" else call


def evidence(incident: IncidentPart) -> list[str]:
    """The leading cause's own numbers, without one what went into the operation, and what came out."""
    origin = incident.origin
    if incident.causes and incident.causes[0].evidence:
        found = list(incident.causes[0].evidence)
    else:
        found = [f"{operand.role or 'input'}: {measures(operand)}" for operand in origin.inputs[:FEW]]
    if course := went(incident):
        found.append(course)
    if origin.output is not None:
        limit = LARGEST.get(origin.output.dtype) if origin.output.posinf or origin.output.neginf else None
        found.append(f"output: {measures(origin.output)}" + (f"; {origin.output.dtype} ends at {limit}" if limit else ""))
    return found


def went(incident: IncidentPart) -> str | None:
    """How the operand came to be what it is, where it was not so a few steps before."""
    origin = incident.origin
    ends = [(one.step, one.min, one.max) for one in incident.course]
    sizes = [(step, max(abs(low), abs(high))) for step, low, high in ends if not isinstance(low, str) and not isinstance(high, str)]
    now = origin.inputs[0].absmax if origin.inputs else None
    if not sizes or not isinstance(now, (int, float)) or now < GREW * sizes[0][1]:
        return None
    shown = sizes if len(sizes) <= COURSE else [*sizes[:1], *sizes[-COURSE + 1 :]]
    return f"the {origin.inputs[0].role or 'input'} reached " + ", ".join(f"{short(size)} at step {step}" for step, size in shown)


def measures(stats: Input | Output) -> str:
    total = math.prod(stats.shape)
    if total == 1:
        return f"{'the number' if stats.dtype in NUMBERS else f'{stats.dtype} {shape_of(stats)},'} {single(stats)}"
    counts = [(stats.nan, "NaN"), (stats.posinf, "inf"), (stats.neginf, "-inf"), (stats.zero or 0, "zero")]
    sick = [f"{count} of {total} {name}" for count, name in counts if count]
    spread = [f"{short(stats.min)} to {short(stats.max)}"] if stats.min is not None and stats.max is not None else []
    return f"{stats.dtype} {shape_of(stats)}, " + ", ".join(spread + sick or ["empty"])


def shape_of(stats: Input | Output) -> str:
    return "x".join(map(str, stats.shape)) or "scalar"


def single(stats: Input | Output) -> str:
    """The value of what has one element."""
    sick = (name for count, name in ((stats.nan, "NaN"), (stats.posinf, "inf"), (stats.neginf, "-inf")) if count)
    return next(sick, short(stats.min) if stats.min is not None else "a value that was not measured")


def short(value: Number | None) -> str:
    return f"{value:.6g}" if isinstance(value, (int, float)) else str(value)


def trial(remedy: RemedyPart) -> str:
    """Whether the change was shown to work, and how to try it where it was not."""
    proof, because = remedy.proof, f": {remedy.reason}" if remedy.reason else ""
    if remedy.status == "proven" and proof is not None:
        return f"proven: {proof.steps} re-run steps finite, loss {short(proof.loss_first)} -> {short(proof.loss_last)}"
    if remedy.status == "not-tried":
        return f"not tried{because}; to try it, make the change and run the same command again"
    return f"{remedy.status}{because}"


def notes(document: Document, incident: IncidentPart) -> list[str]:
    """What would make the diagnosis wrong, what else it may be, and what could not be done."""
    found = [incident.causes[0].doubt] if incident.causes and incident.causes[0].doubt else []
    if others := incident.causes[1:4]:
        found.append("Also possible: " + ", ".join(f"{cause.name} ({short(cause.confidence)})" for cause in others) + ".")
    if not incident.causes and incident.origin.op is not None:
        found.append("No cause of the catalogue fits; the place and the numbers are what was seen.")
    if not incident.replay.reproduced:
        found.append(f"The step could not be run again: {(incident.replay.reason or 'the reason is not known').rstrip('.')}.")
    return found + [f"Limit of this run: {limit}" for limit in document.run.limits]


def commands(document: Document, incident: IncidentPart) -> list[str]:
    """What to do next, each a line to copy."""
    found = []
    if incident.origin.op is None and incident.replay.command is not None:
        found.append(incident.replay.command)
    elif incident.origin.op is None:
        found.append(shlex.join(["whynan", "run", "--trace-step", str(incident.step), *program(document), *document.run.argv]))
    elif incident.folder is not None:
        found.append(shlex.join(["whynan", "show", "--check", incident.folder]))
    if incident.causes:
        found.append(shlex.join(["whynan", "explain", incident.causes[0].name]))
    return found


def program(document: Document) -> list[str]:
    """The script, or `-m` and the module."""
    script = document.run.script
    return script.split(" ", 1) if script.startswith("-m ") else [script]


def one_line(incident: IncidentPart) -> str:
    origin = incident.origin
    place = f" at {origin.file}:{origin.line}" if origin.file else ""
    kept = f" ({incident.folder})" if incident.folder else ""
    return f"{what(incident).rstrip('.')}{place}{kept}"


def end_of_clean(run: RunPart) -> str:
    """How a run without an incident ended. It is not called clean where we did not see all of it."""
    if any(limit.startswith(CUT_OFF) for limit in run.limits):
        return "no incident so far (killed, or still going on)"
    if any(limit.startswith(("watching ended", "the run was not watched")) for limit in run.limits):
        return "nothing went bad as long as it was watched, which was not to its end,"
    ends = {"clean": "nothing went bad", "error": "no incident, but the script failed"}
    return ends.get(run.status, f"status {run.status}")
