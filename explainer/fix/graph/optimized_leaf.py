"""Leaves for an optimizer that is given results: the flag set last, or a leaf of its own that keeps the values that were computed.

What is computed from a leaf that nothing else holds gets the flag last. What is computed with a graph from tensors that are trained
themselves, or by a module, is to start from those values: `sizes = gaps(centres).log().detach().requires_grad_(True)`. `detach` alone
would be taken, and never move. A leaf that no optimizer has may be what was meant: there the line is named, and nothing is edited.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.fix.graph.leaf import flags, inner_leaf, leaf_last
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import is_leaf
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.network.optimized import Given, optimizer_calls, tensors_given
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, bounds_of, scope_of, walk_scope
from explainer.source.value.lineage import block_of
from explainer.source.value.provenance import Provenance, Trace, provenance_of
from explainer.source.value.resolve import resolver_of

REFUSED = "can't optimize a non-leaf Tensor"
_OWN = ".detach().requires_grad_(True)"
_TITLE = f"Train a leaf of its own that starts from what is computed: `{_OWN}`"
_BECAUSE = "what it is computed from is trained by itself; `detach()` alone is taken by the optimizer, and never moves"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Optimizer:
    """A call that gives an optimizer tensors, and these."""

    call: ast.Call
    tensors: tuple[Given, ...]


def of_optimizers(seen: set[ast.AST], context: Context) -> Iterator[Proposal]:
    """An edit for each result that an optimizer is given; for several of one optimizer first all together.

    `seen` gets the expressions that are mended by a flag that is set last; those in it are not proposed again.
    """
    program = context.program
    calls = [*program.once(optimizer_calls), *_refused(context)]
    optimizers = [
        _Optimizer(
            call=call, tensors=tuple({one.value.node: one for one in tensors_given(call, file, program)}.values())
        )
        for file, call in dict.fromkeys(calls)
    ]
    for one in optimizers:
        known = frozenset(seen)
        found = [(each.value.node, _leaf(each, one, optimizers, context)) for each in one.tensors]
        mended = [(node, proposal) for node, proposal in found if proposal is not None]
        seen.update(node for node, proposal in mended if proposal.edits)
        if len(mended) > 1 and all(proposal.edits for _, proposal in mended):
            edits = tuple(dict.fromkeys(edit for _, proposal in mended for edit in proposal.edits))
            yield replace(mended[0][1], edits=edits, belief=mended[0][1].belief + 0.3)
        yield from (proposal for node, proposal in mended if node not in known)


def _refused(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The outermost call of a library at the line where a tensor was refused, if no optimizer is known there."""
    resolver, known = resolver_of(context.program), {call for _, call in context.program.once(optimizer_calls)}
    for file, statement in raised_at(context) if REFUSED in message_of(context) else ():
        calls = [node for node in walk(statement) if isinstance(node, ast.Call)]
        others = (one for one in calls if one.args and resolver.function_of(one, Value(one, file)) is None)
        first = next(others, None) if not known.intersection(calls) else None
        if first is not None:
            yield file, first


def _leaf(given: Given, to: _Optimizer, optimizers: Sequence[_Optimizer], context: Context) -> Proposal | None:
    value, program = given.value, context.program
    names = program.names(value.file)
    leaf = inner_leaf(value.node, names)
    if leaf is value.node:
        return _flagged_with_graph(leaf, value, program)
    if leaf is not None:
        edits = leaf_last(value.node, leaf, value.file, names)
        why = "computes what is trained from the leaf, so that it is none"
        culprit = culprit_of(value.file, value.node, why)
        return Proposal(edits=edits, culprit=culprit, belief=2.4) if edits is not None else None
    is_result = REFUSED in message_of(context) and not is_leaf(value.node, value.file, program)
    return _computed(given.place, to, optimizers, program) if is_result and not _is_list(value.node) else None


def _flagged_with_graph(flag: ast.Call, value: Value, program: Program) -> Proposal | None:
    """`net(z).mean(0).requires_grad_(True)`: what is flagged has a graph."""
    if not isinstance(flag.func, ast.Attribute) or flag.func.attr != "requires_grad_":
        return None
    if not provenance_of(program).trace(replace(value, node=flag.func.value, pick=None)).live:
        return None
    return Proposal(
        edits=(put_method(value.file, flag.func.value, ".detach()"),),
        culprit=culprit_of(value.file, flag, "flags a tensor that has a graph, which makes no leaf of it"),
        belief=2.2,
    )


