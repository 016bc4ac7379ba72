"""A hook of Lightning that changes weights between a forward and its backward runs at the end of the batch instead.

Lightning 2 calls `training_step`, `on_before_zero_grad`, `optimizer_zero_grad`, `on_before_backward`, the backward, then the step and
`on_train_batch_end` (run on 2.6). What clips, projects or swaps weights belongs behind the step: the hook gets that name and signature.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.model.trace import WRITE
from explainer.source.file import SourceFile
from explainer.source.network.lightning import PACKAGES, chain_of
from explainer.source.network.weights import is_weight_write
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.callee import leads_to
from explainer.source.value.resolve import resolver_of

_LATER = "the weights change after the step instead of before the backward: once more after the last step, not before the first"
_EARLY = ("on_before_zero_grad", "on_before_backward")
_END = "on_train_batch_end"
_GIVEN = ("outputs", "batch", "batch_idx")
_OWN = {"Callback": 3, "LightningModule": 1}  # the parameters that both hooks have, `self` among them
_ACCUMULATES = re.compile(r"accumulate_grad_batches\W+\b(?!(?:1|None|null)\b)|GradientAccumulationScheduler")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each such hook that leads to a write of weights: one that a trace saw, or one that the source shows."""
    program = context.program
    if not context.has_failed or any(_ACCUMULATES.search(one.text) for one in (*program.parsed(), *program.texts)):
        return
    traced = [statement for _, statement in traced_places(WRITE, context)]
    for file, hook, count in _hooks(program):
        is_seen = any(one in set(walk(hook)) or leads_to(one, hook, file, program) for one in traced)
        if not is_seen and not (not traced and any(is_weight_write(one) for one in walk(hook))):
            continue
        edits = _renamed(hook, count, file)
        if edits:
            yield Proposal(
                edits=edits,
                culprit=culprit_of(file, hook, "runs between a forward and its backward, and changes the weights"),
                belief=2.0 if is_seen else 1.5,
                applicability="unsafe",
                because=_LATER,
                title=f"Change the weights behind the step, in `{_END}` instead of `{hook.name}`",
            )


def _hooks(program: Program) -> Iterator[tuple[SourceFile, ast.FunctionDef, int]]:
    """The early hooks of callbacks and modules that have none for the end of the batch, with the parameters that stay."""
    for file in program.parsed():
        for owner in (one for one in file.walk() if isinstance(one, ast.ClassDef)):
            count = _kept(file, owner, program)
            if count is None or resolver_of(program).method(owner, _END, file) is not None:
                continue
            yield from (
                (file, one, count) for one in owner.body if isinstance(one, ast.FunctionDef) and one.name in _EARLY
            )


def _kept(file: SourceFile, owner: ast.ClassDef, program: Program) -> int | None:
    """How many parameters a class's hooks have before those of their own; None where it is no class of Lightning's."""
    for where, one in chain_of((file, owner), program):
        for base in one.bases:
            name = program.names(where).qualified(base) or ""
            if name.startswith(PACKAGES):
                kind = "Callback" if ".callbacks." in name else name.rpartition(".")[2]
                return _OWN.get(kind)
    return None


def _renamed(hook: ast.FunctionDef, count: int, file: SourceFile) -> tuple[Edit, ...]:
    """The hook's new name and parameters; none where it reads what the end of the batch does not know."""
    given = [*hook.args.posonlyargs, *hook.args.args]
    own = given[count:]
    is_open = not own and hook.args.vararg is not None
    if hook.args.kwonlyargs or hook.args.defaults or not (is_open or (len(own) == 1 and len(given) == count + 1)):
        return ()
    words = {one.id for part in hook.body for one in walk(part) if isinstance(one, ast.Name)}
    taken = {
        own[0].arg if own else "",
        getattr(hook.args.vararg, "arg", ""),
        getattr(hook.args.kwarg, "arg", ""),
        *_GIVEN,
    }
    called = {one.attr for part in hook.body for one in walk(part) if isinstance(one, ast.Attribute)}
    if words & taken or hook.name in called:
        return ()
    start = file.text.index(hook.name, file.span(hook)[0])
    edits = [Edit(file=file.path, start=start, end=start + len(hook.name), new=_END)]
    if own:
        begin, end = file.span(own[0])
        edits.append(Edit(file=file.path, start=begin, end=end, new=", ".join(_GIVEN)))
    return tuple(edits)
