"""Clears the flag that switches grad mode off where a class unfreezes its parameters and forgets it.

def freeze(self):                          def unfreeze(self):
    self.frozen = True                         self.frozen = False
    ...requires_grad_(False)                   ...requires_grad_(True)

with torch.set_grad_enabled(not self.frozen):
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.network.freeze import find_freezes
from explainer.source.program import Program
from explainer.source.tree import walk

_SWITCHES = frozenset({"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each method that lets parameters train again and leaves such a flag as it was."""
    program = context.program
    for file, owner in dict.fromkeys(_classes(program)):
        frozen, unfrozen = (list(dict.fromkeys(_methods(owner, file, program, is_on=one))) for one in (False, True))
        flags = {name: value for one in frozen for name, value in _flags(one)}
        guards = [(name, one) for name, one in _guards(owner, file, program) if name in flags]
        for method in unfrozen if guards else ():
            name, block = guards[0]
            if method in frozen or method.name == "__init__" or name in dict(_assigned(method)):
                continue
            first = method.body[1] if ast.get_docstring(method) is not None and len(method.body) > 1 else method.body[0]
            yield Proposal(
                edits=(insert_before(file, first, f"self.{name} = {not flags[name]}"),),
                culprit=culprit_of(file, block, f"switches grad mode by `self.{name}`, which `{method.name}` leaves as it was"),
                belief=2.0,
            )  # fmt: skip


def _classes(program: Program) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """The classes that freeze or unfreeze parameters."""
    for one in find_freezes(program):
        owner = one.file.enclosing(one.statement, ast.ClassDef)
        if isinstance(owner, ast.ClassDef):
            yield one.file, owner


def _methods(
    owner: ast.ClassDef, file: SourceFile, program: Program, *, is_on: bool
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The methods of a class that let parameters train, or freeze them."""
    for one in find_freezes(program):
        method = program.names(file).function_of(one.statement) if one.file is file and one.is_on is is_on else None
        if isinstance(method, _FUNCTIONS) and method in owner.body:
            yield method


def _flags(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, bool]]:
    """The attributes that a method sets to True or False."""
    return ((name, value) for name, value in _assigned(method) if isinstance(value, bool))


def _assigned(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, object]]:
    """The attributes of `self` that a method assigns, with their values where these are constants."""
    for one in walk(method):
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        value = getattr(one, "value", None)
        for name in filter(None, map(_own, targets)):
            yield name, value.value if isinstance(value, ast.Constant) else None


def _guards(owner: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[tuple[str, ast.AST]]:
    """The attributes by which a method of a class switches grad mode, each with the `with` or `if` that reads it."""
    for node in walk(owner):
        if isinstance(node, (ast.With, ast.AsyncWith)):
            read: list[ast.AST] = [
                one.context_expr for one in node.items if _has_switch(one.context_expr, file, program)
            ]
        elif isinstance(node, ast.If):
            blocks = (one for one in (*node.body, *node.orelse) if isinstance(one, (ast.With, ast.AsyncWith)))
            is_switch = any(_has_switch(item.context_expr, file, program) for one in blocks for item in one.items)
            read = [node.test] if is_switch else []
        else:
            continue
        yield from ((name, node) for one in read for each in walk(one) if (name := _own(each)))


def _has_switch(node: ast.AST, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    return any(isinstance(one, (ast.Attribute, ast.Name)) and names.qualified(one) in _SWITCHES for one in walk(node))


def _own(node: ast.AST) -> str | None:
    """The name of an attribute of `self`."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else None
