"""What an incident's folder holds to see the birth again without the training: operands, batch, random state, and `repro.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from whynan.core.incident import Incident
from whynan.torch.arguments import Held
from whynan.torch.replay import tensors_in
from whynan.torch.trace import Trace

SIZE_LIMIT = 256 << 20  # bytes of one file; larger operands are left out and repro.py says so

REPRO = '''"""Repeats the birth from the files beside this script: exit 0 if the result is not finite here either, 1 if it is."""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

tensors = load_file(str(Path(__file__).with_name("inputs.safetensors")))


def t(name):
    """An operand with the strides that it had."""
    return tensors[name].clone()


{body}

outputs = [o for o in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(o, torch.Tensor)]
bad = [o for o in outputs if o.is_floating_point() and not torch.isfinite(o).all()]
for output in bad:
    print({what!r}, "gives", int(torch.isnan(output).sum()), "NaN and", int(torch.isinf(output).sum()), "Inf of", output.numel())
if not bad:
    print({what!r}, "is finite here")
sys.exit(0 if bad else 1)
'''
DATA = """result = list(tensors.values())"""


def writer(incident: Incident, trace: Trace | None, batch: Any) -> Callable[[Path], None]:
    """The function that fills the incident's folder; it is called once, by the recorder."""

    def write(folder: Path) -> None:
        from safetensors.torch import save_file

        held = trace.held.get(incident.birth.operation.index) if trace is not None and incident.birth is not None else None
        parts = _batch(batch)
        if parts:
            save_file(parts, str(folder / "batch.safetensors"))
        save_file({"torch": torch.get_rng_state()}, str(folder / "random.safetensors"))
        if held is not None and incident.birth is not None and incident.birth.op not in ("input", "param", "buffer"):
            _write_operation(folder, held, incident.birth.operation.kernel)
        elif parts:
            save_file(parts, str(folder / "inputs.safetensors"))
            (folder / "repro.py").write_text(REPRO.format(body=DATA, what="the batch"), encoding="utf-8")

    return write


def _write_operation(folder: Path, held: Held, kernel: str) -> None:
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    arguments = [_literal(value, tensors) for value in held.args]
    arguments += [f"{name}={_literal(value, tensors)}" for name, value in held.kwargs.items()]
    if sum(t.nbytes for t in tensors.values()) > SIZE_LIMIT:
        return
    call = f"torch.ops.{kernel}({', '.join(arguments)})"
    save_file(tensors, str(folder / "inputs.safetensors"))
    (folder / "repro.py").write_text(REPRO.format(body=f"result = {call}", what=kernel), encoding="utf-8")


def _literal(value: Any, tensors: dict[str, torch.Tensor]) -> str:
    """Python source of an argument; tensors go to the file under a name."""
    if isinstance(value, torch.Tensor):
        name = f"operand_{len(tensors)}"
        tensors[name] = value.detach().cpu().contiguous().clone()
        return f't("{name}")'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_literal(v, tensors) for v in value) + "]"
    if isinstance(value, float):
        return f'float("{value!r}")'
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    if isinstance(value, torch.device):
        return 'torch.device("cpu")'
    return repr(value) if isinstance(value, (bool, int, str, type(None))) else "None"


def _batch(value: Any) -> dict[str, torch.Tensor]:
    found: Iterator[torch.Tensor] = iter(tensors_in(value))
    parts = {
        f"batch_{i}": t.detach().cpu().contiguous().clone() for i, t in zip(range(64), found, strict=False) if t.layout is torch.strided
    }
    return parts if sum(t.nbytes for t in parts.values()) <= SIZE_LIMIT else {}
