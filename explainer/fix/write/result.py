"""The results of in-place functions and modules that nobody takes, because the argument was to change: `self.act(x)` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.write.out_of_place import assign_result
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of


def take_results(node: ast.Call, file: SourceFile, program: Program) -> tuple[Edit, ...] | None:
    """The edits after which a function or module that works in place may make a new tensor.

    Each statement that only calls it, for what it does to its argument, takes the result: `x = F.relu(x)`. None where one
    of them cannot.
    """
    edits: list[Edit] = []
    for where, call in (*_itself(node, file, program), *_runs(node, file, program)):
        edit = assign_result(call, call.args[0], where) if call.args else None
        if edit is None:
            return None
        edits.append(edit)
    return tuple(edits)


def _itself(node: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """A call that stands alone; that of a class makes a module, and changes nothing yet."""
    last = (program.names(file).qualified(node.func) or "").rpartition(".")[2]
    if isinstance(file.parents.get(node), ast.Expr) and not last[:1].isupper():
        yield file, node


def _runs(node: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The statements that only call the module which a call constructs, itself or in a container."""
    resolver = resolver_of(program)
    for where in program.parsed():
        for one in where.walk():
            call = one.value if isinstance(one, ast.Expr) else None
            if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
                continue
            name = dotted_name(call.func) or ""
            if name.count(".") > 1 or ("." in name and not name.startswith("self.")) or not name:
                continue
            made = resolver.constructors_of(Value(call.func, where))
            if any(each.file is file and node in set(walk(each.node)) for each in made):
                yield where, call
