"""`DataLoader(...)` of the training loop gets `drop_last=True`: batch normalisation needs more than one value a channel.

So does one whose last batch is smaller than a state that is kept from batch to batch (`state` in the rule's options). Only
the loader that the failing loop walks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.crash import batches_of, message_of
from explainer.fix.rewrite import add_argument
from explainer.source.binding import Value
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.resolve import resolver_of

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loader that a loop round the failing line walks; for the only one where no loop shows it."""
    needs_state = bool(context.options.get("state"))
    if not context.has_failed or (needs_state and not _is_smaller(context)):
        return
    why = (
        "hands out a last batch that is smaller than the state kept from the one before"
        if needs_state
        else "hands out a last batch of what is left, which may be one sample"
    )
    walked = list(_walked(context))
    loaders = walked or _all_loaders(context.program)
    for file, call in loaders if walked or len(loaders) == 1 else ():
        given = {one.arg: one.value for one in call.keywords}
        old = given.get("drop_last")
        if None in given or "batch_sampler" in given or (isinstance(old, ast.Constant) and old.value is True):
            continue
        yield Proposal(
            edits=(edit_of(file, old, "True") if old is not None else add_argument(file, call, "drop_last=True"),),
            culprit=culprit_of(file, call, why),
            belief=1.5 if walked else 0.8,
        )


def _is_smaller(context: Context) -> bool:
    """Whether the batch that came has fewer rows than the state that was kept."""
    batches = batches_of(message_of(context))
    return batches is not None and batches[0] < batches[1]


def _walked(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The loaders of the loops round the lines that the traceback names."""
    seen = set()
    for file in context.program.parsed():
        lines = crash_frames(file, context)
        for node in file.walk() if lines else ():
            if not isinstance(node, ast.For) or not any(
                node.lineno <= line <= (node.end_lineno or 0) for line in lines
            ):
                continue
            for one in _loaders(Value(node=_iterated(node.iter), file=file), context.program):
                if id(one[1]) not in seen:
                    seen.add(id(one[1]))
                    yield one


def _iterated(node: ast.expr) -> ast.expr:
    """The loader of `enumerate(loader)`, `tqdm(loader)`."""
    while isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
        node = node.args[0]
    return node


def _loaders(value: Value, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for one in resolver_of(program).constructors_of(replace(value, pick=None)):
        if isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *_LOADERS):
            yield one.file, one.node


def _all_loaders(program: Program) -> list[tuple[SourceFile, ast.Call]]:
    return [
        (file, node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and program.names(file).is_call(node, *_LOADERS)
    ]
