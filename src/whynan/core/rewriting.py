"""An expression of the user's after an edit, told from its syntax tree alone."""

from __future__ import annotations

import ast
import re

from whynan.core.catalogue import Edit

MODULES = ("torch", "F", "nn", "functional", "linalg", "special")
OF_ONE = frozenset(
    "log log2 log10 exp exp2 expm1 sqrt rsqrt reciprocal sigmoid acos asin atanh acosh arccos arcsin arctanh arccosh erfinv logit lgamma "
    "digamma".split()
)
SECOND = ("dim", "other", "exponent")  # the second argument by name
WHOLE_ARGUMENT = re.compile(r"[(,] ?\{\} ?[,)]")  # what stands there needs no parentheses
Tree = ast.expr | ast.AugAssign


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
    if part is None or (isinstance(part, ast.Constant) and edit.part != "keyword"):
        return None  # a number that is written there has no methods, and to bound it would be odd
    before, text, after = _cut(expression, part)
    changed = edit.template.replace("{}", text if WHOLE_ARGUMENT.search(edit.template) else _tight(part, text))
    if before.endswith("(") and after.startswith(")"):
        changed = _bare(changed)
    return before + changed + after


def _parsed(expression: str) -> Tree | None:
    """The tree of an expression or of `x /= y`."""
    try:
        body = ast.parse(expression).body
    except (SyntaxError, ValueError):
        return None
    if "\n" in expression or len(body) != 1:
        return None
    statement = body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement if isinstance(statement, ast.AugAssign) else None


def _part(tree: Tree, edit: Edit) -> ast.expr | None:
    if isinstance(tree, ast.AugAssign):
        return tree.value if edit.part == "divisor" and isinstance(tree.op, ast.Div) else None
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
    """The tensor that the call is about: `p` in `torch.log(p)` and in `p.log()`; None where it can't be told which it is."""
    method = _is_method(call)
    if method is None:
        return None
    if method and isinstance(call.func, ast.Attribute):
        position -= 1
        if position < 0:
            return call.func.value
    return call.args[position] if position < len(call.args) and not isinstance(call.args[position], ast.Starred) else None


def _is_method(call: ast.Call) -> bool | None:
    """Whether it is called on its tensor. `np.log(p)` and `self.log(p)` are not, and `a.softmax(b)` may be either."""
    if not isinstance(call.func, ast.Attribute) or _root(call.func.value) in MODULES:
        return False
    if call.func.attr in OF_ONE:
        return not call.args
    given = len(call.args) + sum(keyword.arg in SECOND for keyword in call.keywords)
    if given >= 2:
        return False
    return True if call.func.attr not in ("softmax", "log_softmax") or not call.args or _is_whole(call.args[0]) else None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_whole(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, int)


def _composition(expression: str, tree: Tree, edit: Edit) -> str | None:
    """`torch.log(torch.softmax(x, 1))` as one call. A template that begins with a point is a function beside the inner one."""
    if not isinstance(tree, ast.Call) or _called(tree) not in edit.calls:
        return None
    inner = _argument(tree, 0)
    first = _argument(inner, 0) if isinstance(inner, ast.Call) and _called(inner) in edit.inner else None
    if not isinstance(inner, ast.Call) or first is None:
        return None
    given: list[ast.expr | ast.keyword] = [*inner.args, *inner.keywords]
    arguments = [_cut(expression, node)[1] for node in given if node is not first]
    text, beside = _cut(expression, first)[1], edit.template.startswith(".")
    if beside and _is_method(inner):
        return _tight(first, text) + edit.template.replace("{}", ", ".join(arguments))
    place = _cut(expression, inner.func.value)[1] if isinstance(inner.func, ast.Attribute) else "torch"
    return place * beside + edit.template.replace("{}", ", ".join([text, *arguments]))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id if isinstance(call.func, ast.Name) else ""


def _cut(expression: str, node: ast.expr | ast.keyword) -> tuple[str, str, str]:
    first, last = node.col_offset, node.end_col_offset
    return expression[:first], expression[first:last], expression[last:]


def _tight(node: ast.expr, text: str) -> str:
    """The text in parentheses where a method call behind it would bind to a part of it only."""
    return text if isinstance(node, (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)) else f"({text})"


def _bare(text: str) -> str:
    """The text without the parentheses around all of it, if there are any."""
    inner = text[1:-1]
    return inner if text.startswith("(") and text.endswith(")") and _parsed(inner) is not None else text
