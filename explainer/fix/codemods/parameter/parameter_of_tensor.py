"""A tensor of a module that requires grad, and is a mere attribute, becomes its parameter.

`self.scale = torch.ones(1, requires_grad=True)` becomes `self.scale = nn.Parameter(torch.ones(1))`: `parameters()` sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import remove_argument, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.module import inherits_module

_SAYS = "is a plain tensor that requires grad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each attribute that the live program was seen to leave to no optimizer."""
    log = [one.text for one in context.incident.log if _SAYS in one.text] if context.has_failed else []
    seen = {path.rpartition(".")[2] for text in log for path in text.split("`")[1::2]}
    for file in context.program.parsed() if seen else ():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            name = dotted_name(node.targets[0]) or ""
            owner = names.class_of(node)
            if name.removeprefix("self.") not in seen or not name.startswith("self.") or owner is None:
                continue
            edits = _as_parameter(node.value, file, names) if inherits_module(owner, file, context.program) else ()
            if edits:
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(file, node, f"makes `{name}` a tensor that `parameters()` does not see"),
                    belief=2.5,
                )


def _as_parameter(node: ast.expr, file: SourceFile, names: Names) -> tuple[Edit, ...]:
    """The edits that wrap the call which makes the tensor, without its flag; none where it is not one call that has it."""
    if not isinstance(node, ast.Call):
        return ()
    parameter = spell(names, "torch.nn.Parameter")
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
