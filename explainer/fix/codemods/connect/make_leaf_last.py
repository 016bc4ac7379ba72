"""Makes a leaf of what is trained: the flag after scaling, casting and moving, and the update in place.

`torch.randn(3, requires_grad=True) * 0.01` becomes `(torch.randn(3) * 0.01).requires_grad_(True)`; `nn.Parameter(x).to(device)`
becomes `nn.Parameter(x.to(device))`; `w = w - lr * w.grad` becomes `w -= lr * w.grad` under `no_grad`; what an optimizer is given that
was computed from tensors which train themselves becomes a leaf of its own; so does what is projected from a leaf that nothing holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import is_in_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.leaf import flags, inner_leaf, is_leaf_call, leaf_last
from explainer.fix.graph.lost_leaf import of_gradients
from explainer.fix.graph.optimized_leaf import REFUSED, of_optimizers
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_mode_cut
from explainer.source.name import Names, dotted_name
from explainer.source.network.anew import PARAMETER
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of, walk_scope
from explainer.source.value.lineage import block_of
from explainer.source.value.provenance import provenance_of

_SYMBOLS = {ast.Sub: "-=", ast.Add: "+="}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each tensor that is computed from its leaf and trained in its place."""
    if not context.has_failed:
        return
    seen: set[ast.AST] = set()
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                for proposal in _flagged_early(node, file, names, context):
                    seen.add(node.value)
                    yield proposal
                yield from _rebound(node, file, names, context)
                yield from _collected(node, file, context)
                for proposal in _replaced(node, file, context):
                    seen.add(node.value)
                    yield proposal
                yield from _flagged_with_graph(node, file, context)
    yield from of_optimizers(seen, context)
    yield from of_gradients(seen, context)
    if REFUSED in message_of(context):
        yield from _nameless(seen, context)


def _nameless(seen: set[ast.AST], context: Context) -> Iterator[Proposal]:
    """A leaf that only its own computation holds, `torch.randn(3, requires_grad=True) * std`, whatever keeps the result."""
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, (ast.BinOp, ast.Call)):
                continue
            leaf, above = inner_leaf(node, names), file.parents.get(node)
            above = file.parents.get(above) if isinstance(above, ast.Attribute) else above
            is_part = isinstance(above, (ast.BinOp, ast.Call)) and inner_leaf(above, names) is leaf
            if leaf is None or leaf is node or is_part or node in seen or names.is_call(leaf, *PARAMETER):
                continue
            edits = leaf_last(node, leaf, file, names)
            if edits is not None and any(one.arg == "requires_grad" for one in leaf.keywords):
                why = "computes what is trained from the leaf, which nothing else holds"
                yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=1.8)


def _flagged_early(node: ast.Assign, file: SourceFile, names: Names, context: Context) -> Iterator[Proposal]:
    name = dotted_name(node.targets[0])
    leaf = inner_leaf(node.value, names)
    if name is None or leaf is None or leaf is node.value:
        return
    # A module trains its parameters; what is computed from one it keeps as a plain tensor.
    is_meant = name.startswith("self.") and names.is_call(leaf, *PARAMETER) and names.class_of(node) is not None
    if not is_meant and not _is_trained(name, node, file, context):
        return
    edits = leaf_last(node.value, leaf, file, names)
    if edits is not None:
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, node.value, f"computes `{name}` from the leaf, so that `{name}` is none"),
            belief=2.0 + (0.5 if is_in_frames(node, file, context) else 0.0),
        )


