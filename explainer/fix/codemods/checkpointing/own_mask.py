"""A layer that writes the mask which it shares with all layers works on one that nobody replays.

A write that gives the same values each time (`mask[...] = 0`) goes into a clone. One that accumulates over the layers
(`bias.sub_(slope)`) moves to where the layers are called, so that each layer gets the accumulated mask as a value; where that
cannot be written down, checkpointing is taken out instead, which keeps the gradients.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, remove_statement
from explainer.fix.graph.uncheckpoint import CHECKPOINT, checkpoint_calls, plain_call
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.graph.write import SUBSCRIPT, Write, find_writes
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import binds, loop_of

_DEPTH = 3
_METHODS = {"sub_": "-", "add_": "+", "mul_": "*", "div_": "/"}
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_MEMORY = "the gradients are the same; without checkpointing the activations of these layers stay in memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A call of a layer in a loop over layers: its file, the loop, the layer's path from the loop's name, and the arguments."""

    file: SourceFile
    loop: ast.For
    path: str
    given: dict[str, str]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each layer that writes a mask which it was handed."""
    if not context.has_failed:
        return
    program = context.program
    traced = {statement for _, _, statement in traced_statements(WRITE, context)}
    for write in find_writes(program):
        function = program.names(write.file).function_of(write.node)
        if function is None or not _is_parameter(write, function):
            continue
        if program.names(write.file).class_of(function) is None and write.file.statement(write.node) not in traced:
            continue  # a helper's, unless a trace saw it
        name = write.name or ""
        culprit = culprit_of(
            write.file, write.node, f"writes `{name}`, which every layer shares and recomputation writes again"
        )
        accumulated = _sum(write)
        is_part = write.kind == SUBSCRIPT and isinstance(
            write.node, ast.AugAssign
        )  # accumulates too: no clone keeps that
        if accumulated is None and not is_part:
            statement = write.file.statement(write.node)
            if not _is_cloned(name, statement, function):
                yield Proposal(
                    edits=(insert_before(write.file, statement, f"{name} = {name}.clone()"),),
                    culprit=culprit,
                    belief=1.8,
                )
        elif accumulated is not None:
            edits = _handed_on(write, function, accumulated, program)
            if edits:
                yield Proposal(
                    edits=edits, culprit=culprit, belief=1.9, title=f"Accumulate `{name}` where the layers are called"
                )
        off = tuple(edit for file, node in checkpoint_calls(program) for edit in plain_call(file, node))
        if off:
            yield Proposal(
                edits=off, culprit=culprit, belief=0.9, applicability="unsafe", because=_MEMORY,
                title="Call the layers without checkpointing",
            )  # fmt: skip


def _is_parameter(write: Write, function: Function) -> bool:
    """Whether the write goes into an argument that the function has not bound anew."""
    names = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    rebound = any(
        isinstance(one, ast.Assign) and write.name in binds(one) and one.lineno < write.node.lineno
        for one in walk(function)
    )
    return write.name in names and not rebound


def _is_cloned(name: str, statement: ast.stmt, function: Function) -> bool:
    return any(
        isinstance(one, ast.Assign) and name in binds(one) and one.lineno < statement.lineno for one in walk(function)
    )


def _sum(write: Write) -> tuple[str, ast.expr] | None:
    """The operator and the operand of a write that takes up the old value; None for one that does not."""
    node = write.node
    if write.kind == SUBSCRIPT:
        return None
    if isinstance(node, ast.AugAssign):
        symbol = _OPERATORS.get(type(node.op))
        return (symbol, node.value) if symbol else None
    func = node.func if isinstance(node, ast.Call) else None
    symbol = _METHODS.get(func.attr) if isinstance(func, ast.Attribute) else None
    if symbol and isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return symbol, node.args[0]
    return None


def _handed_on(
    write: Write, function: Function, accumulated: tuple[str, ast.expr], program: Program
) -> tuple[Edit, ...]:
    """The write moved to the loop over the layers: `bias = bias - layer.attn.slope * dist`."""
    symbol, value = accumulated
    statement = write.file.statement(write.node)
    owner = program.names(write.file).class_of(function)
    calls = list(_calls(owner, function, program)) if owner is not None else []
    loops = {one.loop for one in calls}
    if not isinstance(statement, (ast.Expr, ast.AugAssign)) or len(loops) != 1 or statement not in function.body:
        return ()
    call = calls[0]
    target = call.given.get(write.name or "")
    text = _substituted(value, write.file, call)
    if target is None or text is None or not target.isidentifier():
        return ()
    new = f"{target} = {target} {symbol} {text}"
    return (remove_statement(write.file, statement), insert_before(call.file, call.loop.body[0], new))


def _calls(owner: ast.ClassDef, function: Function, program: Program, depth: int = 0) -> Iterator[_Call]:
    """Where a loop runs the layers whose forward this is, itself or through modules that hand the mask on unchanged."""
    for where in program.parsed():
        names = program.names(where)
        for node in where.walk():
            if not isinstance(node, ast.Call):
                continue
            layer, call = _layer(node, names.qualified(node.func) or "")
            loop = loop_of(node, where)
            if (
                layer
                and isinstance(loop, ast.For)
                and layer in _targets(loop)
                and _is_made(loop.iter, owner, where, node, program)
            ):
                yield _Call(file=where, loop=loop, path=layer, given=_given(call, function, where))
            elif layer.startswith("self.") and depth < _DEPTH and _holds(layer, owner, where, node, program):
                outer, holder = names.function_of(node), names.class_of(node)
                if outer is not None and holder is not None:
                    inner = _given(call, function, where)
                    yield from (_through(one, layer, inner) for one in _calls(holder, outer, program, depth + 1))


def _holds(layer: str, owner: ast.ClassDef, where: SourceFile, at: ast.AST, program: Program) -> bool:
    """Whether the attribute that is called is an object of the class."""
    holder = program.names(where).class_of(at)
    made = program.names(where).attribute_value(holder, layer.removeprefix("self.")) if holder is not None else None
    return isinstance(made, ast.Call) and (dotted_name(made.func) or "").rpartition(".")[2] == owner.name


def _through(outer: _Call, layer: str, inner: dict[str, str]) -> _Call:
    """The call of a layer inside a module that a loop calls, with the arguments that the module hands on unchanged."""
    given = {name: outer.given[value] for name, value in inner.items() if value in outer.given}
    path = f"{outer.path}.{layer.removeprefix('self.')}"
    return _Call(file=outer.file, loop=outer.loop, path=path, given=given)


def _layer(node: ast.Call, called: str) -> tuple[str, ast.Call]:
    """The layer that a call runs, and the call as if it were plain: `checkpoint(layer, x, mask)` is `layer(x, mask)`."""
    if called == CHECKPOINT and node.args:
        plain = ast.Call(func=node.args[0], args=node.args[1:], keywords=[])
        return dotted_name(node.args[0]) or "", plain
    return dotted_name(node.func) or "", node


def _targets(loop: ast.For) -> set[str]:
    return {node.id for node in walk(loop.target) if isinstance(node, ast.Name)}


def _is_made(iterated: ast.expr, owner: ast.ClassDef, file: SourceFile, at: ast.AST, program: Program) -> bool:
    """Whether the container of a loop is filled with objects of the class."""
    for node in walk(iterated):
        name = dotted_name(node)
        if name is None:
            continue
        around = program.names(file).class_of(at) if name.startswith("self.") else file.tree
        bound = program.names(file).assignments(name, around) if around is not None else []
        for one in bound:
            if any(isinstance(each, ast.Name) and each.id == owner.name for each in walk(one)):
                return True
    return False


def _given(call: ast.Call, function: Function, file: SourceFile) -> dict[str, str]:
    return {name: file.segment(value) for name, value in arguments_of(call, function)}


def _substituted(value: ast.expr, file: SourceFile, call: _Call) -> str | None:
    """The operand in the words of the loop: `self.slope * dist` as `layer.attn.slope * dist`; None where a name is unknown there."""
    text = operand(file, value) if not isinstance(value, ast.BinOp) else file.segment(value)
    start = file.span(value)[0] - (1 if text.startswith("(") and not file.segment(value).startswith("(") else 0)
    edits: list[tuple[int, int, str]] = []
    for node in walk(value):
        if not isinstance(node, ast.Name):
            continue
        new = call.path if node.id == "self" else call.given.get(node.id)
        if new is None and node.id != "torch":
            return None
        begin, end = file.span(node)
        edits.append((begin - start, end - start, new or node.id))
    for begin, end, new in sorted(edits, reverse=True):
        text = text[:begin] + new + text[end:]
    needs = isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub))
    return f"({text})" if needs else text
