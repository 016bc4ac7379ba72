"""Steps are collected in a list and stacked, where a loop writes each into one tensor: `trace.append(h)` for `trace[:, t] = h`.

Only where the list is the tensor: it is made right before the loop, each round writes its own step and nothing else reads or
writes it, and the loop counts just the steps that the tensor has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk

_MADE = ("torch.zeros", "torch.empty", "torch.ones", "torch.full")
_OWN = frozenset({"new_zeros", "new_empty", "new_ones", "new_full"})
_KEEPS = frozenset({"device", "dtype"})  # arguments that the stacked steps have by themselves
_LEAVES = (ast.Continue, ast.Break, ast.Return, ast.Yield, ast.YieldFrom)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the write that failed."""
    for file, statement in list(raised_at(context))[:1]:
        found = _collected(statement, file, context)
        if found is not None:
            made, edits = found
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, made, "makes one tensor, into which each step is written"),
                belief=1.6,
            )


def _collected(statement: ast.stmt, file: SourceFile, context: Context) -> tuple[ast.Assign, tuple[Edit, ...]] | None:
    """What makes the tensor, and the edits; None where a list would be something else."""
    loop = file.enclosing(statement, ast.For)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(loop, ast.For) or not isinstance(target, ast.Subscript) or not isinstance(target.value, ast.Name):
        return None
    name, block = target.value.id, _block_of(loop, file)
    made = next((one for one in block[: block.index(loop)][::-1] if _binds(one, name)), None) if block else None
    axis = _axis_of(target, loop)
    if statement not in loop.body or not isinstance(made, ast.Assign) or axis is None or block is None:
        return None
    size = _size_of(made, axis, file, context)
    count = _count_of(loop)
    between = block[block.index(made) + 1 : block.index(loop)]
    is_alone = not any(_mentions(one, name) for one in between) and _mentions(loop, name) == 1
    if size is None or count is None or ast.unparse(size) != ast.unparse(count) or not is_alone:
        return None
    if any(isinstance(one, _LEAVES) for one in walk(loop)) or loop.orelse:
        return None
    assert isinstance(statement, ast.Assign)
    stack = spell(context.program.names(file), "torch.stack")
    at = f", dim={axis}" if axis else ""
    end = file.span(loop)[1]
    indent = file.line(loop.lineno)[: loop.col_offset]
    return made, (
        edit_of(file, made.value, "[]"),
        edit_of(file, statement, f"{name}.append({file.segment(statement.value)})"),
        Edit(file=file.path, start=end, end=end, new=f"{file.newline}{indent}{name} = {stack}({name}{at})"),
    )


def _block_of(loop: ast.For, file: SourceFile) -> list[ast.stmt] | None:
    above = file.parents.get(loop)
    for part in ("body", "orelse", "finalbody"):
        block = getattr(above, part, None)
        if isinstance(block, list) and loop in block:
            return block
    return None


def _binds(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and len(statement.targets) == 1
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id == name
    )


def _axis_of(target: ast.Subscript, loop: ast.For) -> int | None:
    """The axis at which the loop's number stands, all before and behind it being whole; None for any other index."""
    counter = dotted_name(loop.target)
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    at = [n for n, one in enumerate(parts) if counter is not None and dotted_name(one) == counter]
    whole = all(
        isinstance(one, ast.Slice) and not (one.lower or one.upper or one.step)
        for n, one in enumerate(parts)
        if n not in at
    )
    return at[0] if len(at) == 1 and whole else None


def _size_of(made: ast.Assign, axis: int, file: SourceFile, context: Context) -> ast.expr | None:
    """The size of an axis as the constructor is given it."""
    call = made.value
    if not isinstance(call, ast.Call) or any(one.arg not in _KEEPS for one in call.keywords):
        return None
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _OWN
    if not is_method and not context.program.names(file).is_call(call, *_MADE):
        return None
    first = call.args[0] if call.args else None
    sizes = first.elts if isinstance(first, (ast.Tuple, ast.List)) else call.args
    return sizes[axis] if axis < len(sizes) else None


def _count_of(loop: ast.For) -> ast.expr | None:
    """How often a loop runs: `range(steps)`."""
    call = loop.iter
    is_range = isinstance(call, ast.Call) and dotted_name(call.func) == "range" and len(call.args) == 1
    return call.args[0] if is_range and isinstance(call, ast.Call) else None


def _mentions(node: ast.AST, name: str) -> int:
    return sum(isinstance(one, ast.Name) and one.id == name for one in walk(node))
