"""A write through `.data` into what a backward keeps becomes one that autograd sees: a new tensor, under the same name.

`w.data.masked_fill_(m, 0.0)` becomes `w = w.masked_fill(m, 0.0)`, `w.data[m] = 0` becomes a clone and `w[m] = 0`. Only on the
lines that a trace saw, since weights are written so outside of the graph. Never for an operation without a derivative
(`round_`, `sign_`, `copy_`): there `.data` may be what passes the gradient straight through.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.write.out_of_place import out_of_place
from explainer.model.patch import Edit
from explainer.model.trace import HIDDEN_WRITE
from explainer.source.graph.alias import is_aliased, is_for_others
from explainer.source.graph.write import AUGMENTED, FUNCTION, METHOD, SUBSCRIPT, Write, find_writes
from explainer.source.name import dotted_name

_MEANT = (
    "gradients then go through the write as through any operation; where `.data` was to pass them on unchanged, "
    "write `x + (y - x).detach()`"
)
_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"
_NO_DERIVATIVE = frozenset(
    {"round_", "sign_", "floor_", "ceil_", "trunc_", "frac_", "heaviside_", "copy_", "zero_", "fill_", "bernoulli_", "set_"}
    | {"normal_", "uniform_", "random_", "exponential_", "fmod_", "remainder_", "floor_divide_", "resize_"}
    | {"gt_", "lt_", "ge_", "le_", "eq_", "ne_", "logical_not_", "logical_and_", "logical_or_", "index_copy_"}
)  # fmt: skip


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for the traced writes that autograd did not see, and for what is written so to the same tensors."""
    writes = find_writes(context.program)
    found: dict[ast.AST, tuple[Write, Write]] = {}
    for file, statement in traced_places(HIDDEN_WRITE, context):
        for write in writes:
            tensor = _behind(write)
            if write.file is file and file.statement(write.node) is statement and tensor is not None:
                found |= {one.node: (one, same) for one in writes if (same := _behind(one)) and _is_same(same, tensor)}
    chosen = {node: pair for node, pair in found.items() if not is_for_others(pair[1], context.program)}
    edits = {node: _edits(*pair) for node, pair in chosen.items()}
    mended = [chosen[node] for node, made in edits.items() if made]
    if not mended:
        return
    first, tensor = mended[0]
    aliased = any(is_aliased(one, context.program) for _, one in mended)
    yield Proposal(
        edits=tuple(edit for made in edits.values() for edit in made),
        culprit=culprit_of(first.file, first.node, f"writes `{tensor.name}` in place, unseen by autograd"),
        belief=1.5,
        applicability="unsafe",
        because=_ALIASED if aliased else _MEANT,
    )


def _behind(write: Write) -> Write | None:
    """A write through `.data` as one of the tensor itself; None for any other."""
    hidden = _hidden(write.target)
    name = dotted_name(hidden.value) if hidden is not None else None
    return replace(write, name=name, target=hidden.value) if hidden is not None and name else None


def _is_same(one: Write, other: Write) -> bool:
    """Whether two writes are of one variable of one function."""
    around = [each.file.enclosing(each.node, ast.FunctionDef, ast.AsyncFunctionDef) for each in (one, other)]
    return one.file is other.file and one.name == other.name and around[0] is around[1]


def _hidden(target: ast.expr) -> ast.Attribute | None:
    """`x.data` of what is written, `x.data` or a part of it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target if isinstance(target, ast.Attribute) and target.attr == "data" else None


def _edits(write: Write, tensor: Write) -> tuple[Edit, ...]:
    file, node, name = write.file, write.node, tensor.name
    hidden = _hidden(write.target)
    method = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
    is_value = isinstance(node, ast.Call) and not isinstance(file.parents.get(node), ast.Expr)
    if method in _NO_DERIVATIVE or is_value or hidden is None:
        return ()
    seen = edit_of(file, hidden, name or "")
    if write.kind == SUBSCRIPT or isinstance(write.target, ast.Subscript):
        return (insert_before(file, file.statement(node), f"{name} = {name}.clone()"), seen)
    edits = out_of_place(write)
    if write.kind == FUNCTION:
        return (*(replace(one, new=one.new.replace(f"{name}.data = ", f"{name} = ", 1)) for one in edits), seen)
    lead = f"{name}.data = {name}.data"
    if write.kind not in (AUGMENTED, METHOD) or len(edits) != 1 or not edits[0].new.startswith(lead):
        return ()
    return (replace(edits[0], new=f"{name} = {name}{edits[0].new.removeprefix(lead)}"),)
