"""A plain class that holds layers becomes a module, and the list of its objects an `nn.ModuleList`.

    class Expert:                                class Expert(nn.Module):
        def __init__(self, width):                   def __init__(self, width):
            self.hidden = nn.Linear(width, 1)            super().__init__()
                                                         self.hidden = nn.Linear(width, 1)
        def __call__(self, x): ...                   def forward(self, x): ...

An object of such a class is no part of the module that keeps it, so that `parameters()` sees none of its layers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.module import inherits_module, parts_of
from explainer.source.program import Program
from explainer.source.value.binding import Bound, Value, bounds_of
from explainer.source.value.resolve import resolver_of

_TAKEN = frozenset(
    {"forward", "parameters", "modules", "train", "eval", "to", "apply", "named_parameters", "state_dict"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """An attribute of a module that holds objects of a plain class with layers; `container` where it is a list of them."""

    file: SourceFile
    bound: Bound
    owner: ast.ClassDef
    where: SourceFile
    container: bool


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each plain class that a module keeps objects of."""
    if not context.has_failed:
        return
    program = context.program
    groups: dict[ast.ClassDef, list[_Kept]] = {}
    for one in _kept(program):
        groups.setdefault(one.owner, []).append(one)
    for owner, kept in groups.items():
        edits = _as_module(owner, kept[0].where, program)
        if edits:
            edits += [edit for one in kept for edit in _as_list(one, program)]
            first = kept[0]
            yield Proposal(
                edits=tuple(edits),
                culprit=culprit_of(first.file, first.bound.statement, f"keeps objects of `{owner.name}`, which is no module: `parameters()` does not see their layers"),
                belief=2.0,
            )  # fmt: skip


def _kept(program: Program) -> Iterator[_Kept]:
    for file, function in program.functions():
        holder = program.names(file).class_of(function)
        if holder is None or function.name != "__init__" or not inherits_module(holder, file, program):
            continue
        for bound in bounds_of(function):
            element = _element(bound.node)
            made = element or bound.node
            if not bound.name.startswith("self.") or bound.fills or not isinstance(made, ast.Call):
                continue
            for where, owner in resolver_of(program).classes_of(Value(made, file)):
                if not owner.bases and not owner.keywords and parts_of(owner, where, program):
                    yield _Kept(file=file, bound=bound, owner=owner, where=where, container=element is not None)


def _element(node: ast.expr) -> ast.expr | None:
    """What a plain list holds: the element of a comprehension, or the first of a list."""
    if isinstance(node, ast.ListComp):
        return node.elt
    return node.elts[0] if isinstance(node, ast.List) and node.elts else None


def _as_module(owner: ast.ClassDef, file: SourceFile, program: Program) -> list[Edit]:
    """The edits that make a class a module; none where it has a name that modules use, or no constructor to call theirs in."""
    nn = _spelling(file, program)
    methods = {one.name: one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    made, called = methods.get("__init__"), methods.get("__call__")
    if nn is None or made is None or _TAKEN & set(methods):
        return []
    after = file.span(owner)[0] + len("class ") + len(owner.name)
    end = file.text.index(":", after)
    edits = [Edit(file=file.path, start=after, end=end, new=f"({nn}.Module)")]
    edits.append(insert_before(file, _first(made), "super().__init__()"))
    if called is not None:
        start = file.text.index("__call__", file.span(called)[0])
        edits.append(Edit(file=file.path, start=start, end=start + len("__call__"), new="forward"))
    return edits if file.text[after:end].strip() in ("", "()") else []


def _first(function: Function) -> ast.stmt:
    """The first statement behind a docstring."""
    first = function.body[0]
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return function.body[1] if is_text and len(function.body) > 1 else first


def _as_list(kept: _Kept, program: Program) -> list[Edit]:
    nn = _spelling(kept.file, program)
    if not kept.container or nn is None:
        return []
    node = kept.bound.node
    text = kept.file.segment(node)
    inner = text[1:-1] if isinstance(node, ast.ListComp) and not _spans_lines(node) else text
    return [edit_of(kept.file, node, f"{nn}.ModuleList({inner})")]


def _spans_lines(node: ast.expr) -> bool:
    return node.lineno != node.end_lineno


def _spelling(file: SourceFile, program: Program) -> str | None:
    """What a file calls `torch.nn`."""
    written = spell(program.names(file), "torch.nn")
    return written if written.partition(".")[0] in program.names(file).imports else None