def _flagged_with_graph(node: ast.Assign, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`w = net(z).mean(0)` that is flagged and trained itself: the flag makes no leaf of it, `detach` before it does."""
    name = dotted_name(node.targets[0])
    if name is None or not isinstance(node.value, (ast.Call, ast.BinOp, ast.Subscript)):
        return
    block = list(block_of(node, file))
    behind = block[block.index(node) + 1 :] if node in block else []
    is_flagged = any(flags(one, name) for one in behind) and _is_trained(name, node, file, context)
    if is_flagged and provenance_of(context.program).trace(Value(node.value, file)).live:
        yield Proposal(
            edits=(put_method(file, node.value, ".detach()"),),
            culprit=culprit_of(file, node, f"computes `{name}` with a graph, so that the flag makes no leaf of it"),
            belief=2.2,
        )


def _replaced(node: ast.Assign, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`delta = (x + delta).clamp(0, 1) - x` of a leaf `delta` whose gradient is read later: the new tensor is the leaf."""
    name, value, program = dotted_name(node.targets[0]), node.value, context.program
    function = program.names(file).function_of(node)
    scope = function or file.tree
    if name is None or scope is None or "." in name or not _reads(value, name) or _is_update(value, name):
        return
    nodes = [one for one in walk_scope(scope) if one is not node]
    made = [one for one in nodes if isinstance(one, ast.stmt) and _makes_leaf(one, name, program.names(file))]
    loop = file.enclosing(node, ast.For, ast.While)
    again = set(walk(loop)) if loop is not None else set()
    reads = any(
        isinstance(one, ast.Attribute) and dotted_name(one) == f"{name}.grad"
        and (one in again or one.lineno > (node.end_lineno or 0))
        for one in nodes
    )  # fmt: skip
    held = any(
        isinstance(one, ast.Call) and (program.names(file).qualified(one.func) or "").startswith("torch.optim.")
        and any(dotted_name(part) == name for part in walk(one))
        for one in nodes
    )  # fmt: skip
    is_leaf = isinstance(value, ast.Call) and is_leaf_call(value, program.names(file))
    if not reads or held or is_leaf or not any(one.lineno < node.lineno for one in made):
        return
    block = list(block_of(node, file))
    if any(flags(one, name) for one in (block[block.index(node) + 1 :] if node in block else ())):
        return
    is_off = grad_mode_cut(node, file, program) is not None
    yield Proposal(
        edits=(put_method(file, value, ".requires_grad_(True)" if is_off else ".detach().requires_grad_(True)"),),
        culprit=culprit_of(file, node, f"binds `{name}` to a result, which is no leaf and has no `.grad`"),
        belief=2.0 + (0.2 if is_in_frames(node, file, context) else 0.0),
    )


def _reads(value: ast.expr, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in walk(value))


def _is_update(value: ast.expr, name: str) -> bool:
    """`w - lr * w.grad`, which is better written in place."""
    return isinstance(value, ast.BinOp) and type(value.op) in _SYMBOLS and dotted_name(value.left) == name


def _makes_leaf(statement: ast.stmt, name: str, names: Names) -> bool:
    """Whether a statement flags the name, or binds it to a leaf."""
    if flags(statement, name):
        return True
    is_bound = isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name
    return (
        is_bound and isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        and is_leaf_call(statement.value, names)
    )  # fmt: skip


def _is_trained(name: str, node: ast.Assign, file: SourceFile, context: Context) -> bool:
    """Whether the gradient of the name is read, or an optimizer gets it."""
    last = name.rpartition(".")[2]
    files = context.program.parsed() if name.startswith("self.") else [file]
    for where in files:
        names = context.program.names(where)
        for one in where.walk():
            if isinstance(one, ast.Attribute) and one.attr == "grad" and _last(one.value) == last:
                return True
            is_optimizer = isinstance(one, ast.Call) and (names.qualified(one.func) or "").startswith("torch.optim.")
            if is_optimizer and any(_last(part) == last for part in walk(one)):
                return True
    return _is_listed(name, node, file) or (name.startswith("self.") and is_in_frames(node, file, context))


def _last(node: ast.AST) -> str:
    return (dotted_name(node) or "").rpartition(".")[2]


def _is_listed(name: str, node: ast.Assign, file: SourceFile) -> bool:
    """Whether a list of parameters holds the name: `params = [w, b]`."""
    return any(
        isinstance(bound.node, (ast.List, ast.Tuple))
        and bound.name in ("params", "parameters", "weights", "trainable", "variables")
        and any(dotted_name(one) == name for one in bound.node.elts)
        for bound in bounds_of(scope_of(node, file))
    )


def _collected(node: ast.Assign, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`params = {k: p - lr * p.grad for k, p in params.items()}` of leaves that the program made itself: each is a leaf again.

    What began as a module's parameters may be differentiated through, as the fast weights of an inner loop are.
    """
    name, made = dotted_name(node.targets[0]), node.value
    value = made.value if isinstance(made, ast.DictComp) else made.elt if isinstance(made, ast.ListComp) else None
    if name is None or not isinstance(made, (ast.DictComp, ast.ListComp)) or not isinstance(value, ast.BinOp):
        return
    walked = {dotted_name(one) for part in made.generators for one in walk(part.iter)}
    own = dotted_name(value.left)
    reads = any(isinstance(one, ast.Attribute) and dotted_name(one) == f"{own}.grad" for one in walk(value.right))
    begun = [one.node for one in bounds_of(scope_of(node, file)) if one.name == name and one.node is not made]
    is_own = bool(begun) and not any(
        isinstance(one, ast.Attribute) and one.attr in ("named_parameters", "parameters")
        for each in begun
        for one in walk(each)
    )
    if name not in walked or own is None or not reads or type(value.op) not in _SYMBOLS or not is_own:
        return
    is_off = grad_mode_cut(node, file, context.program) is not None
    yield Proposal(
        edits=(put_method(file, value, ".requires_grad_(True)" if is_off else ".detach().requires_grad_(True)"),),
        culprit=culprit_of(
            file, value, f"makes what `{name}` holds of results, which are no leaves and have no `.grad`"
        ),
        belief=2.2,
    )


def _rebound(node: ast.Assign, file: SourceFile, names: Names, context: Context) -> Iterator[Proposal]:
    """`w = w - lr * w.grad` binds the name to a new tensor, which is no leaf."""
    name, value = dotted_name(node.targets[0]), node.value
    if (
        name is None
        or not isinstance(value, ast.BinOp)
        or type(value.op) not in _SYMBOLS
        or dotted_name(value.left) != name
    ):
        return
    reads = [one for one in walk(value.right) if isinstance(one, ast.Attribute) and dotted_name(one) == f"{name}.grad"]
    if not reads or name.endswith(".data"):
        return
    torch = next((alias for alias, target in names.imports.items() if target == "torch"), None)
    update = f"{name} {_SYMBOLS[type(value.op)]} {file.segment(value.right)}"

    is_off = grad_mode_cut(node, file, context.program) is not None
    if torch is None and not is_off:
        return
    indent = file.indent(node.lineno)
    step = "\t" if "\t" in indent else "    "
    new = update if is_off else f"with {torch}.no_grad():{file.newline}{indent}{step}{update}"
    yield Proposal(
        edits=(edit_of(file, node, new),),
        culprit=culprit_of(file, node, f"binds `{name}` to a new tensor, which is no leaf and has no `.grad`"),
        belief=2.2,
    )
