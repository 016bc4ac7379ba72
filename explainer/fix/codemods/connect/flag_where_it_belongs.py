"""Takes `requires_grad = ...` off a computed tensor: gone where it requires grad anyway, on the leaf where it is computed from one.

`hidden.requires_grad = True` goes (`hidden.retain_grad()` where its gradient is read); `layer.weight.requires_grad = False` of a
pruned layer becomes `layer.weight_orig...`; a tensor that should get no gradient is detached, where a helper flags what it is given
by the one who calls it: `features = {key: value.detach() for key, value in features.items()}` for `freeze(features.values())`.
A helper that has switched the flag on for a derivative puts it back for leaves alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.rewrite import in_block
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import binds, loops_of
from explainer.source.value.provenance import provenance_of

_COMPUTED = {
    "torch.nn.utils.prune.": "weight_orig",
    "torch.nn.utils.weight_norm": "weight_v",
    "torch.nn.utils.spectral_norm": "weight_orig",
}

Place = tuple[SourceFile, ast.stmt]
_PUT_BACK = "Put the flag back for leaves alone: `if x.is_leaf: x.requires_grad_(False)`"
_EACH = "[one.detach() for one in {name}]"
_VALUES = "{{key: value.detach() for key, value in {name}.items()}}"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the failing statement that sets a flag on a tensor which is no leaf."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context)[:1]:
        owner, state = _flag(statement)
        if owner is None or state is None or _asks_for_leaf(file.parents.get(statement)):
            continue
        computed = _leaf_behind(owner, file, context)
        name = file.segment(owner)
        if computed is not None:
            yield Proposal(
                edits=(edit_of(file, owner, computed),),
                culprit=culprit_of(file, statement, f"sets the flag on `{name}`, which is computed from `{computed}`"),
                belief=2.0,
            )
        elif not state and _is_put_back(owner, statement, file):
            yield Proposal(
                edits=in_block(file, [statement], f"if {name}.is_leaf:"),
                culprit=culprit_of(
                    file, statement, f"puts the flag of `{name}` back, which may be the result of layers"
                ),
                belief=2.2,
                title=_PUT_BACK,
            )
        elif state and _is_read(owner, file):
            yield Proposal(
                edits=(edit_of(file, statement, f"{name}.retain_grad()"),),
                culprit=culprit_of(
                    file, statement, f"`{name}` is no leaf; its gradient is kept only where that is asked for"
                ),
                belief=1.5,
            )
        elif state and provenance_of(context.program).trace(Value(owner, file)).live:
            yield Proposal(
                edits=(remove_statement(file, statement),),
                culprit=culprit_of(
                    file, statement, f"sets a flag that `{name}` has already, as the result of the layers before"
                ),
                belief=2.0,
            )
        elif (
            not state and provenance_of(context.program).trace(Value(owner, file)).live and isinstance(owner, ast.Name)
        ):
            edits, guilty = _detached(owner, statement, file, context)
            yield Proposal(
                edits=edits,
                culprit=culprit_of(*guilty, f"`{name}` is no leaf; it ends the graph where it is detached"),
                belief=1.5,
            )


def _asks_for_leaf(node: ast.AST | None) -> bool:
    return isinstance(node, ast.If) and any(getattr(one, "attr", "") == "is_leaf" for one in walk(node.test))


def _flag(statement: ast.stmt) -> tuple[ast.expr | None, bool | None]:
    """The tensor whose flag a statement sets, and the state."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        target = statement.targets[0]
        if target.attr == "requires_grad" and isinstance(statement.value, ast.Constant):
            return target.value, bool(statement.value.value)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "requires_grad_":
            first = statement.value.args[0] if statement.value.args else None
            return func.value, not (isinstance(first, ast.Constant) and first.value is False)
    return None, None


