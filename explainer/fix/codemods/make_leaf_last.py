"""Makes a leaf of what is trained: the flag after scaling, casting and moving, and the update in place.

`torch.randn(3, requires_grad=True) * 0.01` becomes `(torch.randn(3) * 0.01).requires_grad_(True)`; `nn.Parameter(x).to(device)`
becomes `nn.Parameter(x.to(device))`; `w = w - lr * w.grad` becomes `w -= lr * w.grad` under `no_grad`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import message_of
from explainer.fix.failure import is_in_frames
from explainer.fix.rewrite import operand, put_method
from explainer.model.patch import Edit
from explainer.source.binding import Value, bounds_of, scope_of, walk_scope
from explainer.source.cut import asks_for, grad_mode_cut
from explainer.source.file import SourceFile
from explainer.source.lineage import block_of
from explainer.source.name import Names, dotted_name
from explainer.source.provenance import provenance_of
from explainer.source.resolve import Resolver, resolver_of
from explainer.source.tree import walk

_MOVES = frozenset(
    {"to", "cuda", "cpu", "double", "float", "half", "bfloat16", "type", "view", "reshape", "t", "unsqueeze", "squeeze"}
    | {
        "mul",
        "div",
        "add",
        "sub",
        "clone",
        "contiguous",
        "expand",
        "repeat",
        "transpose",
        "normal_",
        "uniform_",
        "clamp",
    }
)
_DEPTH = 8
_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_REFUSED = "can't optimize a non-leaf Tensor"
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
                yield from _replaced(node, file, context)
                yield from _flagged_with_graph(node, file, context)
            elif isinstance(node, ast.Call) and (names.qualified(node.func) or "").startswith("torch.optim."):
                yield from _of_optimizer(node, file, seen, context)
    if _REFUSED in message_of(context):
        yield from _nameless(seen, context)


def _nameless(seen: set[ast.AST], context: Context) -> Iterator[Proposal]:
    """A leaf that only its own computation holds, `torch.randn(3, requires_grad=True) * std`, whatever keeps the result."""
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, (ast.BinOp, ast.Call)):
                continue
            leaf, above = _inner_leaf(node, names), file.parents.get(node)
            above = file.parents.get(above) if isinstance(above, ast.Attribute) else above
            is_part = isinstance(above, (ast.BinOp, ast.Call)) and _inner_leaf(above, names) is leaf
            if leaf is None or leaf is node or is_part or node in seen or names.is_call(leaf, *_PARAMETERS):
                continue
            edits = _leaf_last(node, leaf, file, names)
            if edits is not None and any(one.arg == "requires_grad" for one in leaf.keywords):
                why = "computes what is trained from the leaf, which nothing else holds"
                yield Proposal(edits=edits, culprit=culprit_of(file, node, why), belief=1.8)


def _of_optimizer(node: ast.Call, file: SourceFile, seen: set[ast.AST], context: Context) -> Iterator[Proposal]:
    """What an optimizer is given, followed through groups, lists, comprehensions and functions to where it is made."""
    first = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "params"), None)
    for value in _elements(Value(first, file), resolver_of(context.program), 0) if first is not None else ():
        names = context.program.names(value.file)
        leaf = _inner_leaf(value.node, names)
        if leaf is None or value.node in seen:
            continue
        if leaf is value.node:
            yield from _flagged_with_graph_at_once(leaf, value, context)
            continue
        seen.add(value.node)
        edits = _leaf_last(value.node, leaf, value.file, names)
        if edits is not None:
            why = "computes what is trained from the leaf, so that it is none"
            yield Proposal(edits=edits, culprit=culprit_of(value.file, value.node, why), belief=2.4)


def _elements(value: Value, resolver: Resolver, depth: int) -> Iterator[Value]:
    """The expressions that make the tensors of a list of parameters."""
    node = value.node
    parts: list[Value] = []
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        parts = [
            replace(value, node=one) for key, one in zip(keys, node.values, strict=True) if key in ("params", None)
        ]
    elif isinstance(node, (ast.List, ast.Tuple)):
        parts = [replace(value, node=one) for one in node.elts]
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        parts = [replace(value, node=node.elt)]
    elif isinstance(node, ast.Starred):
        parts = [replace(value, node=node.value)]
    elif isinstance(node, (ast.Name, ast.Attribute)):
        parts = list(resolver.behind(value))
    elif isinstance(node, ast.Call) and (target := resolver.function_of(node, value)) is not None:
        parts = resolver.returns_of(target, node, value)
    else:
        yield value
    for one in parts if depth < _DEPTH else ():
        yield from _elements(one, resolver, depth + 1)


def _flagged_early(node: ast.Assign, file: SourceFile, names: Names, context: Context) -> Iterator[Proposal]:
    name = dotted_name(node.targets[0])
    leaf = _inner_leaf(node.value, names)
    if name is None or leaf is None or leaf is node.value:
        return
    # A module trains its parameters; what is computed from one it keeps as a plain tensor.
    is_meant = name.startswith("self.") and names.is_call(leaf, *_PARAMETERS) and names.class_of(node) is not None
    if not is_meant and not _is_trained(name, node, file, context):
        return
    edits = _leaf_last(node.value, leaf, file, names)
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
    is_flagged = any(_flags(one, name) for one in behind) and _is_trained(name, node, file, context)
    if is_flagged and provenance_of(context.program).trace(Value(node.value, file)).live:
        yield Proposal(
            edits=(put_method(file, node.value, ".detach()"),),
            culprit=culprit_of(file, node, f"computes `{name}` with a graph, so that the flag makes no leaf of it"),
            belief=2.2,
        )


def _flagged_with_graph_at_once(flag: ast.Call, value: Value, context: Context) -> Iterator[Proposal]:
    """`net(z).mean(0).requires_grad_(True)`: what is flagged has a graph."""
    if not isinstance(flag.func, ast.Attribute) or flag.func.attr != "requires_grad_":
        return
    if provenance_of(context.program).trace(replace(value, node=flag.func.value, pick=None)).live:
        why = "flags a tensor that has a graph, which makes no leaf of it"
        yield Proposal(
            edits=(put_method(value.file, flag.func.value, ".detach()"),),
            culprit=culprit_of(value.file, flag, why),
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
    flags = [one for one in nodes if isinstance(one, ast.stmt) and _makes_leaf(one, name, program.names(file))]
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
    is_leaf = isinstance(value, ast.Call) and _is_leaf(value, program.names(file))
    if not reads or held or is_leaf or not any(one.lineno < node.lineno for one in flags):
        return
    block = list(block_of(node, file))
    if any(_flags(one, name) for one in (block[block.index(node) + 1 :] if node in block else ())):
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
    if _flags(statement, name):
        return True
    is_bound = isinstance(statement, ast.Assign) and dotted_name(statement.targets[0]) == name
    return (
        is_bound and isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
        and _is_leaf(statement.value, names)
    )  # fmt: skip


def _flags(statement: ast.stmt, name: str) -> bool:
    """`w.requires_grad_(True)` or `w.requires_grad = True`."""
    if isinstance(statement, ast.Assign):
        return dotted_name(statement.targets[0]) == f"{name}.requires_grad"
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and dotted_name(call.func) == f"{name}.requires_grad_"


def _inner_leaf(node: ast.expr, names: Names) -> ast.Call | None:
    """The leaf under scalings, casts and moves."""
    while True:
        if isinstance(node, ast.BinOp):
            found = [one for one in (node.left, node.right) if _inner_leaf(one, names) is not None]
            if len(found) != 1:
                return None
            node = found[0]
        elif isinstance(node, ast.Call) and _is_leaf(node, names):
            return node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
            node = node.func.value
        else:
            return None


def _is_leaf(node: ast.Call, names: Names) -> bool:
    called = names.qualified(node.func) or ""
    if called in _PARAMETERS:
        return True
    if called.startswith("torch.") and asks_for(node, "requires_grad", value=True):
        return True
    is_flag = isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_"
    return is_flag and (not node.args or (isinstance(node.args[0], ast.Constant) and node.args[0].value is True))


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


def _leaf_last(whole: ast.expr, leaf: ast.Call, file: SourceFile, names: Names) -> tuple[Edit, ...] | None:
    if names.is_call(leaf, *_PARAMETERS):
        return _parameter_last(whole, leaf, file)
    return _flag_last(whole, leaf, file)


def _flag_last(whole: ast.expr, leaf: ast.Call, file: SourceFile) -> tuple[Edit, ...] | None:
    start, end = file.span(whole)
    text = file.text[start:end]
    low, high = file.span(leaf)
    inner = _without_flag(leaf, file)
    if inner is None:
        return None
    new = text[: low - start] + inner + text[high - start :]
    new = f"({new})" if isinstance(whole, (ast.BinOp, ast.UnaryOp)) else new
    return (edit_of(file, whole, f"{new}.requires_grad_(True)"),)


def _without_flag(leaf: ast.Call, file: SourceFile) -> str | None:
    """The leaf's call without its flag."""
    if isinstance(leaf.func, ast.Attribute) and leaf.func.attr == "requires_grad_":
        return operand(file, leaf.func.value)
    start, _ = file.span(leaf)
    text = file.segment(leaf)
    (flag,) = [one for one in leaf.keywords if one.arg == "requires_grad"]
    low, high = file.span(flag)
    before, after = text[: low - start].rstrip(), text[high - start :]
    if before.endswith(","):
        return before[:-1] + after
    return before + after.lstrip(", ") if before.endswith("(") else None


def _parameter_last(whole: ast.expr, leaf: ast.Call, file: SourceFile) -> tuple[Edit, ...] | None:
    if len(leaf.args) != 1 or leaf.keywords:
        return None
    start, end = file.span(whole)
    low, high = file.span(leaf)
    text = file.text
    inner = operand(file, leaf.args[0]) if isinstance(leaf.args[0], ast.BinOp) else file.segment(leaf.args[0])
    new = f"{file.segment(leaf.func)}({text[start:low]}{inner}{text[high:end]})"
    return (edit_of(file, whole, new),)


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
