"""`x += y` becomes `x = x + y`, and `x.relu_()` becomes `x = x.relu()`: the old tensor stays as autograd saved it.

Not where the write is meant for somebody else: a parameter of the function that it does not return, an element that a loop
hands out, a parameter or buffer of a module. Where another name still means the old tensor the edit is unsafe.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.suspicion import suspect
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.write.entry_behind import entry_behind
from explainer.fix.write.out_of_place import out_of_place, value_alone
from explainer.source.graph.alias import is_aliased, is_for_others, is_read_after
from explainer.source.graph.operation import saves_output
from explainer.source.graph.write import AUGMENTED, METHOD, Write, find_writes
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of

_TOGETHER = 0.05  # nothing is lost where one of several writes alike was innocent
_ALIASED = "another name still means the tensor as it was before the write, and would keep the old value"
_ENTRY = "the container shows what is written, as it does now"

_PROJECTED = (
    "gradients go through the change; where the parameter itself is to be changed, write it under `torch.no_grad()`"
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each suspicious augmented assignment or trailing-underscore method, and one for those that read alike."""
    twins: dict[tuple[object, ...], list[Proposal]] = {}
    for write in find_writes(context.program):
        found = _of_write(write, context) if write.kind in (AUGMENTED, METHOD) else None
        if found is not None:
            key = (scope_of(write.node, write.file), _form(write.node), found.belief, found.applicability)
            twins.setdefault(key, []).append(found)
            yield found
            if edits := entry_behind(write, found.edits) if found.applicability == "unsafe" else ():
                yield replace(found, edits=edits, belief=found.belief - 0.1, because=_ENTRY)
    for alike in twins.values():
        if len(alike) > 1 and alike[0].belief > 0:
            edits = tuple(dict.fromkeys(edit for one in alike for edit in one.edits))
            yield replace(alike[0], edits=edits, belief=alike[0].belief + _TOGETHER)


def _of_write(write: Write, context: Context) -> Proposal | None:
    belief, named = suspect(write, context), _named(write)
    is_refused = context.options.get("at") == "raise"
    if belief is None:
        return None
    is_value = is_refused and _is_value(write)
    if not is_value:
        if is_for_others(named, context.program):
            return None
        if is_refused and not is_read_after(named, context.program):
            return None  # an update: out of place it would be lost
    if is_refused and not is_value and named.name is not None and named.name.startswith("self."):
        return _as_a_local(write, named, belief)
    edits = out_of_place(write) or (value_alone(write) if is_value else ())
    if not edits:
        return None
    aliased = is_aliased(named, context.program)
    return Proposal(
        edits=edits,
        culprit=culprit_of(write.file, write.node, _why(write)),
        belief=belief - (0.5 if aliased else 0.0),
        applicability="unsafe" if aliased else None,
        because=_ALIASED if aliased else None,
    )


def _as_a_local(write: Write, named: Write, belief: float) -> Proposal | None:
    """A parameter of a module that its forward changes: the result has a name of its own, and what follows reads that.

    The attribute itself holds a parameter, and takes nothing else. Shown, not tried: that the parameter was to be changed, without
    a gradient of the change, is as likely.
    """
    file, edits = write.file, out_of_place(write)
    statement, function = file.statement(write.node), file.enclosing(write.node, ast.FunctionDef)
    if (
        len(edits) != 1
        or not isinstance(statement, (ast.AugAssign, ast.Expr))
        or not isinstance(function, ast.FunctionDef)
    ):
        return None
    reads = [
        one
        for one in walk(function)
        if isinstance(one, ast.Attribute) and dotted_name(one) == named.name and one.lineno > statement.lineno
    ]
    local = (named.name or "").rpartition(".")[2]
    taken = {one.id for one in walk(function) if isinstance(one, ast.Name)} | {one.arg for one in function.args.args}
    is_plain = statement in function.body and all(isinstance(one.ctx, ast.Load) for one in reads)
    if not reads or not is_plain or local in taken:
        return None
    assigned = replace(edits[0], new=edits[0].new.replace(f"{named.name} =", f"{local} =", 1))
    return Proposal(
        edits=(assigned, *(edit_of(file, one, local) for one in reads)),
        culprit=culprit_of(file, write.node, _why(write)),
        belief=belief,
        applicability="display",
        because=_PROJECTED,
        title=f"Compute `{local}` from the parameter in each forward: `{local} = {named.name}...`",
    )


def _is_value(write: Write) -> bool:
    """Whether what a refused method returns is what is wanted of it: `return self.log_speed.exp_()`, which never wrote anything."""
    above = write.file.parents.get(write.node)
    is_value = isinstance(above, (ast.Return, ast.BinOp))
    if isinstance(above, ast.Assign):
        # An update by a gradient is meant for the parameter, whatever else is called by its result.
        by_gradient = any(isinstance(one, ast.Attribute) and one.attr == "grad" for one in walk(write.node))
        is_value = [dotted_name(one) for one in above.targets] != [write.name] and not by_gradient
    return write.kind == METHOD and is_value


def _named(write: Write) -> Write:
    """A write at the end of a chain as one of what the chain begins with: `add_` of `w.mul_(a).add_(b)` writes `w`."""
    node = write.target
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value
    return write if write.name else replace(write, target=node, name=dotted_name(node))


def _form(node: ast.AST) -> str:
    """A statement without its names: `a /= a.norm()` and `b /= b.norm()` are alike, `b /= a.norm()` is not."""
    names: dict[str, str] = {}
    return re.sub(r"Name\(id='(\w+)'", lambda found: names.setdefault(found[1], f"Name({len(names)}"), ast.dump(node))


def _why(write: Write) -> str:
    known = [one.name for one in write.overwrites if one is not None]
    kept = [one.name for one in write.overwrites if one is not None and saves_output(one)]
    made = f", the result of {(kept or known)[0]}," if known else ""
    name = f"`{write.name}`" if write.name else "its input"
    return f"writes {name}{made} in place"