def _computed(value: Value, to: _Optimizer, optimizers: Sequence[_Optimizer], program: Program) -> Proposal | None:
    """A leaf of its own, where what the value is computed from is trained by itself or a module's; else the line alone."""
    trace = _Traces(program).trace(value)
    if not trace.live:
        return None
    is_meant = (
        _is_of_trained(trace, [one for each in optimizers for one in each.tensors], program)
        and value.node not in set(walk(to.call))  # nothing but the optimizer would have it
        and not _is_computed_again(value, program)
    )
    edit = _own_leaf(value) if is_meant else None
    culprit = culprit_of(value.file, value.node, "computes what is trained with a graph, so that it is no leaf")
    edits = (edit,) if edit is not None else ()
    return Proposal(edits=edits, culprit=culprit, belief=2.4, title=_TITLE, because=_BECAUSE)


class _Traces(Provenance):
    """Traces that know a leaf by the statement that flags it too: `centres.requires_grad_()`."""

    def _node(self, value: Value, depth: int) -> Trace:
        name = dotted_name(value.node)
        for bound in self.resolver.behind(value) if name is not None else ():
            if _is_flagged(name or "", bound, value):
                return Trace(live=True, sources=(bound.node,))
        return super()._node(value, depth)


def _is_flagged(name: str, bound: Value, read: Value) -> bool:
    """Whether a statement flags what a name was bound to, behind that and before it is read."""
    statement, file = bound.statement, bound.file
    if not isinstance(statement, ast.Assign) or dotted_name(statement.targets[0]) != name:
        return False
    scope = scope_of(statement, file)
    end = start_of(read.node) if read.file is file and scope_of(read.node, file) is scope else None
    return any(
        isinstance(one, ast.stmt) and flags(one, name) and start_of(one) > start_of(statement)
        and (end is None or start_of(one) < end)
        for one in walk_scope(scope)
    )  # fmt: skip


def _is_of_trained(trace: Trace, given: Sequence[Given], program: Program) -> bool:
    """Whether all that a graph comes from is given to an optimizer itself, or is a module's."""
    resolver = resolver_of(program)
    leaves = {one.value.node for one in given}
    owners = {owner for one in given for owner in _listed(one.value, program)}
    is_run, are_known = False, []
    for node in trace.sources:
        file = program.file_of(node)
        if file is None:
            return False
        if node in leaves:
            are_known.append(True)
        elif isinstance(node, ast.Call) and is_leaf(node, file, program):
            around = program.names(file).class_of(node)
            if around is None or not inherits_module(around, file, program):
                return False
            are_known.append(around in owners)
        elif isinstance(node, ast.Call):
            if resolver.function_of(node, Value(node, file)) is None:
                is_run = is_run or bool(resolver.constructors_of(Value(node.func, file)))
                are_known.append(is_run)
        else:
            are_known.append(isinstance(node, ast.Attribute))
    return bool(are_known) and (is_run or all(are_known))


def _is_list(node: ast.expr) -> bool:
    """`net.parameters()`, `net.named_parameters()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("parameters")


def _listed(value: Value, program: Program) -> Iterator[ast.ClassDef]:
    """The classes whose parameters a call lists: `net.parameters()`."""
    node = value.node
    if _is_list(node) and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        for _, owner in resolver_of(program).classes_of(replace(value, node=node.func.value)):
            yield owner


def _is_computed_again(value: Value, program: Program) -> bool:
    """Whether the program computes the same a second time, or the name anew, as a loop does: then it is not this tensor that trains."""
    text, kind = ast.unparse(value.node), type(value.node)
    name = dotted_name(value.statement.targets[0]) if isinstance(value.statement, ast.Assign) else None
    is_anew = name is not None and any(
        one.name == name and not one.fills and start_of(one.statement) > start_of(value.node)
        for one in bounds_of(scope_of(value.node, value.file))
    )
    return is_anew or any(
        isinstance(node, kind) and node is not value.node and ast.unparse(node) == text
        for file in program.parsed()
        for node in file.walk()
    )


def _own_leaf(value: Value) -> Edit | None:
    """The edit that makes a leaf of a result where it is computed; behind the line where that gives several at once."""
    file, statement = value.file, value.statement
    if value.is_element:
        return None
    if isinstance(value.pick, int):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        names = [dotted_name(one) for one in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else []
        name = names[value.pick] if value.pick < len(names) else None
        return (
            insert_after(file, statement, f"{name} = {name}{_OWN}")
            if name and isinstance(statement, ast.Assign)
            else None
        )
    if isinstance(statement, ast.Assign) and statement.value is value.node:
        name = dotted_name(statement.targets[0])
        block = list(block_of(statement, file))
        behind = block[block.index(statement) + 1 :] if statement in block else []
        if name is not None and any(flags(one, name) for one in behind):
            return put_method(file, value.node, ".detach()")
    return put_method(file, value.node, _OWN)
