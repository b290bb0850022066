"""From a running frame to the place in the user's source: line, columns, the exact expression and the call as it is written.

Columns come from the code object's own position table (Python 3.11 and later), so a rewritten module needs no second compilation.
"""

from __future__ import annotations

import ast
import functools
import linecache
from types import CodeType, FrameType

from whynan.core.records import Site
from whynan.core.sources import tree_of
from whynan.core.user_code import is_user_file

OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
Span = tuple[int, int, int, int]


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code, from `frame` outwards."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def site_of(frame: FrameType) -> Site:
    return _site(frame.f_code, frame.f_lasti, frame.f_lineno)


@functools.lru_cache(maxsize=4096)
def _site(code: CodeType, lasti: int, lineno: int) -> Site:
    span = _span(code, lasti)
    line = span[0] if span else lineno
    text = linecache.getline(code.co_filename, line).rstrip("\r\n")
    node = _expressions(code.co_filename).get(span) if span else None
    column = _columns(code.co_filename, span) if span else None
    return Site(
        file=code.co_filename,
        line=line,
        function=code.co_qualname.replace("<locals>.", ""),
        source=text.strip(),
        column=column,
        expression=text[slice(*column)] if column else None,
        call=_call(node),
    )


def _span(code: CodeType, lasti: int) -> Span | None:
    positions = list(code.co_positions())
    index = lasti // 2
    if not 0 <= index < len(positions):
        return None
    line, end_line, column, end_column = positions[index]
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, end_line, column, end_column


@functools.lru_cache(maxsize=64)
def _expressions(filename: str) -> dict[Span, ast.AST]:
    """The expressions of a file by their span; the outermost of those with the same span is kept."""
    tree = tree_of(filename)
    found: dict[Span, ast.AST] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.expr, ast.stmt)) and node.end_lineno is not None and node.end_col_offset is not None:
            found.setdefault((node.lineno, node.end_lineno, node.col_offset, node.end_col_offset), node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.end_lineno != node.lineno:
                found.setdefault(_from_method_name(node, node.func), node)
    return found


def _from_method_name(call: ast.Call, method: ast.Attribute) -> Span:
    """Where Python places the call of a method whose name stands on a later line than the object: the name up to the end."""
    assert method.end_lineno
    assert method.end_col_offset
    assert call.end_lineno
    assert call.end_col_offset
    return method.end_lineno, call.end_lineno, method.end_col_offset - len(method.attr), call.end_col_offset


def _columns(filename: str, span: Span) -> tuple[int, int]:
    """Character columns on the first line of the span (the syntax tree counts bytes)."""
    text = linecache.getline(filename, span[0]).rstrip("\r\n")
    raw = text.encode("utf-8", "surrogatepass")
    first = len(raw[: span[2]].decode("utf-8", "replace"))
    last = len(raw[: span[3]].decode("utf-8", "replace")) if span[1] == span[0] else len(text)
    return first, last


def _call(node: ast.AST | None) -> str | None:
    """What is written at the node: the name that is called, or the function of an operator."""
    if isinstance(node, ast.Expr | ast.Await):
        return _call(node.value)
    if isinstance(node, ast.Call):
        return _dotted(node.func)
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        return "operator." + OPERATORS[type(node.op)]
    return None


def _dotted(node: ast.expr) -> str | None:
    """`torch.log`, `self.head`, and only the method's name where it is called on an expression: `(a - b).norm` gives `norm`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base and isinstance(node.value, (ast.Name, ast.Attribute)) else node.attr
    return None
