"""A tensor of a module that requires grad, and is a mere attribute, becomes its parameter.

`self.scale = torch.ones(1, requires_grad=True)` becomes `self.scale = nn.Parameter(torch.ones(1))`: `parameters()` sees it.
So do all of them, where an optimizer was given no parameter at all, with those that a statement of its own flags. A list of such
tensors becomes an `nn.ParameterList`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import remove_argument, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.tree import walk

_PARAMETER = "torch.nn.Parameter"
_EMPTY = "optimizer got an empty parameter list"
_WHY = "makes `{name}` a tensor that `parameters()` does not see"
_SAYS = "is a plain tensor that requires grad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each attribute that the live program was seen to leave to no optimizer."""
    log = [one.text for one in context.incident.log if _SAYS in one.text] if context.has_failed else []
    paths = [path.split(".") for text in log for path in text.split("`")[1::2]]
    seen = {path[-2] if path[-1].isdigit() and len(path) > 1 else path[-1] for path in paths}  # of an entry its list
    for file in context.program.parsed() if seen else ():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            name = dotted_name(node.targets[0]) or ""
            owner = names.class_of(node)
            if name.removeprefix("self.") not in seen or not name.startswith("self.") or owner is None:
                continue
            edits = _registered(node.value, file, names) if inherits_module(owner, file, context.program) else ()
            if edits:
                yield Proposal(edits=edits, culprit=culprit_of(file, node, _WHY.format(name=name)), belief=2.5)
    if context.has_failed and any(_EMPTY in one.message for one in context.incident.exceptions):
        yield from _together(context)


def _together(context: Context) -> Iterator[Proposal]:
    """One edit for all flagged tensors of the modules of a file."""
    for file in context.program.parsed():
        names = context.program.names(file)
        found = []
        for owner in (one for one in file.walk() if isinstance(one, ast.ClassDef)):
            flagged = set(_flagged(owner)) if inherits_module(owner, file, context.program) else None
            for node in walk(owner) if flagged is not None else ():
                name = dotted_name(node.targets[0]) if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
                if not isinstance(node, ast.Assign) or name is None or not name.startswith("self."):
                    continue
                edits = _registered(node.value, file, names)
                if not edits and name in (flagged or ()) and _makes_tensor(node.value, names):
                    edits = (edit_of(file, node.value, f"{spell(names, _PARAMETER)}({file.segment(node.value)})"),)
                found += [(name, node, edits)] if edits else []
        if found:
            name, node, _ = found[0]
            edits = tuple(edit for _, _, each in found for edit in each)
            yield Proposal(edits=edits, culprit=culprit_of(file, node, _WHY.format(name=name)), belief=2.5)


def _flagged(owner: ast.ClassDef) -> Iterator[str]:
    """The attributes of which a statement sets the flag: `self.a.requires_grad_()`, `self.a.requires_grad = True`."""
    for node in walk(owner):
        call = node.value if isinstance(node, ast.Expr) else None
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        flag = call.func if isinstance(call, ast.Call) and not call.args else target
        if isinstance(flag, ast.Attribute) and flag.attr in ("requires_grad_", "requires_grad"):
            is_on = target is None or (isinstance(node, ast.Assign) and getattr(node.value, "value", None) is True)
            name = dotted_name(flag.value)
            if name is not None and is_on:
                yield name


def _makes_tensor(node: ast.expr, names: Names) -> bool:
    """Whether an expression is computed of a tensor that a function of torch makes: `torch.randn(8, 4) * 0.02`."""
    calls = [names.qualified(one.func) or "" for one in walk(node) if isinstance(one, ast.Call)]
    return any(one.startswith("torch.") and not one.startswith("torch.nn.") for one in calls)


def _registered(node: ast.expr, file: SourceFile, names: Names) -> tuple[Edit, ...]:
    """The edits of a tensor, or of a list in which each entry is one."""
    entries = node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else None
    if entries is None:
        return _as_parameter(node, file, names)
    inner = [_as_parameter(one, file, names) for one in entries]
    if not inner or not all(inner):
        return ()
    start, end = file.span(node)
    return (
        Edit(file=file.path, start=start, end=start, new=f"{spell(names, 'torch.nn.ParameterList')}("),
        *(edit for one in inner for edit in one),
        Edit(file=file.path, start=end, end=end, new=")"),
    )


def _as_parameter(node: ast.expr, file: SourceFile, names: Names) -> tuple[Edit, ...]:
    """The edits that wrap the call which makes the tensor, without its flag; none where it is not one call that has it."""
    if not isinstance(node, ast.Call):
        return ()
    parameter = spell(names, _PARAMETER)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        made = file.segment(node.func.value)
        return () if node.args or node.keywords else (edit_of(file, node, f"{parameter}({made})"),)
    flag = next((one for one in node.keywords if one.arg == "requires_grad"), None)
    if flag is None or not (isinstance(flag.value, ast.Constant) and flag.value.value is True):
        return ()
    start, end = file.span(node)
    return (
        Edit(file=file.path, start=start, end=start, new=f"{parameter}("),
        remove_argument(file, node, flag),
        Edit(file=file.path, start=end, end=end, new=")"),
    )
