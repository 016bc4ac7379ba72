"""Sets `requires_grad` on an input before the forward whose gradient by it is asked for; asks for no frozen parameters.

`mixed = a * real + b * fake` becomes `(...).requires_grad_(True)`; an input that a function is given is made a leaf of its own
before its first use; `model.parameters()` of a model that is frozen in part becomes the list of those that require grad.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of, walk_scope
from explainer.source.value.lineage import block_of, loops_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_GRADS = ("torch.autograd.grad",)
_CUTS = frozenset({"detach", "detach_", "data"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each input of the failing gradient that does not require grad."""
    if not context.has_failed:
        return
    for file, statement in failing_statements(context):
        names = context.program.names(file)
        for node in walk(statement):
            if isinstance(node, ast.Call) and names.is_call(node, *_GRADS):
                output = node.args[0] if node.args else _named(node, "outputs")
                for one in _inputs(node):
                    yield from _listed(one, file)
                    if output is not None:
                        yield from _flagged(Value(one, file), Value(output, file), context)
    yield from _handed_parameters(context)


def _inputs(node: ast.Call) -> list[ast.expr]:
    given = node.args[1] if len(node.args) > 1 else _named(node, "inputs")
    if isinstance(given, (ast.Tuple, ast.List)):
        return list(given.elts)
    return [given] if given is not None else []


def _named(node: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in node.keywords if one.arg == name), None)


def _listed(node: ast.expr, file: SourceFile) -> Iterator[Proposal]:
    """`torch.autograd.grad(loss, model.parameters())` of a model that is frozen in part."""
    inner = (
        node.args[0]
        if isinstance(node, ast.Call) and dotted_name(node.func) in ("list", "tuple") and node.args
        else node
    )
    is_all = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "parameters"
    if is_all:
        yield Proposal(
            edits=(edit_of(file, node, f"[p for p in {file.segment(inner)} if p.requires_grad]"),),
            culprit=culprit_of(file, node, "lists frozen parameters too, which have no gradient"),
            belief=1.0,
        )


def _flagged(wanted: Value, output: Value, context: Context, depth: int = 0) -> Iterator[Proposal]:
    """The flag at the binding of the input; before its first use where it is a parameter of the function."""
    name, file = dotted_name(wanted.node), wanted.file
    if name is None or "." in name or depth > 4:
        return
    scope = _scope_of_name(name, wanted.node, file)
    loop = next(iter(loops_of(wanted.node, file)), None)
    if loop is not None and (cuts := _cuts(name, loop)):
        yield from _each_round(name, wanted.node, loop, cuts[0], file)
        return
    bound = [one for one in bounds_of(scope) if one.name == name and one.statement.lineno <= wanted.node.lineno]  # type: ignore[attr-defined]
    only = bound[0] if len(bound) == 1 else None
    handed = _handed_on(wanted, output, context) if not bound else None
    if handed is not None:
        yield from _flagged(*handed, context, depth + 1)
    elif only is not None and isinstance(only.statement, (ast.For, ast.AsyncFor)):
        yield from _before_its_run(name, only.statement, file)  # what a loader brings requires no grad
    elif provenance_of(context.program).trace(wanted).live or (only is not None and _is_flagged(only.node)):
        return
    elif only is not None and isinstance(only.statement, ast.Assign) and only.pick is None and not only.fills:
        if isinstance(only.node, (ast.Name, ast.Attribute, ast.Subscript)):
            edit = edit_of(file, only.node, f"{file.segment(only.node)}.detach().requires_grad_(True)")
        else:
            edit = put_method(file, only.node, ".requires_grad_(True)")
        yield Proposal(edits=(edit,), culprit=culprit_of(file, only.statement, _why(name)), belief=2.0)
    elif not isinstance(scope, ast.Module):
        first = _first_use(name, scope)
        if first is not None:
            yield Proposal(
                edits=(insert_before(file, first, f"{name} = {name}.detach().requires_grad_(True)"),),
                culprit=culprit_of(file, first, _why(name)),
                belief=1.8,
            )


def _cuts(name: str, loop: ast.For | ast.While) -> list[ast.Assign]:
    """What binds a name anew in a loop, without the graph: `x = (x - step * slope).detach()`."""
    bound = [one for one in walk(loop) if isinstance(one, ast.Assign) and name in bound_names(one)]
    return [one for one in bound if any(getattr(part, "attr", "") in _CUTS for part in walk(one.value))]


