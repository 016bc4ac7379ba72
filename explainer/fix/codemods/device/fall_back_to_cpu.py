"""`device = "cuda"` becomes `device = "cuda" if torch.cuda.is_available() else "cpu"`: the program runs where there is no GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.source.file import SourceFile
from explainer.source.name import Names

_SLOW = "runs on the CPU, slowly, where no GPU can be used"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each name that is given the GPU outright."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            place = _gpu(node.value, file, names)
            if place is not None and "torch" in {one.partition(".")[0] for one in names.imports.values()}:
                check = spell(names, "torch.cuda.is_available")
                yield Proposal(
                    edits=(edit_of(file, place, f'{file.segment(place)} if {check}() else "cpu"'),),
                    culprit=culprit_of(file, node, "asks for the GPU whether there is one or not"),
                    belief=1.2,
                    applicability="unsafe",
                    because=_SLOW,
                )


def _gpu(value: ast.expr, file: SourceFile, names: Names) -> ast.expr | None:
    """The text that names the GPU: `"cuda"`, `torch.device("cuda:0")`."""
    if names.is_call(value, "torch.device") and isinstance(value, ast.Call) and value.args:
        return _gpu(value.args[0], file, names)
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return (
        value if is_text and isinstance(value, ast.Constant) and str(value.value).partition(":")[0] == "cuda" else None
    )
