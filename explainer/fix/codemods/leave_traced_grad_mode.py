"""Takes away the decorator or the `with` under which the tracer saw grad mode off: what ran there is differentiated.

Where layers that an optimizer owns only run under a decorator, it may freeze them on purpose; not so where the function gives
the log-probability of what it drew, which is there to be differentiated and is worth nothing without its graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.uncut import dedent
from explainer.model.patch import Edit
from explainer.model.trace import GRAD_OFF, STARVING_OFF
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.place import place_of
from explainer.source.tree import walk

_MODES = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode")
_MORE = "what else stands in the block is recorded too: a target that was computed there must be detached"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that switches grad mode off by a decorator or a block."""
    for one in context.incident.traced:
        path = place_of(one.file, context.program.root) if one.kind in (GRAD_OFF, STARVING_OFF) else None
        file = context.program.files.get(path) if path else None
        if file is None:
            continue
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if one.kind == GRAD_OFF or _scores_its_draw(node):
                    yield from _decorated(node, one.line, file, names)
            elif one.kind == GRAD_OFF and isinstance(node, ast.With) and node.lineno == one.line:
                yield from _block(node, file, names)


def _scores_its_draw(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function draws a sample and gives its log-probability."""
    methods = {
        one.func.attr for one in walk(function) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    }
    return "log_prob" in methods and bool(methods & {"sample", "multinomial"})


def _is_mode(node: ast.expr, names: Names) -> bool:
    called = names.qualified(node.func if isinstance(node, ast.Call) else node) or ""
    return called in _MODES and not (isinstance(node, ast.Call) and node.args)


def _decorated(
    function: ast.FunctionDef | ast.AsyncFunctionDef, line: int, file: SourceFile, names: Names
) -> Iterator[Proposal]:
    """Python counts a function from its first decorator: that is the line which was traced."""
    if min((one.lineno for one in function.decorator_list), default=0) != line:
        return
    for one in function.decorator_list:
        if _is_mode(one, names):
            start, end = file.line_start(one.lineno), file.line_start((one.end_lineno or one.lineno) + 1)
            yield Proposal(
                edits=(Edit(file=file.path, start=start, end=end, new=""),),
                culprit=culprit_of(
                    file, one, f"switches grad mode off for all of `{function.name}`, which the loss needs"
                ),
                belief=2.5,
            )


def _block(block: ast.With, file: SourceFile, names: Names) -> Iterator[Proposal]:
    if (
        len(block.items) != 1
        or not _is_mode(block.items[0].context_expr, names)
        or block.body[0].lineno == block.lineno
    ):
        return
    head = Edit(file=file.path, start=file.line_start(block.lineno), end=file.line_start(block.body[0].lineno), new="")
    yield Proposal(
        edits=(head, *dedent(file, block.body, file.indent(block.lineno))),
        culprit=culprit_of(file, block.items[0].context_expr, "switches grad mode off for what the loss needs"),
        belief=1.5,
        applicability="unsafe" if len(block.body) > 1 else None,
        because=_MORE if len(block.body) > 1 else None,
    )