def _is_put_back(owner: ast.expr, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether the same function has switched the flag on before: for a derivative, and not to end the graph here."""
    name = dotted_name(owner)
    before = (one for one in walk(scope_of(owner, file)) if isinstance(one, ast.stmt) and one.lineno < statement.lineno)
    flagged = (_flag(one) for one in before)
    return name is not None and any(one is not None and state and dotted_name(one) == name for one, state in flagged)


def _detached(
    owner: ast.Name, statement: ast.stmt, file: SourceFile, context: Context
) -> tuple[tuple[Edit, ...], Place]:
    """What detaches a tensor under the name by which it is used, and the line that has it flagged; no edit where that is not known.

    A name that nothing reads any more, as that of a loop or of a helper's argument, is bound to another tensor in vain.
    """
    own = (file, statement)
    if _is_used(owner, statement, file):
        return (edit_of(file, statement, f"{owner.id} = {owner.id}.detach()"),), own
    loop = file.parents.get(statement)
    is_each = isinstance(loop, ast.For) and dotted_name(loop.target) == owner.id and loop.body == [statement]
    name, form = (
        _held(loop.iter, is_each=True) if isinstance(loop, ast.For) and is_each else (owner.id, "{name}.detach()")
    )
    function = context.program.names(file).function_of(statement)
    if (
        function is None
        or name is None
        or name not in {one.arg for one in (*function.args.posonlyargs, *function.args.args)}
    ):
        is_known = isinstance(loop, ast.For) and is_each and name is not None
        return ((edit_of(file, loop, f"{name} = {form.format(name=name)}"),) if loop and is_known else ()), own
    for where, call in failing_statements(context)[1:2]:
        value = call.value if isinstance(call, ast.Expr) else None
        if isinstance(value, ast.Call) and (dotted_name(value.func) or "").rpartition(".")[2] == function.name:
            given = dict(arguments_of(value, function)).get(name)
            if given is not None and form != _EACH:
                name = dotted_name(given)
            elif given is not None:
                name, form = _held(given, is_each=is_each)
            is_known = given is not None and name is not None
            return ((edit_of(where, call, f"{name} = {form.format(name=name)}"),) if is_known else ()), (where, call)
    return (), own


def _held(node: ast.expr, *, is_each: bool) -> tuple[str | None, str]:
    """The name of what holds the tensors that a loop goes through, and how it is held without their graph."""
    if is_each and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "values":
        return dotted_name(node.func.value), _VALUES
    return dotted_name(node), _EACH if is_each else "{name}.detach()"


def _is_used(owner: ast.Name, statement: ast.stmt, file: SourceFile) -> bool:
    """Whether the name is read once more where it is bound: behind the statement, or in the next round of a loop around it."""
    loops = list(loops_of(statement, file))
    binding = next((one for one in loops if isinstance(one, ast.For) and owner.id in binds(one)), None)
    rounds = loops[: loops.index(binding)] if binding is not None else loops
    again = {node for loop in rounds for node in walk(loop)}
    own = set(walk(statement))
    return any(
        isinstance(node, ast.Name) and node.id == owner.id and isinstance(node.ctx, ast.Load) and node not in own
        and (node.lineno > statement.lineno or node in again)
        for node in walk(binding or scope_of(statement, file))
    )  # fmt: skip


def _leaf_behind(owner: ast.expr, file: SourceFile, context: Context) -> str | None:
    """The leaf that a pruned or normalised layer computes its weight from."""
    if not isinstance(owner, ast.Attribute) or owner.attr not in ("weight", "bias"):
        return None
    called = [context.program.names(file).qualified(one.func) or "" for one in file.walk() if isinstance(one, ast.Call)]
    for prefix, leaf in _COMPUTED.items():
        if any(one.startswith(prefix) for one in called):
            return f"{file.segment(owner.value)}.{leaf.replace('weight', owner.attr)}"
    return None


def _is_read(owner: ast.expr, file: SourceFile) -> bool:
    """Whether the gradient of the tensor is read in its scope."""
    name = dotted_name(owner)
    return any(
        isinstance(one, ast.Attribute) and one.attr == "grad" and dotted_name(one.value) == name
        for one in walk(scope_of(owner, file))
    )
