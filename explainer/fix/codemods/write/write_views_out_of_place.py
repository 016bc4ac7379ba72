"""Views that one call returned together are written out of place, all that a function writes of them in one edit.

`i, f = x.chunk(2)` with `i += a` and `f.mul_(b)` becomes `i = i + a` and `f = f.mul(b)`; where a part of a view is written,
the view is cloned where it is made. Not where the tensor that was cut is read afterwards: the write may be meant for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.write.out_of_place import out_of_place, value_alone
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.alias import is_aliased, is_for_others
from explainer.source.graph.write import ARGUMENT, METHOD, Write, find_writes
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import before, definitions, scope_of

_SAME_MEMORY = frozenset(
    {"chunk", "split", "split_with_sizes", "unbind", "unsafe_chunk", "unsafe_split", "tensor_split", "list", "tuple"}
    | {"view", "reshape", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "flatten", "unflatten", "view_as"}
    | {"contiguous", "narrow", "movedim", "swapaxes", "select", "reversed"}
)  # fmt: skip
_SHAPES = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel", "is_cuda", "type"})
_ALIASED = "another name still means one of the views as it was before the write, and would keep the old value"
_GIVEN = "the tensor that is cut was handed in: whoever holds it does not see the new values"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the view that the failing line writes, and for those that were made with it."""
    writes = find_writes(context.program)
    for file, statement in raised_at(context):
        for write in writes:
            if write.file is file and file.statement(write.node) is statement:
                yield from _proposed(write, writes, context.program)


def _proposed(write: Write, writes: tuple[Write, ...], program: Program) -> Iterator[Proposal]:
    cut = _cut_of(write, program)
    if cut is None:
        yield from _alone(write, program)
        return
    together = [one for one in writes if one.file is write.file and _cut_of(one, program) is cut]
    base = _base(cut.value)
    if base is not None and _is_read_after(base, cut, write.file, program):
        return
    edits = [_edits(one, cut) for one in together]
    if not all(edits):
        return
    is_given = base is not None and ("." in base or not _is_made_here(base, cut, write.file, program))
    is_known_otherwise = any(is_aliased(one, program) for one in together)
    more = len(together) - 1
    so = f", as {'does' if more == 1 else 'do'} {more} more line{'s' if more > 1 else ''}" if more else ""
    yield Proposal(
        edits=tuple(dict.fromkeys(edit for one in edits for edit in one)),
        culprit=culprit_of(write.file, write.node, f"writes one of the views that one call returned{so}"),
        belief=2.2,
        applicability="unsafe" if is_given or is_known_otherwise else None,
        because=_GIVEN if is_given else _ALIASED if is_known_otherwise else None,
    )


def _alone(write: Write, program: Program) -> Iterator[Proposal]:
    """The write of a view that came otherwise: taken out of a list of views, reshaped since, handed in by a caller.

    What is computed of the last for another name, `std = logvar.mul_(0.5).exp_()`, is not meant for the caller.
    """
    is_value = write.kind == METHOD and isinstance(write.file.statement(write.node), (ast.Assign, ast.Return))
    edits = value_alone(write) if is_value else ()
    edits = edits or (() if is_for_others(write, program) else out_of_place(write))
    if edits:
        aliased = is_aliased(write, program)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(write.file, write.node, f"writes `{write.name or 'a view'}` in place"),
            belief=2.0 - (0.5 if aliased else 0.0),
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _cut_of(write: Write, program: Program) -> ast.Assign | None:
    """The statement that unpacked the views of which this write changes one; None for any other write."""
    name = _root(write.target)
    scope = scope_of(write.node, write.file, program)
    if name is None or scope is None:
        return None
    statement = write.file.statement(write.node)
    found = [
        one
        for one in program.names(write.file).assignments(name, scope)
        if isinstance(one, ast.Assign) and before(one, statement) and name in set(bound_names(one))
    ]
    last = found[-1] if found else None
    is_unpacked = last is not None and len(last.targets) == 1 and isinstance(last.targets[0], (ast.Tuple, ast.List))
    return last if is_unpacked and not isinstance(last.value, (ast.Tuple, ast.List)) else None  # type: ignore[union-attr]


def _root(target: ast.expr) -> str | None:
    """The variable whose tensor, or a part of it, a write changes: `x` of `x[0].mul_(2)`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _base(value: ast.expr) -> str | None:
    """The name of the tensor that was cut; None for one that has no name, as the result of a layer."""
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
        return dotted_name(value) or (_base(value.value) if isinstance(value, ast.Subscript) else None)
    if not isinstance(value, ast.Call):
        return None
    func = value.func
    called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if called not in _SAME_MEMORY:
        return None
    owner = dotted_name(func.value) if isinstance(func, ast.Attribute) else ""
    if isinstance(func, ast.Attribute) and owner not in ("torch", "np"):
        return _base(func.value)
    return _base(value.args[0]) if value.args else None


def _is_read_after(base: str, cut: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether the function reads the tensor that was cut behind the statement that cuts it, before it is bound anew."""
    scope = scope_of(cut, file, program)
    if scope is None or base in set(bound_names(cut)):
        return False
    end = file.span(cut)[1]
    for node in walk(scope):
        if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) != base or file.span(node)[0] < end:
            continue
        if isinstance(node.ctx, ast.Load) and not _is_shape(node, file):
            made = definitions(base, file.statement(node), scope)
            if not made or not before(cut, made[0]):
                return True
    return False


def _is_shape(node: ast.expr, file: SourceFile) -> bool:
    """Whether a place asks for what a write does not change: `x.shape`, `len(x)`, `x.new_zeros(3)`, `torch.ones_like(x)`."""
    above = file.parents.get(node)
    if isinstance(above, ast.Call):
        called = (dotted_name(above.func) or "").rpartition(".")[2]
        return called == "len" or called.endswith("_like")
    return isinstance(above, ast.Attribute) and (above.attr in _SHAPES or above.attr.startswith("new_"))


def _is_made_here(base: str, cut: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether the function itself computed the tensor that it cuts, rather than taking or looking it up."""
    scope = scope_of(cut, file, program)
    found = program.names(file).assignments(base, scope) if scope is not None else []
    made = [one for one in found if isinstance(one, ast.Assign) and before(one, cut)]
    return bool(made) and _base(made[-1].value) is None


def _edits(write: Write, cut: ast.Assign) -> tuple[Edit, ...]:
    if write.kind == ARGUMENT:
        return ()
    if write.name is not None and isinstance(write.target, ast.Name) and not _is_part(write):
        return out_of_place(write)
    name = _root(write.target)
    clone = insert_after(write.file, cut, f"{name} = {name}.clone()")
    return (clone,)


def _is_part(write: Write) -> bool:
    """Whether a subscript assignment writes a part of the tensor."""
    node = write.node
    target = (
        node.target if isinstance(node, ast.AugAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
    )
    return isinstance(target, ast.Subscript)
