"""Registers layers that a module keeps in a Python list or dictionary: `nn.ModuleList`, `nn.ModuleDict`, `nn.ParameterList`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.value.binding import Bound, Value, bounds_of
from explainer.source.value.resolve import resolver_of

_ROWS = (ast.List, ast.ListComp, ast.Tuple)
_CONTAINERS = (*_ROWS, ast.Dict, ast.DictComp)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for all attributes that hide layers from `parameters()`, and one for each of them."""
    if not context.has_failed:
        return
    found = list(_hidden(context))
    if "device" in message_of(context):  # one layer in a list on purpose has to move too, and not to train
        found = [(one, is_trick) for one, is_trick in found if not is_trick]
    meant = [one for one, is_trick in found if not is_trick]
    if len(meant) > 1:  # with some of them alone the rest would not train, and nothing would say so
        edits = tuple(edit for one in meant for edit in one.edits)
        yield replace(meant[0], edits=edits, belief=2.4)
    yield from (one for one, _ in found)


def _hidden(context: Context) -> Iterator[tuple[Proposal, bool]]:
    """Each such attribute's edit, and whether it holds one layer alone: a way to keep that out of the parameters on purpose."""
    for file, function in context.program.functions():
        owner = context.program.names(file).class_of(function)
        if owner is None:
            continue
        for bound in bounds_of(function):
            kind = _container(bound, function, file, context) if bound.name.startswith("self.") else None
            nn = _spelling(file, context) if kind else None
            if kind and nn:
                why = f"keeps layers in a plain {_plain(bound.node)}, which `parameters()` does not see"
                proposal = Proposal(
                    edits=(edit_of(file, bound.node, f"{nn}.{kind}({_inner(bound.node, file)})"),),
                    culprit=culprit_of(file, bound.statement, why),
                    belief=2.0,
                )
                yield proposal, isinstance(bound.node, (ast.List, ast.Tuple)) and len(bound.node.elts) == 1


def _inner(node: ast.expr, file: SourceFile) -> str:
    """The layers as a container of torch takes them."""
    text = file.segment(_rows(node))
    if isinstance(_rows(node), (ast.ListComp, ast.GeneratorExp)):
        return text[1:-1]
    return "" if text in ("[]", "{}", "()") else text


def _rows(node: ast.expr) -> ast.expr:
    """What `tuple(...)` or `list(...)` is made of; else the node itself."""
    is_made = isinstance(node, ast.Call) and dotted_name(node.func) in ("tuple", "list") and len(node.args) == 1
    return node.args[0] if is_made else node  # type: ignore[attr-defined]


def _plain(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple) or (isinstance(node, ast.Call) and dotted_name(node.func) == "tuple"):
        return "tuple"
    return "dictionary" if isinstance(node, (ast.Dict, ast.DictComp)) else "list"


def _spelling(file: SourceFile, context: Context) -> str | None:
    """What the file calls `torch.nn`."""
    imports = context.program.names(file).imports
    found = next((name for name, target in imports.items() if target == "torch.nn"), None)
    return found or ("torch.nn" if imports.get("torch") == "torch" else None)


def _container(bound: Bound, function: ast.AST, file: SourceFile, context: Context) -> str | None:
    """The class of `torch.nn` that an attribute's list or dictionary of layers or parameters should be."""
    is_row = isinstance(_rows(bound.node), (*_ROWS, ast.GeneratorExp))
    is_known = isinstance(bound.node, _CONTAINERS) or (isinstance(bound.node, ast.Call) and is_row)
    if bound.fills or bound.pick is not None or not is_known or not isinstance(bound.statement, ast.Assign):
        return None
    filled = [one.node for one in bounds_of(function) if one.name == bound.name and one.fills]
    elements = [*_elements(bound.node), *filled]
    kinds = {_kind(one, file, context) for one in elements}
    if kinds == {"Module"}:
        return "ModuleList" if is_row else "ModuleDict"
    if kinds == {"Parameter"}:
        return "ParameterList" if is_row else "ParameterDict"
    return None


def _elements(node: ast.expr) -> list[ast.expr]:
    node = _rows(node)
    if isinstance(node, (ast.List, ast.Tuple)):
        return list(node.elts)
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, ast.DictComp):
        return [node.value]
    return [node.elt] if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else []


def _kind(node: ast.expr, file: SourceFile, context: Context) -> str:
    """Whether an expression makes a module, a parameter, or anything else."""
    kinds = set()
    resolver = resolver_of(context.program)
    for made in resolver.constructors_of(Value(node, file)):
        called, is_module = "", False
        if isinstance(made.node, ast.Call):
            called = context.program.names(made.file).qualified(made.node.func) or ""
            own = resolver.find_class(made.node.func, made.file)
            found = [own] if own is not None else resolver.classes_in_table(made.node.func, made)
            is_layer = called.startswith("torch.nn.") and called.rpartition(".")[2][:1].isupper()
            are_own = bool(found) and all(inherits_module(one, where, context.program) for where, one in found)
            is_module = is_layer or are_own
        kinds.add("Parameter" if called == "torch.nn.Parameter" else "Module" if is_module else "")
    return kinds.pop() if len(kinds) == 1 else ""
