"""What is read and then written in place is read as a copy: `cell(x, states[t].clone())`, `project(table.weight.clone())`.

For a tensor that a loop, or a function that is called in one, fills step by step while it reads the last step from it, for the table of an embedding with `max_norm`,
and for a weight that a module rescales in its own forward.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import forward_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.alias import is_collected, is_returned
from explainer.source.graph.operand import calls_given
from explainer.source.graph.write import SUBSCRIPT, Write, find_writes, is_without_grad
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters, bounds_of
from explainer.source.value.definition import seen_through
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import loop_of, reads

_CONVOLUTIONS = {f"torch.nn.Conv{rank}d" for rank in (1, 2, 3)}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each tensor that is read where a later write needs its place."""
    if not context.has_failed:
        return
    near = [statement for _, statement in forward_places(context)]
    is_of_weights = context.options.get("of") == "weights"
    for write in () if is_of_weights else find_writes(context.program):
        loop = _repeated(write, context.program) if write.kind == SUBSCRIPT else None
        # Where the tensor itself is collected, each entry must be a tensor of its own: a copy that is read would not make them so.
        is_written = loop is not None and write.name is not None and not is_collected(write, loop)
        if is_written and loop is not None and _has_graph(write, loop, context.program):
            edits = tuple(_copies(write, loop, context.program))
            if edits:
                is_near = any(loop.lineno <= one.lineno <= (loop.end_lineno or 0) for one in near)
                why = f"writes into `{write.name}`, of which the graph holds what was read before"
                culprit, belief = culprit_of(write.file, write.node, why), 1.0 + (1.0 if is_near else 0.0)
                yield Proposal(edits=edits, culprit=culprit, belief=belief)
                first = _first_of(loop, write)
                if first is not None:  # others have saved what the last call wrote, and this one writes again
                    own = insert_before(write.file, first, f"{write.name} = {write.name}.clone()")
                    yield Proposal(edits=(own, *edits), culprit=culprit, belief=belief - 0.2)
    seen = context.incident.fact("live_renormalised")
    yield from _tables(context.program, seen.value.rpartition(".")[2] if seen is not None else None)
    yield from _own_weights(context.program)


