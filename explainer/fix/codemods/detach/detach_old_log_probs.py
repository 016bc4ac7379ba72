"""The old policy's log-probabilities are detached where a rollout keeps them: `self.logp.append(logp.detach())`.

`ratio = (logp - batch["logp"]).exp()` weighs the new policy against the one that acted, whose values are constants of every
update. They are found by the name under which they are kept and read, through whatever buffer, batch or sampler lies between,
or by way of the lists, rows and columns that hand them on under other names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, reaching
from explainer.source.value.collected import find_collected, handed_on
from explainer.source.value.kept import Kept, find_kept, name_read
from explainer.source.value.origin import origins
from explainer.source.value.provenance import provenance_of
from explainer.source.value.record import record_of
from explainer.source.value.resolve import resolver_of

_SIGNS = ("modified by an inplace operation", "a second time")
_WHY = "keeps the old policy's log-probabilities with their graph, which the first of several updates frees"
_PAST = re.compile(r"(?:^|_)(?:old|prev|previous|behaviou?r|sampled?|rollout|stored)(?:_|$)", re.IGNORECASE)
_CUT = ("detach", "item", "tolist", "numpy", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio:
    """`exp(new - old)` of a program."""

    file: SourceFile
    new: ast.expr
    old: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one place that keeps what a ratio of probabilities takes as the old ones."""
    if not any(sign in one.message for one in context.incident.exceptions for sign in _SIGNS):
        return
    program = context.program
    ratios = [one for file in program.parsed() for node in file.walk() for one in _ratios(node, file, program)]
    grown = [(one.value, one.file, _made(one)) for one in _kept(ratios, program)] or list(_handed_in(ratios, program))
    if len(grown) == 1:
        ((value, file, made),) = grown
        edit = put_method(file, value, ".detach()")
        culprit = culprit_of(file, made, _WHY)
        # A ratio says what is meant: computed in each round, as others may be, it would always be one.
        yield Proposal(edits=(edit,), culprit=culprit, belief=3.4, is_origin=True)


def _handed_in(ratios: Sequence[_Ratio], program: Program) -> Iterator[tuple[ast.expr, SourceFile, ast.expr]]:
    """What makes the old ones that a caller hands to the update: `ppo(states, actions, old_logp)`."""
    found: dict[ast.expr, Value] = {}
    for one in ratios:
        function = program.names(one.file).function_of(one.old)
        if isinstance(one.old, ast.Name) and function is not None and one.old.id in all_parameters(function):
            found |= {value.node: value for value in origins(Value(one.old, one.file), program)}
    for value in found.values():
        outer = program.names(value.file).function_of(value.node)
        is_outside = all(program.names(one.file).function_of(one.old) is not outer for one in ratios)
        if is_outside and isinstance(value.node, ast.Call) and _has_graph(value.node, value.file, program):
            yield value.node, value.file, value.node


def _kept(ratios: Sequence[_Ratio], program: Program) -> list[Kept]:
    """Where the old ones are kept with their graph, by the name under which they are read or by way of what hands them on."""
    names = {name for one in ratios if (name := _name(one.old)) is not None}
    kept = list(find_kept(names, program))
    live = [one for one in kept if _has_graph(one.value, one.file, program)]
    # What is appended step by step is where a value is kept; an entry of the same name may only hand on what is kept.
    grown = [one for one in live if one.is_appended]
    if grown:
        return grown
    led = [Value(one.value, one.file) for one in kept if not one.is_appended]
    led += [Value(one.old, one.file) for one in ratios if _is_older(one, program)]
    found = {one.value: one for value in led for one in find_collected(value, program)}
    collected = [one for one in found.values() if _is_tensor(one, program) and _has_graph(one.value, one.file, program)]
    return collected or [one for one in live if isinstance(one.value, ast.Name)] or live


def _is_older(ratio: _Ratio, program: Program) -> bool:
    """Whether the second of a difference is the older one: read of a batch, named so, or collected where the first is computed anew.

    A plain name may be the new ones', as in the divergence from a reference.
    """
    if _name(ratio.old) is not None:
        return True
    new = Value(ratio.new, ratio.file)
    return provenance_of(program).trace(new).live and not any(find_collected(new, program))


def _is_tensor(kept: Kept, program: Program) -> bool:
    """Whether what was collected is a value by itself, rather than a row of several."""
    node = kept.value
    if isinstance(node, ast.Call):
        return dotted_name(node.func) != "dict" and record_of(Value(node.func, kept.file), resolver_of(program)) is None
    return not isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Starred))


def _made(kept: Kept) -> ast.expr | ast.stmt:
    """What is kept, or, where it was computed in the same function, the statement that did."""
    found = reaching(kept.value.id, kept.value, kept.file) if isinstance(kept.value, ast.Name) else []
    is_computed = len(found) == 1 and isinstance(found[0].statement, ast.Assign) and not found[0].is_element
    return kept.file.statement(found[0].statement) if is_computed else kept.value


def _ratios(node: ast.AST, file: SourceFile, program: Program) -> Iterator[_Ratio]:
    """Each `exp(new - old)`, also where the difference has a name or is clamped or summed first."""
    if not isinstance(node, ast.Call):
        return
    inner = None
    if program.names(file).is_call(node, "torch.exp") and node.args:
        inner = node.args[0]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "exp":
        inner = node.func.value
    inner = handed_on(inner, file, program) if inner is not None else None
    for one in (inner, *(handed_on(each.node, file, program) for each in _behind(inner, file, program))):
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub):
            yield _Ratio(file=file, new=one.left, old=handed_on(one.right, file, program))


def _name(old: ast.expr) -> str | None:
    """The name or key under which old log-probabilities are read of a batch or a buffer."""
    name = name_read(old)
    return name if name is not None and (not isinstance(old, ast.Name) or _PAST.search(name)) else None


def _behind(node: ast.expr | None, file: SourceFile, program: Program) -> Iterator[Value]:
    if isinstance(node, ast.Name):
        yield from resolver_of(program).behind(Value(node, file))


def _has_graph(value: ast.expr, file: SourceFile, program: Program) -> bool:
    is_cut = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CUT
    if is_cut or is_without_grad(value, file, program):
        return False
    return bool(provenance_of(program).trace(Value(value, file)).live)
