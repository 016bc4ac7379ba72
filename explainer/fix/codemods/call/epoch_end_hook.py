"""`on_train_epoch_end(self)` for Lightning 1's `training_epoch_end(self, outputs)`: the module keeps the outputs itself.

What a step returns is put into a list beside it, detached in training; the end of the epoch reads the list and empties it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.tree import walk
from explainer.source.value.lineage import statements_of

_GONE = re.compile(r"Support for `(training|validation|test)_epoch_end` has been removed")
_NEW = {"training": "on_train_epoch_end", "validation": "on_validation_epoch_end", "test": "on_test_epoch_end"}

_RESULT = "result"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all such hooks of a module: one after the other they would be refused."""
    if not _GONE.search(message_of(context)):
        return
    for file in context.program.parsed():
        for owner in context.program.names(file).classes.values():
            methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
            stages = [one for one in _NEW if f"{one}_epoch_end" in methods]
            found = [edits for one in stages if (edits := _edits(one, methods, file)) is not None]
            if stages and len(found) == len(stages):
                old = methods[f"{stages[0]}_epoch_end"]
                yield Proposal(
                    edits=(*_lists(stages, methods, file), *(edit for each in found for edit in each)),
                    culprit=culprit_of(file, old, "is called by Lightning 1 alone, with the outputs of the steps"),
                    belief=2.0,
                )


def _lists(stages: list[str], methods: dict[str, ast.FunctionDef], file: SourceFile) -> list[Edit]:
    """The lists, made where the module is, or in front of the first hook where it has no `__init__`."""
    maker = methods.get("__init__")
    text = "\n".join(f"self.{stage}_outputs = []" for stage in stages)
    return [insert_after(file, maker.body[-1], text)] if maker is not None else []


def _edits(stage: str, methods: dict[str, ast.FunctionDef], file: SourceFile) -> list[Edit] | None:
    """The edits of one hook and its step; None where either is of another form."""
    hook, step = methods[f"{stage}_epoch_end"], methods.get(f"{stage}_step")
    if step is None or "__init__" not in methods or len(hook.args.args) != 2 or hook.args.vararg or hook.args.kwarg:
        return None
    kept, outputs = f"self.{stage}_outputs", hook.args.args[1].arg
    returns = [one for one in statements_of(step) if isinstance(one, ast.Return) and one.value is not None]
    if not returns or any(isinstance(one, ast.Return) for one in walk(hook)):
        return None
    header = file.text[file.span(hook)[0] : file.span(hook.body[0])[0]]
    name_at = file.span(hook)[0] + header.index(hook.name)
    first, last = hook.args.args
    edits = [
        Edit(file=file.path, start=name_at, end=name_at + len(hook.name), new=_NEW[stage]),
        Edit(file=file.path, start=file.span(first)[1], end=file.span(last)[1], new=""),
        insert_before(file, _first(hook), f"{outputs} = {kept}"),
        insert_after(file, hook.body[-1], f"{kept}.clear()"),
    ]
    names = {one.id for one in walk(step) if isinstance(one, ast.Name)}
    for one in returns:
        found = _kept(one, kept, file, is_training=stage == "training") if _RESULT not in names else None
        if found is None:
            return None
        edits += found
    return edits


def _first(function: ast.FunctionDef) -> ast.stmt:
    """The first statement behind a docstring."""
    has_text = len(function.body) > 1 and ast.get_docstring(function, clean=False) is not None
    return function.body[1] if has_text else function.body[0]


def _kept(at: ast.Return, kept: str, file: SourceFile, *, is_training: bool) -> list[Edit] | None:
    """The edits that keep what a `return` gives, in training without its graph; None where its parts are not known."""
    node = at.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        text = f"{file.segment(node)}.detach()" if is_training else file.segment(node)
        return [insert_before(file, at, f"{kept}.append({text})")]
    if node is None or (is_training and not isinstance(node, ast.Dict)):
        return None
    text = _RESULT
    if is_training:
        assert isinstance(node, ast.Dict)
        parts = [_entry(key, value, file) for key, value in zip(node.keys, node.values, strict=True)]
        if None in parts:
            return None
        text = f"{{{', '.join(map(str, parts))}}}"
    return [
        insert_before(file, at, f"{_RESULT} = {file.segment(node)}\n{kept}.append({text})"),
        edit_of(file, node, _RESULT),
    ]


def _entry(key: ast.expr | None, value: ast.expr, file: SourceFile) -> str | None:
    """`"loss": loss.detach()`; of what is computed in the dictionary the entry itself."""
    if not isinstance(key, ast.Constant):
        return None
    name = file.segment(key)
    is_named = isinstance(value, (ast.Name, ast.Attribute))
    return f"{name}: {file.segment(value)}.detach()" if is_named else f"{name}: {_RESULT}[{name}]"
