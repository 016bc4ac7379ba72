"""Under `vmap`, where one value stands for many, a number that is read from a tensor stays one: `x.clamp(min=c)` for `max(x.item(), c)`.

A number is a constant to the derivative, and so is what takes its place: detached, unless it is made of data alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import operand, replace_whole, spell
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk

_READS = ".item() on a Tensor"
_BOUNDS = {"max": "min", "min": "max"}
_OF_MATH = re.compile(r"math\.(sqrt|log|log2|log10|log1p|exp|expm1|sin|cos|tan|tanh|fabs|floor|ceil)")
_DATA = re.compile(r"(?:targets?|labels?|truth|data|batch|masks?)(?:_\w+)?")
_WHY = "reads one number of a tensor that holds one for each sample of `vmap`"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the innermost line of the program that raised."""
    if not context.has_failed or not any(_READS in one.message for one in context.incident.exceptions):
        return
    for file, statement in raised_at(context):
        for node in walk(statement):
            tensor = _read(node)
            if isinstance(node, ast.Call) and tensor is not None:
                whole, text = _kept(node, tensor, file, context.program)
                yield Proposal(
                    edits=(replace_whole(file, whole, text),), culprit=culprit_of(file, node, _WHY), belief=1.5
                )
                return
        return


def _read(node: ast.AST) -> ast.expr | None:
    """The tensor of `x.item()` or `float(x)`."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    func = node.func
    if isinstance(func, ast.Attribute) and func.attr == "item" and not node.args:
        return func.value
    is_cast = isinstance(func, ast.Name) and func.id == "float" and len(node.args) == 1
    return node.args[0] if is_cast and not isinstance(node.args[0], ast.Constant) else None


def _kept(node: ast.Call, tensor: ast.expr, file: SourceFile, program: Program) -> tuple[ast.expr, str]:
    """What is replaced, the number or the plain function of it, and by what."""
    text, names = _constant(tensor, file), program.names(file)
    above = file.parents.get(node)
    if not isinstance(above, ast.Call) or above.keywords or node not in above.args:
        return node, text
    called = names.qualified(above.func) or ""
    if called in _BOUNDS and len(above.args) == 2:
        other = above.args[1 - above.args.index(node)]
        bound = _read(other)
        if bound is not None:
            return above, f"{spell(names, f'torch.{called}imum')}({text}, {_constant(bound, file)})"
        return above, f"{text}.clamp({_BOUNDS[called]}={file.segment(other)})"
    found = _OF_MATH.fullmatch(called)
    if found is not None and len(above.args) == 1:
        name = {"fabs": "abs"}.get(found[1], found[1])
        return above, f"{spell(names, f'torch.{name}')}({text})"
    return node, text


def _constant(tensor: ast.expr, file: SourceFile) -> str:
    """A tensor as what the derivative takes for a constant, as it took the number."""
    names = {one.id for one in ast.walk(tensor) if isinstance(one, ast.Name)}
    is_data = all(_DATA.fullmatch(one) for one in names - {"torch", "self"})
    return operand(file, tensor) + ("" if is_data else ".detach()")