def _each_round(
    name: str, node: ast.expr, loop: ast.For | ast.While, cut: ast.Assign, file: SourceFile
) -> Iterator[Proposal]:
    """The flag at the begin of a loop that walks, unless the loop flags the name itself."""
    flags = (one for one in walk(loop) if isinstance(one, ast.Attribute))
    reads = (one for one in loop.body if any(isinstance(part, ast.Name) and part.id == name for part in walk(one)))
    first = next(reads, None)
    if any(one.attr in ("requires_grad_", "requires_grad") for one in flags):
        return
    if first is None or first is cut or first.lineno > node.lineno:
        return
    why = f"leaves `{name}` without its flag for the next round"
    block = block_of(loop, file)
    before = block[block.index(loop) - 1] if loop in block[1:] else None
    call = before.value if isinstance(before, ast.Expr) else None
    is_moved = isinstance(call, ast.Call) and dotted_name(call.func) == f"{name}.requires_grad_"
    yield Proposal(
        edits=(
            *((remove_statement(file, before),) if is_moved and before is not None else ()),
            insert_before(file, first, f"{name}.requires_grad_(True)"),
        ),
        culprit=culprit_of(file, cut, why),
        belief=2.2,
    )


def _scope_of_name(name: str, node: ast.expr, file: SourceFile) -> ast.AST:
    """The scope that binds a name: round the function that reads it, where that is a closure such as a hook."""
    scope = scope_of(node, file)
    while isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and name not in {
        *all_parameters(scope),
        *(one.name for one in bounds_of(scope)),
    }:
        scope = scope_of(scope, file)
    return scope


def _is_flagged(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"


def _before_its_run(name: str, loop: ast.For | ast.AsyncFor, file: SourceFile) -> Iterator[Proposal]:
    """The flag before the statement of a loop's own block that hands what the loop brings to a model first."""
    flags = (f"{name}.requires_grad_", f"{name}.requires_grad")
    if any(isinstance(one, ast.Attribute) and dotted_name(one) in flags for one in walk(loop)):
        return
    for statement in loop.body:
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            is_built_in = isinstance(call.func, ast.Name) and call.func.id in dir(builtins)
            if not is_built_in and any(isinstance(one, ast.Name) and one.id == name for one in call.args):
                yield Proposal(
                    edits=(insert_before(file, statement, f"{name}.requires_grad_(True)"),),
                    culprit=culprit_of(file, statement, _why(name)),
                    belief=1.8,
                )
                return


def _why(name: str) -> str:
    return f"runs on `{name}`, which does not require grad" if name else "does not require grad"


def _handed_on(wanted: Value, output: Value, context: Context) -> tuple[Value, Value] | None:
    """The caller's own input and output, where the function is given both."""
    resolver = resolver_of(context.program)
    inputs = [one for one in resolver.behind(wanted) if one.statement is None and one.file.tree is not None]
    root = next((one for one in walk(output.node) if isinstance(one, ast.Name)), None)
    outputs = (
        [one for one in resolver.behind(Value(root, output.file)) if one.statement is None] if root is not None else []
    )
    return (inputs[0], outputs[0]) if len(inputs) == 1 and len(outputs) == 1 else None


def _first_use(name: str, scope: ast.AST) -> ast.stmt | None:
    """The statement of the function's own block in which its parameter is used first."""
    for statement in getattr(scope, "body", []):
        if any(isinstance(one, ast.Name) and one.id == name for one in walk(statement)):
            return statement if isinstance(statement, ast.stmt) else None
    return None


def _handed_parameters(context: Context) -> Iterator[Proposal]:
    """`Function.apply(block, x, *block.parameters())`, whose backward differentiates by all of them."""
    for file in context.program.parsed():
        for node in walk_scope(file.tree) if file.tree is not None else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "apply":
                continue
            for one in node.args:
                inner = one.value if isinstance(one, ast.Starred) else None
                if (
                    isinstance(inner, ast.Call)
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr == "parameters"
                ):
                    yield Proposal(
                        edits=(edit_of(file, inner, f"(p for p in {file.segment(inner)} if p.requires_grad)"),),
                        culprit=culprit_of(file, one, "hands on frozen parameters too, which have no gradient"),
                        belief=1.5,
                    )
