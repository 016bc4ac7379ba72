"""The gradient of a result is kept where the program reads it: `scaled.retain_grad()` behind `scaled = standardise(window)`.

Only where the name is bound once, to a result: what is bound anew in each round of an update is to be a leaf. What a forward
keeps in its module (`self.vectors = words`), or a hook in a table, is also computed without a graph, where nothing can be kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import warned_at
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, parameters_of, scope_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each result whose gradient the failing statement reads."""
    if not context.has_failed:
        return
    # A helper that is handed the gradient fails; the warning stands where it is read.
    for file, statement in [*failing_statements(context)[:1], *warned_at("that is not a leaf Tensor", context)]:
        for node in walk(statement):
            if isinstance(node, ast.Attribute) and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                yield from _kept(node.value, statement, file, context)


def _kept(owner: ast.expr, statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Behind the binding of a name, or, of a helper's parameter, behind that of what the one caller hands in."""
    name = dotted_name(owner)
    function = context.program.names(file).function_of(owner)
    if isinstance(owner, ast.Attribute):
        yield from _kept_by_module(owner, statement, file, context)
    if (table := _table_of(owner, file)) is not None:
        yield from _kept_in_table(table, owner, statement, file, context)
    if function is not None and name in parameters_of(function):
        calls = resolver_of(context.program).calls_of(function, file)
        handed = [dict(arguments_of(call, function)).get(name) for _, call in calls]
        if len(calls) != 1 or handed[0] is None or any(one.name == name for one in bounds_of(function)):
            return
        where, owner = calls[0][0], handed[0]
        binding = _binding(owner, where.statement(calls[0][1]), where)
    else:
        where, binding = file, _binding(owner, statement, file)
    if binding is not None:
        why = f"reads the gradient of `{name}`, which is a result: only leaves keep theirs"
        yield Proposal(
            edits=(insert_after(where, binding, f"{dotted_name(owner)}.retain_grad()"),),
            culprit=culprit_of(file, statement, why),
            belief=1.5,
        )


def _kept_by_module(
    owner: ast.Attribute, statement: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """Behind the one statement by which a method keeps a result under the name that is read from outside."""
    made = [
        (where, one)
        for where in context.program.parsed()
        for one in where.walk()
        if isinstance(one, ast.Assign)
        and any(dotted_name(target) == f"self.{owner.attr}" for target in one.targets)
        and not isinstance(one.value, ast.Constant)
    ]
    if (
        len(made) != 1
        or _is_leaf(made[0][1].value)
        or not isinstance(made[0][1].value, (ast.Name, ast.Call, ast.BinOp))
    ):
        return
    where, binding = made[0]
    method = context.program.names(where).function_of(binding)
    calls = [one for file in context.program.parsed() for one in file.attributes.get("retain_grad", ())]
    is_kept = any(getattr(one.value, "attr", "") == owner.attr for one in calls)
    if method is None or method.name == "__init__" or is_kept:
        return
    kept = f"self.{owner.attr}"
    yield Proposal(
        edits=(insert_after(where, binding, f"if {kept}.requires_grad:\n    {kept}.retain_grad()"),),
        culprit=culprit_of(
            file, statement, f"reads the gradient of `{dotted_name(owner)}`, which is a result: only leaves keep theirs"
        ),
        belief=1.5,
    )


def _table_of(owner: ast.expr, file: SourceFile) -> str | None:
    """The last name of what holds a value: `seen` of `self.seen[name]`, and of `act` in `for name, act in self.seen.items()`."""
    held: ast.expr | None = owner.value if isinstance(owner, ast.Subscript) else None
    if isinstance(owner, ast.Name):
        bound = [one for one in bounds_of(scope_of(owner, file)) if one.name == owner.id and one.is_element]
        held = bound[0].node if len(bound) == 1 else None
    if isinstance(held, ast.Call) and isinstance(held.func, ast.Attribute) and held.func.attr in ("items", "values"):
        held = held.func.value
    name = dotted_name(held) if held is not None else None
    return name.rpartition(".")[2] if name is not None else None


def _kept_in_table(
    table: str, owner: ast.expr, statement: ast.stmt, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """Before the one statement that puts a result into a table or list, which may also run without a graph."""
    stores = [
        (where, one, value)
        for where in context.program.parsed()
        for one in where.walk()
        if isinstance(one, ast.stmt) and (value := _stored(one, table)) is not None
    ]
    if len(stores) != 1 or any(
        one.attr == "retain_grad"
        for one in walk(scope_of(stores[0][1], stores[0][0]))
        if isinstance(one, ast.Attribute)
    ):
        return
    where, store, value = stores[0]
    yield Proposal(
        edits=(insert_before(where, store, f"if {value}.requires_grad:\n    {value}.retain_grad()"),),
        culprit=culprit_of(
            file,
            statement,
            f"reads the gradient of `{file.segment(owner)}`, which is a result: only leaves keep theirs",
        ),
        belief=1.5,
    )


def _stored(statement: ast.stmt, table: str) -> str | None:
    """The name that a statement puts into a table: `seen[key] = output`, `seen.append(output)`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    value: ast.expr | None = None
    held: ast.expr | None = None
    if isinstance(target, ast.Subscript) and isinstance(statement, ast.Assign):
        held, value = target.value, statement.value
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "append" and len(statement.value.args) == 1:
            held, value = func.value, statement.value.args[0]
    is_held = held is not None and (dotted_name(held) or "").rpartition(".")[2] == table
    return value.id if is_held and isinstance(value, ast.Name) else None


def _is_leaf(value: ast.expr) -> bool:
    return any(
        (isinstance(one, ast.Attribute) and one.attr in ("requires_grad_", "Parameter"))
        or getattr(one, "arg", "") == "requires_grad"
        for one in walk(value)
    )


def _binding(owner: ast.expr, statement: ast.stmt, file: SourceFile) -> ast.Assign | None:
    """The one statement that binds a name to a result, above one that reads its gradient and never without it."""
    name = dotted_name(owner)
    made = [one for one in bounds_of(scope_of(owner, file)) if one.name == name and not one.fills]
    binding = made[0].statement if len(made) == 1 else None
    if name is None or not isinstance(binding, ast.Assign):
        return None
    later = [one for one in walk(scope_of(owner, file)) if isinstance(one, ast.Call) and _called(one, name)]
    is_above = binding.lineno < statement.lineno and set(block_of(binding, file)) & set(_around(statement, file))
    return binding if is_above and not later and not _is_leaf(binding.value) else None


def _called(node: ast.Call, name: str) -> bool:
    """Whether a call makes a leaf of a name, or keeps its gradient."""
    return dotted_name(node.func) in (f"{name}.requires_grad_", f"{name}.retain_grad")


def _around(statement: ast.stmt, file: SourceFile) -> Iterator[ast.stmt]:
    """A statement and those that it stands in."""
    above: ast.AST | None = statement
    while above is not None:
        if isinstance(above, ast.stmt):
            yield above
        above = file.parents.get(above)
