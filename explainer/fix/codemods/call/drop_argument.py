"""Takes a keyword argument out of a call: `TrainingArguments(..., tf32=True)` without `tf32=True`.

The rule's options say which `calls` and which `arguments`; with `beside` only where that argument is set too (`foreach=True`
beside `fused=True`), with `given` only where that one has any value but None. Only arguments that are `True` are taken out, for their default is to let the library choose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import remove_argument
from explainer.source.name import Names


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call that has one of the arguments."""
    calls, arguments = context.options.get("calls", ()), context.options.get("arguments", ())
    beside, given = context.options.get("beside"), context.options.get("given")
    if not context.has_failed or not isinstance(calls, Sequence) or not isinstance(arguments, Sequence):
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        frames = crash_frames(file, context)
        for node in file.walk():
            if not isinstance(node, ast.Call) or not _is_wanted(node, names, [str(one) for one in calls]):
                continue
            if beside and not any(one.arg == beside and _is_true(one.value) for one in node.keywords):
                continue
            if given and not any(one.arg == given and not _is_none(one.value) for one in node.keywords):
                continue
            for keyword in node.keywords:
                if keyword.arg in arguments and _is_true(keyword.value):
                    yield Proposal(
                        edits=(remove_argument(file, node, keyword),),
                        culprit=culprit_of(
                            file, keyword.value, f"asks for `{keyword.arg}`{f' beside `{beside}`' if beside else ''}"
                        ),
                        belief=1.0 if node.lineno in frames else 0.3,
                    )


def _is_wanted(node: ast.Call, names: Names, calls: Sequence[str]) -> bool:
    """Whether a call is one of the wanted: a whole name, or any of a package where it ends in a dot and a star."""
    called = names.qualified(node.func) or ""
    return any(called.startswith(one[:-1]) if one.endswith(".*") else called == one for one in calls)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