def _first_of(loop: ast.For | ast.While | Function, write: Write) -> ast.stmt | None:
    """The first statement of a function that gives back what it was handed and writes; None for any other."""
    is_handed = isinstance(loop, (ast.FunctionDef, ast.AsyncFunctionDef)) and write.name in all_parameters(loop)
    if not is_handed or write.name is None or not is_returned(loop, write.name):
        return None
    body = [one for one in loop.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    return body[0]


def _repeated(write: Write, program: Program) -> ast.For | ast.While | Function | None:
    """What runs again and again round a write: its loop, else the function that is handed the tensor, or keeps it on `self`."""
    loop = loop_of(write.node, write.file)
    function = program.names(write.file).function_of(write.node)
    if loop is not None or function is None or write.name is None:
        return loop
    is_kept = write.name.partition(".")[0] in all_parameters(function)
    is_bound = any(one.name == write.name and not one.fills for one in bounds_of(function))
    return function if is_kept and not is_bound else None


def _has_graph(write: Write, loop: ast.AST, program: Program) -> bool:
    """Whether anything that the loop computes with the tensor has a graph: data that is made before training has none."""
    assert write.name is not None
    flow = flow_of(program)
    views = {
        name
        for one in walk(loop)
        if isinstance(one, ast.Assign)
        and isinstance(one.value, ast.Subscript)
        and dotted_name(one.value.value) == write.name
        for name in bound_names(one)
    }
    if any(calls_given(one, write.node, write.file, program) for one in (write.name, *views)):
        return True  # a module or function, of which the flow may not know that it has weights
    used = [one for one in walk(loop) if isinstance(one, (ast.Call, ast.BinOp)) and {write.name, *views} & reads(one)]
    return any(flow.reach_of(one, write.file) != Reach.NONE for one in used)


def _copies(write: Write, loop: ast.AST, program: Program) -> Iterator[Edit]:
    """`.clone()` behind each part of the tensor that the loop reads as an operand, and behind what it hands to a module."""
    places = dict.fromkeys(write.file.span(node)[1] for node in walk(loop) if _is_part(node, write))
    assert write.name is not None
    for call in calls_given(write.name, write.node, write.file, program):
        is_inside = loop.lineno <= call.lineno <= (loop.end_lineno or 0)  # type: ignore[attr-defined]
        is_used = not isinstance(
            write.file.parents.get(call), ast.Expr
        )  # a call without a result writes what it is given
        if is_inside and is_used:
            places |= dict.fromkeys(write.file.span(one)[1] for one in call.args if _is_whole(one, write))
    yield from (Edit(file=write.file.path, start=end, end=end, new=".clone()") for end in sorted(places))


def _is_part(node: ast.AST, write: Write) -> bool:
    if (
        not isinstance(node, ast.Subscript)
        or not isinstance(node.ctx, ast.Load)
        or dotted_name(node.value) != write.name
    ):
        return False
    above = write.file.parents.get(node)
    return not (isinstance(above, ast.Attribute) and above.attr in ("clone", "shape", "detach", "item", "size"))


def _is_whole(node: ast.expr, write: Write) -> bool:
    """Whether an argument is the tensor, or a view of it that a method makes: parts are found as such."""
    return not isinstance(node, ast.Subscript) and seen_through(node)[0] == write.name


def _tables(program: Program, seen: str | None) -> Iterator[Proposal]:
    """Reads of the weight of an embedding that renormalises its rows as it looks them up."""
    for file in program.parsed():
        for name, made in _constructions(file):
            called = program.names(file).qualified(made.func)
            limits = [
                one for one in made.keywords if one.arg == "max_norm" and getattr(one.value, "value", 0) is not None
            ]
            is_limited = bool(limits) or name.rpartition(".")[2] == seen  # the options may say it: `**embedding`
            if called not in ("torch.nn.Embedding", "torch.nn.EmbeddingBag") or not is_limited:
                continue
            reads = [
                (each, node)
                for each in program.parsed()
                for node in each.walk()
                if isinstance(node, ast.expr)
                and _is_read(node, f"{name}.weight", each)
                and _is_computed_with(node, each, program)
            ]
            edits = tuple(_cloned(each, node) for each, node in reads)
            if edits:
                why = f"reads the whole table, of which `{name}`'s lookup rescales rows (`max_norm`)"
                yield Proposal(edits=edits, culprit=culprit_of(*reads[0], why), belief=1.2)


def _constructions(file: SourceFile) -> Iterator[tuple[str, ast.Call]]:
    for node in file.walk():
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            name = dotted_name(node.targets[0])
            if name:
                yield name, node.value


def _is_read(node: ast.AST, name: str, file: SourceFile) -> bool:
    """Whether a node reads a weight as an operand, not for its shape, its data, or to write it."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or dotted_name(node) != name:
        return False
    above = file.parents.get(node)
    if isinstance(above, ast.Attribute):
        return above.attr in ("T", "mT", "t", "transpose", "pow", "square", "norm", "sum", "mean", "view", "reshape")
    return not isinstance(above, (ast.AugAssign, ast.Subscript))


def _is_computed_with(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a graph may come of it: not in a constructor, under `no_grad`, or as what an initialiser or optimizer is given."""
    function = program.names(file).function_of(node)
    if (function is not None and function.name == "__init__") or is_without_grad(node, file, program):
        return False
    above = file.enclosing(node, ast.Call)
    called = (dotted_name(above.func) or "").rpartition(".")[2] if isinstance(above, ast.Call) else ""
    return not (called.endswith("_") or called in ("Parameter", "print", "len", "add_param_group"))


def _cloned(file: SourceFile, node: ast.expr) -> Edit:
    end = file.span(node)[1]
    return Edit(file=file.path, start=end, end=end, new=".clone()")


def _own_weights(program: Program) -> Iterator[Proposal]:
    """A forward that rescales its own weight: the product takes a copy of it."""
    for file, method in program.functions():
        owner = program.names(file).class_of(method)
        write = next((node for node in walk(method) if _is_weight_write(node)), None)
        if owner is None or write is None or method.name not in ("forward", "__call__"):
            continue
        edits = list(_products(file, method, write, program))
        edits += [edit for node in walk(method) if (edit := _of_super(file, node, owner, program))]
        if edits:
            why = "rescales the weight that an earlier call's graph holds"
            yield Proposal(edits=tuple(edits), culprit=culprit_of(file, write, why), belief=1.2)


def _is_weight_write(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        return (dotted_name(node.target) or "").endswith(".weight")
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, ast.Attribute) or not func.attr.endswith("_") or func.attr.startswith("_"):
        return False
    return (dotted_name(func.value) or "").endswith(".weight")


def _products(file: SourceFile, method: ast.AST, write: ast.AST, program: Program) -> Iterator[Edit]:
    """`F.linear(x, self.weight)` and `x @ self.weight` below the write."""
    for node in walk(method):
        if not isinstance(node, ast.Attribute) or node.attr != "weight" or not isinstance(node.ctx, ast.Load):
            continue
        above = file.parents.get(node)
        called = program.names(file).qualified(above.func) if isinstance(above, ast.Call) and node in above.args else ""
        is_operand = isinstance(above, ast.BinOp) or (called or "").startswith("torch.nn.functional.")
        if is_operand and node.lineno > (getattr(write, "end_lineno", 0) or 0):
            yield _cloned(file, node)


def _of_super(file: SourceFile, node: ast.AST, owner: ast.ClassDef, program: Program) -> Edit | None:
    """`super().forward(x)` of a subclass of a linear layer or a convolution, written out with a copy of the weight."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "forward"
    if not is_call or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    above = node.func.value
    names = program.names(file)
    if not (isinstance(above, ast.Call) and dotted_name(above.func) == "super") or len(node.args) != 1:
        return None
    bases = {names.qualified(base) for base in owner.bases}
    if "torch.nn.Linear" in bases:
        function = spell(names, "torch.nn.functional.linear")
    elif bases & _CONVOLUTIONS:
        function = "self._conv_forward"  # pads as the layer is told, which the functional form does not
    else:
        return None
    return edit_of(file, node, f"{function}({file.segment(node.args[0])}, self.weight.clone(), self.bias)")
