"""Uses of `torch.inference_mode` in a program, and the text that puts `torch.no_grad` in the place of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program

_MODE = "torch.inference_mode"


def inference_modes(file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """`torch.inference_mode`, as a context, a decorator or a value that is one later, unless it is switched off by its argument."""
    names = program.names(file)
    for node in file.walk():
        items: list[ast.expr] = []
        is_read = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if is_read and isinstance(node, (ast.Name, ast.Attribute)) and names.qualified(node) == _MODE:
            above = file.parents.get(node)
            if isinstance(above, (ast.Assign, ast.AnnAssign, ast.keyword, ast.Dict, ast.IfExp)):
                yield node  # guard = torch.inference_mode
        if isinstance(node, ast.With):
            items = [item.context_expr for item in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            items = node.decorator_list
        for one in items:
            func = one.func if isinstance(one, ast.Call) else one
            if names.qualified(func) == _MODE and not (isinstance(one, ast.Call) and one.args):
                yield func


def without_inference(file: SourceFile, node: ast.expr) -> Iterator[Edit]:
    """The edits that write `torch.no_grad` for a use of inference mode: the name in place; imported by name, `torch.no_grad` is reached through an import beside it."""
    if isinstance(node, ast.Attribute):
        _start, end = file.span(node)
        yield Edit(file=file.path, start=end - len(node.attr), end=end, new="no_grad")
        return
    yield edit_of(file, node, "no_grad")
    for one in file.walk():
        if isinstance(one, ast.ImportFrom) and one.module == "torch":
            if any(alias.name == "no_grad" for alias in one.names):
                return
            for alias in one.names:
                if alias.name == "inference_mode" and alias.asname is None:
                    yield edit_of(file, alias, "no_grad")
