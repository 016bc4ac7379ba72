"""An evaluation between a forward and its backward comes after the backward, so that a replayed segment is in the forward's mode.

`acc = self.accuracy(x, y)`, which calls `self.net.eval()`, moves from between `loss = ...` and `loss.backward()` to behind it.
Not where the mode is set back before the backward, nor where the backward reads what would move.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.source.backward import cleared, find_backwards
from explainer.source.binding import Value, walk_scope
from explainer.source.callee import callees_of
from explainer.source.event import between
from explainer.source.file import SourceFile
from explainer.source.lineage import before, reads
from explainer.source.name import bound_names
from explainer.source.program import Program
from explainer.source.provenance import provenance_of
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_DEPTH = 3
_MAKES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_MOVES = (ast.Expr, ast.Assign, ast.AnnAssign, ast.With, ast.If, ast.For)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each backward before which something changes the mode and leaves it so."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        made, others = between(backward, context.program)
        forward = next((one for one in made if _is_forward(one, backward.file, context.program)), None)
        statements = [
            one for one in others if forward is not None and before(forward, one) and not isinstance(one, _MAKES)
        ]
        modes = [_mode(one, backward.file, context.program) for one in statements]
        set_ = [mode for mode in modes if mode is not None]
        if not set_ or set_[-1]:
            continue
        first = modes.index(False)
        moved = [one for one in statements[first:] if cleared(one) is None]
        if _may_move(moved, [*made, *statements, backward.statement]):
            file = backward.file
            yield Proposal(
                edits=(
                    *(remove_statement(file, one) for one in moved),
                    insert_after(file, backward.statement, "\n".join(lines_of(file, one) for one in moved)),
                ),
                culprit=culprit_of(
                    file, statements[first], "switches to eval mode between the forward and its backward"
                ),
                belief=2.0,
            )


def _is_forward(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement computes with parameters: what stands before it sets the mode of both passes."""
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr) or not provenance_of(program).trace(Value(value, file)).live:
        return False
    func = value.func if isinstance(value, ast.Call) else None
    if func is None:
        return True
    name = program.names(file).qualified(func) or ""  # `net = Net()` only makes what computes
    is_class = name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper()
    return not is_class and resolver_of(program).find_class(func, file) is None


def _mode(node: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> bool | None:
    """The mode in which a statement leaves a model, by the last call that says so: training or not; None where none does."""
    found = None
    for call in sorted((one for one in _nodes(node) if isinstance(one, ast.Call)), key=lambda one: one.lineno):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("eval", "train") and not call.keywords:
            if call.func.attr == "eval" and not call.args:
                found = False
            elif call.func.attr == "train" and len(call.args) < 2:  # an argument may be the mode as it was
                found = not (call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False)
        elif depth < _DEPTH:
            inner = [_mode(one.function, one.file, program, depth + 1) for one in callees_of(call.func, file, program)]
            found = next((one for one in inner if one is not None), found)
    return found


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    return walk_scope(node) if isinstance(node, (ast.FunctionDef, ast.Lambda)) else walk(node)


def _may_move(moved: Sequence[ast.stmt], block: Sequence[ast.stmt]) -> bool:
    """Whether none of what stays, up to the backward, reads what moves binds, and nothing leaves the block on the way."""
    bound = {name for one in moved for node in walk(one) for name in bound_names(node)}
    stays = {name for one in block if one not in moved for name in reads(one, graph=False)}
    leaves = (ast.Return, ast.Break, ast.Continue, ast.Raise)
    return (
        all(isinstance(one, _MOVES) for one in moved)
        and not bound & stays
        and not any(isinstance(node, leaves) for one in moved for node in walk(one))
    )
