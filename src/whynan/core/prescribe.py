"""Names the remedies of the diagnosed causes and shows each as a change of the user's own line where that is simple and right."""

from __future__ import annotations

import ast
from dataclasses import replace

from whynan.core.catalogue import Advice, Catalogue, Edit, find
from whynan.core.floors import making
from whynan.core.incident import Diagnosis, Remedy
from whynan.core.operands import numbers
from whynan.core.records import HALVES, Operation, Site
from whynan.core.rewriting import rewritten
from whynan.core.session import Birth
from whynan.core.sources import tree_of

CAUSES = 3  # remedies of the first causes only; those after them are doubts more than diagnoses
OF_TENSORS = "{}."  # in a template: a method of the operand


def prescribe(birth: Birth, diagnoses: tuple[Diagnosis, ...], catalogue: Catalogue) -> tuple[Remedy, ...]:
    remedies: dict[str, Remedy] = {}
    for diagnosis in diagnoses[:CAUSES]:
        entry = find(catalogue, diagnosis.cause)
        site, operation = diagnosis.site or birth.site, diagnosis.operation or birth.operation
        advised = [advice for advice in (entry.cause.remedies if entry else ()) if advice.name not in diagnosis.ruled_out]
        found = [(advice, _change(advice, site, operation)) for advice in advised]
        for advice, change in sorted(found, key=lambda one: one[1] is None):  # what fits the user's line comes first
            remedies.setdefault(advice.name, Remedy(advice.name, diagnosis.cause, change or advice.text))
    return tuple(remedies.values())


def _change(advice: Advice, site: Site | None, operation: Operation) -> str | None:
    """The lines before and after the change; None where no edit fits the expression."""
    if site is None or not site.expression or not site.source:
        return None
    for edit in advice.edits:
        edit = replace(edit, template=_template(edit, operation))
        expression = rewritten(site.expression, edit) if edit.template else None
        if expression is None or site.source.count(site.expression) != 1:
            continue
        if "torch." not in expression or "torch." in site.source or _binds_torch(site.file):
            return _where_made(edit, site) or f"- {site.source}\n+ {site.source.replace(site.expression, expression)}"
    return None


def _where_made(edit: Edit, site: Site) -> str | None:
    """In words, of a divisor that is used again: a floor at one use would only move the failure to the next."""
    made = making(site) if edit.part == "divisor" else None
    if made is None:
        return None
    again = f" also on line{'s' * (len(made.others) > 1)} {', '.join(map(str, made.others))}" if made.others else " more than once there"
    floored = edit.template.replace("{}", made.name)
    return f"Floor it where it is made, after line {made.line}: {made.name} = {floored}. It is used{again}."


def _template(edit: Edit, operation: Operation) -> str:
    """The template for what the edited part is in the record; empty where there is none: a number has no methods of tensors, and a
    truth value or a complex number no bounds."""
    if any(number.role == edit.part or (number.role, edit.part) == ("input", "argument") for number in numbers(operation)):
        return edit.number or (edit.template if OF_TENSORS not in edit.template else "")
    tensor = next((one for one in operation.inputs if one.role == edit.part), next(iter(operation.inputs), None))
    formats = [tensor.stats.dtype if tensor else "", *(out.dtype for out in operation.outputs)]
    if OF_TENSORS in edit.template and any(format_.startswith(("bool", "complex")) for format_ in formats[:1]):
        return ""
    return edit.half if edit.half and any(format_ in HALVES for format_ in formats) else edit.template


def _binds_torch(file: str) -> bool:
    """Whether `torch` is a name in the file; yes where it can't be read."""
    tree = tree_of(file)
    if tree is None:
        return True
    imported = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return not tree.body or any((alias.asname or alias.name.partition(".")[0]) == "torch" for alias in imported)
