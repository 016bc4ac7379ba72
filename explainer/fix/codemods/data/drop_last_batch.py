"""`DataLoader(...)` of the training loop gets `drop_last=True`: batch normalisation needs more than one value a channel.

So does one whose last batch is smaller than a state that is kept from batch to batch (`state` in the rule's options). Only the
loader that the failing loop walks, or that a trainer is given to train from.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.blame import crash_frames
from explainer.fix.clue.crash import batches_of, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.setting.spread import set_in_options
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.data.loader import LOADERS
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, reads, statements_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_LAST = "hands out a last batch of what is left, which may be one sample"
_WHY = {"state": "hands out a last batch that is smaller than the state kept from the one before"}
# What a trainer of a library asks for its training batches, and how it is handed them.
_TRAINING = ("train_dataloader", "get_train_dataloader")
_HANDED = ("train_dataloaders", "train_dataloader")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loader that a loop round the failing line walks; for the only one where no loop shows it."""
    if not context.has_failed or (context.options.get("state") and not (_is_smaller(context) and _is_kept(context))):
        return
    why = next((said for option, said in _WHY.items() if context.options.get(option)), _LAST)
    walked = list(_walked(context)) or list(_of_trainer(context.program))
    loaders = walked or _all_loaders(context.program)
    for file, call in loaders if walked or len(loaders) == 1 else ():
        given = {one.arg: one.value for one in call.keywords}
        old = given.get("drop_last")
        if "batch_sampler" in given or (isinstance(old, ast.Constant) and old.value is True):
            continue
        if _is_of_one(call, file, context.program):
            continue
        if old is not None:
            edit: Edit | None = edit_of(file, old, "True")
        elif None in given:
            edit = set_in_options(call, "drop_last", True, file, context.program)  # noqa: FBT003 - the value it gets
        else:
            edit = add_argument(file, call, "drop_last=True")
        if edit is None:
            continue
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, call, why),
            belief=1.5 if walked else 0.8,
        )


def _is_of_one(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether every batch of a loader is one sample, as it is where nothing else is said: then none of them is the last alone."""
    size = next(
        (one.value for one in call.keywords if one.arg == "batch_size"), call.args[1] if len(call.args) > 1 else None
    )
    options = [one.value for one in call.keywords if one.arg is None]
    if size is None and options:
        sizes = [one.value for each in options for one in members_behind(each, "batch_size", file, program)]
        return not sizes or all(one == 1 for one in sizes)
    if size is None:
        return True
    values = [one.value for one in settings_behind(size, file, program)]
    return number_of(size, program.names(file)) == 1 or (bool(values) and all(one == 1 for one in values))


def _is_smaller(context: Context) -> bool:
    """Whether the batch that came has fewer rows than the state that was kept."""
    batches = batches_of(message_of(context))
    return batches is not None and batches[0] < batches[1]


def _is_kept(context: Context) -> bool:
    """Whether a line on the way to the failure takes up what it gave the round before: `loss, state = step(x, state)`.

    A state that is made anew for each batch, of a wrong size, is no reason to leave samples out.
    """
    for file in context.program.parsed():
        for line in crash_frames(file, context):
            statement = context.program.at(file.path, line)
            if isinstance(statement, ast.Assign) and binds(statement) & reads(statement.value, graph=False):
                return True
            owner = context.program.names(file).class_of(statement) if statement is not None else None
            read = reads(statement, graph=False) if statement is not None else set()
            for method in owner.body if owner is not None else ():
                if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                    kept = {name for one in statements_of(method) for name in binds(one) if name.startswith("self.")}
                    if kept & read:
                        return True
    return False


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


def _of_trainer(program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The loaders from which a library's trainer trains: what `train_dataloader` returns, and what `fit` is handed."""
    seen = set()
    for file in program.parsed():
        for node in file.walk():
            handed: list[ast.expr] = []
            if isinstance(node, ast.Return) and node.value is not None:
                function = program.names(file).function_of(node)
                handed = [node.value] if function is not None and function.name in _TRAINING else []
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
                handed = [*node.args[1:2], *(one.value for one in node.keywords if one.arg in _HANDED)]
            for one in handed:
                for found in _loaders(Value(node=one, file=file), program):
                    if id(found[1]) not in seen:
                        seen.add(id(found[1]))
                        yield found


def _iterated(node: ast.expr) -> ast.expr:
    """The loader of `enumerate(loader)`, `tqdm(loader)`."""
    while isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
        node = node.args[0]
    return node


def _loaders(value: Value, program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    for one in resolver_of(program).constructors_of(replace(value, pick=None)):
        if isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *LOADERS):
            yield one.file, one.node


def _all_loaders(program: Program) -> list[tuple[SourceFile, ast.Call]]:
    return [
        (file, node)
        for file in program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and program.names(file).is_call(node, *LOADERS)
    ]
