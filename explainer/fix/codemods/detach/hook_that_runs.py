"""A hook that Lightning 2 no longer calls gets the name of the one that it does: `on_train_batch_end` for `on_batch_end`.

A module may have any method; one of an old name is not refused, and what it was to cut or reset stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.lightning import find_lightning_modules
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

# The hooks that are called for each batch and epoch of any stage until 2.0, and what those of the training are given.
_RENAMED = {
    "on_batch_start": ("on_train_batch_start", ("batch", "batch_idx")),
    "on_batch_end": ("on_train_batch_end", ("outputs", "batch", "batch_idx")),
    "on_epoch_start": ("on_train_epoch_start", ()),
    "on_epoch_end": ("on_train_epoch_end", ()),
}
_CUTS = re.compile(r"detach|reset|zero|clear|init|forget|repackage")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such hook that cuts or resets something, and that nothing of the program calls."""
    if not context.has_failed or (context.version("lightning") or "2").split(".")[0] == "1":
        return
    resolver = resolver_of(context.program)
    for file, owner in find_lightning_modules(context.program):
        methods = {one.name: one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
        for old, (new, arguments) in _RENAMED.items():
            hook = methods.get(old)
            if hook is None or new in methods or resolver.calls_named(old) or not _cuts(hook):
                continue
            edits = tuple(_edits(hook, new, arguments, file))
            if edits:
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(file, hook, "is a hook that Lightning 2 calls no more: what it cuts stays tied"),
                    belief=2.4,
                    is_origin=True,
                )


def _cuts(hook: Function) -> bool:
    """Whether a hook detaches or resets something."""
    words = (getattr(one, "attr", None) or getattr(one, "id", "") for one in walk(hook))
    return any(_CUTS.search(one) for one in words if isinstance(one, str))


def _edits(hook: Function, new: str, arguments: tuple[str, ...], file: SourceFile) -> Iterator[Edit]:
    """The new name, with the arguments that the hook is called with; none of a hook that names others."""
    given = hook.args
    if len(given.args) != 1 or given.kwonlyargs:
        return
    start = file.text.index(hook.name, file.span(hook)[0])
    yield Edit(file=file.path, start=start, end=start + len(hook.name), new=new)
    if arguments and given.vararg is None:
        end = file.span(given.args[0])[1]
        yield Edit(file=file.path, start=end, end=end, new=f", {', '.join(arguments)}")
