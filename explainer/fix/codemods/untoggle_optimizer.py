"""`self.untoggle_optimizer(opt_g)` behind the step of an optimizer that `toggle_optimizer` made the only one.

Toggling switches the parameters of all others off, and the next toggle takes that for how they were: from then on nothing of the
model requires grad. Lightning's own context, `toggled_optimizer`, does both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.source.file import SourceFile
from explainer.source.lightning import chain_of, find_lightning_modules
from explainer.source.tree import walk

_ON, _OFF = "toggle_optimizer", "untoggle_optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each Lightning module that toggles optimizers and never back."""
    if not context.has_failed:
        return
    for owner in find_lightning_modules(context.program):
        for file, one in chain_of(owner, context.program):
            methods = [each for each in one.body if isinstance(each, ast.FunctionDef)]
            for method in methods:
                toggles = _calls(method, _ON)
                if toggles and not _calls(method, _OFF):
                    yield from _untoggled(toggles, method, file)


def _calls(method: ast.FunctionDef, name: str) -> list[ast.Call]:
    """The calls of one of the module's own methods, in the order of the text."""
    found = [
        node
        for node in walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
    ]
    return sorted(found, key=lambda one: (one.lineno, one.col_offset))


def _untoggled(toggles: list[ast.Call], method: ast.FunctionDef, file: SourceFile) -> Iterator[Proposal]:
    """The edit, where each toggle is followed by one step of its optimizer in the same block, before the next toggle."""
    edits = []
    for at, toggle in enumerate(toggles):
        if not toggle.args:
            return
        optimizer = ast.unparse(toggle.args[0])
        end = toggles[at + 1].lineno if at + 1 < len(toggles) else None
        steps = [
            one for one in _steps(method, optimizer) if toggle.lineno < one.lineno and (end is None or one.lineno < end)
        ]
        step, start = (file.statement(steps[0]) if steps else None), file.statement(toggle)
        if len(steps) != 1 or step is None or file.parents.get(step) is not file.parents.get(start):
            return
        assert isinstance(toggle.func, ast.Attribute)
        edits.append(insert_after(file, step, f"{file.segment(toggle.func.value)}.{_OFF}({optimizer})"))
    why = "leaves the parameters of the other optimizers without grad: it is never taken back"
    yield Proposal(edits=tuple(edits), culprit=culprit_of(file, toggles[0], why), belief=2.4)


def _steps(method: ast.FunctionDef, optimizer: str) -> list[ast.Call]:
    return [
        node
        for node in walk(method)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "step"
        and ast.unparse(node.func.value) == optimizer
    ]
