"""Gradient hooks go on parameters that get a gradient: `if weight.requires_grad:` round the registration in a loop over all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import in_block
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.tree import walk

_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")
_PARAMETERS = ("parameters", "named_parameters")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each registration that the traceback names, in a loop over a model's parameters."""
    for file in context.program.parsed() if context.has_failed else ():
        lines = crash_frames(file, context)
        for node in file.walk() if lines else ():
            name = _hooked(node) if getattr(node, "lineno", None) in lines else None
            edits = _edits(name, node, file) if name is not None else ()
            if edits:
                why = f"puts a hook on `{name}` also where it is frozen: it gets no gradient"
                yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=1.8)


def _hooked(node: ast.AST) -> str | None:
    """The name on which a call registers a gradient hook."""
    func = node.func if isinstance(node, ast.Call) else None
    is_hook = isinstance(func, ast.Attribute) and func.attr in _HOOKS and isinstance(func.value, ast.Name)
    return func.value.id if is_hook and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) else None


def _edits(name: str, node: ast.AST, file: SourceFile) -> tuple[Edit, ...]:
    loop = file.enclosing(node, ast.For, ast.comprehension, ast.ListComp, ast.GeneratorExp, ast.FunctionDef)
    if isinstance(loop, ast.For) and _is_of_parameters(loop.target, loop.iter, name):
        statement = file.statement(node)
        return in_block(file, [statement], f"if {name}.requires_grad:") if statement in loop.body else ()
    if isinstance(loop, (ast.ListComp, ast.GeneratorExp)) and len(loop.generators) == 1:
        one = loop.generators[0]
        if _is_of_parameters(one.target, one.iter, name) and not one.ifs:
            return (edit_of(file, one.iter, f"{file.segment(one.iter)} if {name}.requires_grad"),)
    return ()


def _is_of_parameters(target: ast.expr, source: ast.expr, name: str) -> bool:
    is_bound = any(isinstance(one, ast.Name) and one.id == name for one in walk(target))
    return is_bound and any(isinstance(one, ast.Attribute) and one.attr in _PARAMETERS for one in walk(source))
