"""A parameter that one group lists twice is listed once: `list(dict.fromkeys([*encoder.parameters(), *decoder.parameters()]))`.

Only where a list is put together of several; the order stays that in which each parameter comes first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, find_calls, scope_of

_TWICE = "parameter group with duplicate parameters"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer whose parameters come from several lists."""
    said = [one.message for one in context.incident.warnings] + [one.message for one in context.incident.exceptions]
    if not any(_TWICE in one for one in said):
        return
    for file, call in find_calls(context.program):
        names = context.program.names(file)
        if not (names.qualified(call.func) or "").startswith("torch.optim.") or "lr_scheduler" in file.segment(
            call.func
        ):
            continue
        given = call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "params"), None)
        for node in _groups(given) if given is not None else ():
            if _is_joined(Value(node, file), names):
                yield Proposal(
                    edits=(edit_of(file, node, f"list(dict.fromkeys({file.segment(node)}))"),),
                    culprit=culprit_of(file, node, "lists a parameter that its parts share once for each"),
                    belief=2.0,
                )


def _groups(given: ast.expr) -> list[ast.expr]:
    """What the groups of an optimizer list."""
    if isinstance(given, ast.List) and any(isinstance(one, ast.Dict) for one in given.elts):
        pairs = [
            pair for one in given.elts if isinstance(one, ast.Dict) for pair in zip(one.keys, one.values, strict=True)
        ]
        return [value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "params"]
    return [given]


def _is_joined(value: Value, names: Names) -> bool:
    """Whether a list is put together of several: starred, added, chained, or a name that is filled by more than one line."""
    node, file = value.node, value.file
    if isinstance(node, (ast.List, ast.Tuple)):
        return len(node.elts) > 1
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add)
    if isinstance(node, ast.Call):
        return (names.qualified(node.func) or "").startswith("itertools.chain") or (
            dotted_name(node.func) in ("list", "tuple")
            and any(_is_joined(Value(one, file), names) for one in node.args)
        )
    name = dotted_name(node)
    return name is not None and _is_filled(name, node, file, names)


def _is_filled(name: str, node: ast.expr, file: SourceFile, names: Names) -> bool:
    scope = scope_of(node, file)
    bounds = [one.node for one in bounds_of(scope) if one.name == name]
    if len(bounds) == 1 and _is_joined(Value(bounds[0], file), names):
        return True
    extended = [
        one
        for one in walk(scope)
        if (isinstance(one, ast.AugAssign) and dotted_name(one.target) == name)
        or (isinstance(one, ast.Call) and dotted_name(one.func) in (f"{name}.extend", f"{name}.append"))
    ]
    return bool(extended)
