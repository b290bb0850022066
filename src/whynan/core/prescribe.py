"""Names the remedies of the diagnosed causes and shows each as a change of the user's own line where that is simple and right."""

from __future__ import annotations

import ast

from whynan.core.catalogue import Advice, Catalogue, Edit, find
from whynan.core.incident import Diagnosis, Remedy
from whynan.core.records import Site
from whynan.core.session import Birth

CAUSES = 3  # remedies of the first causes only; those after them are doubts more than diagnoses


def prescribe(birth: Birth, diagnoses: tuple[Diagnosis, ...], catalogue: Catalogue) -> tuple[Remedy, ...]:
    remedies: dict[str, Remedy] = {}
    for diagnosis in diagnoses[:CAUSES]:
        entry = find(catalogue, diagnosis.cause)
        site = diagnosis.site or birth.site
        found = [(advice, _change(advice, site)) for advice in (entry.cause.remedies if entry else ())]
        for advice, change in sorted(found, key=lambda one: one[1] is None):  # what fits the user's line comes first
            remedies.setdefault(advice.name, Remedy(advice.name, diagnosis.cause, change or advice.text))
    return tuple(remedies.values())


def _change(advice: Advice, site: Site | None) -> str | None:
    """The lines before and after the change; None where no edit fits the expression."""
    if site is None or not site.expression or not site.source:
        return None
    for edit in advice.edits:
        expression = rewritten(site.expression, edit)
        if expression is not None and site.source.count(site.expression) == 1:
            return f"- {site.source}\n+ {site.source.replace(site.expression, expression)}"
    return None


def rewritten(expression: str, edit: Edit) -> str | None:
    """The expression after the edit; None where it has another shape than the edit is for."""
    tree = _parsed(expression)
    if tree is None or not expression.isascii():  # columns of the syntax tree count bytes
        return None
    if edit.inner:
        return _composition(expression, tree, edit)
    if isinstance(tree, ast.Call) and edit.calls and _called(tree) not in edit.calls:
        return None
    part = _part(tree, edit)
    if part is None:
        return None
    before, text, after = _cut(expression, part)
    changed = edit.template.replace("{}", _tight(part, text))
    if before.endswith("(") and after.startswith(")"):
        changed = _bare(changed)
    return before + changed + after


def _parsed(expression: str) -> ast.expr | None:
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return None if "\n" in expression else tree


def _part(tree: ast.expr, edit: Edit) -> ast.expr | None:
    if edit.part == "whole":
        return tree
    if edit.part == "keyword":
        keywords = tree.keywords if isinstance(tree, ast.Call) else []
        return next((k.value for k in keywords if k.arg == edit.keyword), None)
    if isinstance(tree, ast.BinOp):
        if edit.part == "divisor" and isinstance(tree.op, ast.Div):
            return tree.right
        return tree.left if edit.part == "base" and isinstance(tree.op, ast.Pow) else None
    if not isinstance(tree, ast.Call):
        return None
    return _argument(tree, 1 if edit.part == "divisor" else 0)


def _argument(call: ast.Call, position: int) -> ast.expr | None:
    """The tensor that the call is about: `p` in `torch.log(p)` and in `p.log()`."""
    function = call.func
    method = isinstance(function, ast.Attribute) and not _is_module(function.value)
    if method and isinstance(function, ast.Attribute):
        position -= 1
        if position < 0:
            return function.value
    return call.args[position] if position < len(call.args) and not isinstance(call.args[position], ast.Starred) else None


def _is_module(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "nn", "functional", "linalg", "special")


def _composition(expression: str, tree: ast.expr, edit: Edit) -> str | None:
    """`torch.log(torch.softmax(x, 1))` as one call with the arguments of the inner one."""
    if not isinstance(tree, ast.Call) or _called(tree) not in edit.calls:
        return None
    inner = _argument(tree, 0)
    if not isinstance(inner, ast.Call) or _called(inner) not in edit.inner:
        return None
    first = _argument(inner, 0)
    if first is None:
        return None
    rest = [ast.unparse(node) for node in inner.args if node is not first] + [ast.unparse(keyword) for keyword in inner.keywords]
    return edit.template.replace("{}", ", ".join([_cut(expression, first)[1], *rest]))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def _cut(expression: str, node: ast.expr) -> tuple[str, str, str]:
    first, last = node.col_offset, node.end_col_offset
    return expression[:first], expression[first:last], expression[last:]


def _tight(node: ast.expr, text: str) -> str:
    """The text in parentheses where a method call behind it would bind to a part of it only."""
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)) else f"({text})"


def _bare(text: str) -> str:
    """The text without the parentheses around all of it, if there are any."""
    inner = text[1:-1]
    return inner if text.startswith("(") and text.endswith(")") and _parsed(inner) is not None else text
