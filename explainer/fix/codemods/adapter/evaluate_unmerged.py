"""Evaluates the model with its adapter, or a merged copy, where `merge_and_unload` took the adapter off a model that trains on.

`merged = model.merge_and_unload()` goes, and what was asked of `merged` is asked of `model`: that gives the same outputs but
for rounding. Where the result is saved, or where nothing sets `train()` again, a copy is merged.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.import_line import import_after
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.repeated import run_in_steps
from explainer.source.name import dotted_name
from explainer.source.network.merge import Merge, find_merges
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of

_WHY = "takes the adapter off the model that trains on, and leaves its weights frozen: PEFT merges in place"
_COPY = "the copy takes the memory of a second model for as long as it is there"
_SAME = (
    "the outputs are those of the merged model but for rounding, and the layers and their optimizer stay as they are"
)
# What the model with its adapter answers as the merged one does; a saved model or its state dict would be another.
_ASKED = frozenset({"generate", "eval", "device", "dtype", "config", "generation_config", "get_input_embeddings"})


def propose(context: Context) -> Iterator[Proposal]:
    """Two edits for each merge of a model that is trained after it; the likelier first."""
    for merge in find_merges(context.program) if context.has_failed else ():
        culprit = culprit_of(merge.file, merge.call, _WHY)
        in_place = _edits(merge, context.program)
        if in_place:
            yield Proposal(edits=in_place, culprit=culprit, belief=2.5, because=_SAME)
        copied = _copied(merge, context.program)
        yield Proposal(
            edits=copied,
            culprit=culprit,
            belief=2.0,
            applicability="unsafe",
            because=_COPY,
            title="Merge a copy: `copy.deepcopy(model).merge_and_unload()`",
        )


def _copied(merge: Merge, program: Program) -> tuple[Edit, ...]:
    file = merge.file
    imports = program.names(file).imports
    local = next((name for name, target in imports.items() if target == "copy.deepcopy"), None)
    module = next((name for name, target in imports.items() if target == "copy"), None)
    spelled = local or f"{module or 'copy'}.deepcopy"
    if _rebinds_trained(merge):
        return ()  # the name would mean the copy in the rounds that follow
    edit = edit_of(file, merge.owner, f"{spelled}({file.segment(merge.owner)})")
    return (edit, *(() if local or module else import_after(file, "import copy")))


def _rebinds_trained(merge: Merge) -> bool:
    """`model = model.merge_and_unload()` in the loop itself, or of an attribute."""
    statement = merge.file.statement(merge.call)
    if not isinstance(statement, ast.Assign) or statement.value is not merge.call:
        return False
    names = {dotted_name(one) for one in statement.targets}
    is_own = dotted_name(merge.owner) in names
    in_loop = merge.loop is not None and any(one is statement for one in walk(merge.loop))
    return is_own and (in_loop or "." in (dotted_name(merge.owner) or ""))


def _edits(merge: Merge, program: Program) -> tuple[Edit, ...]:
    """The edits after which the model itself is asked; none where that is not the same."""
    file, statement, owner = merge.file, merge.file.statement(merge.call), dotted_name(merge.owner)
    if not isinstance(statement, ast.Assign) or statement.value is not merge.call or owner is None:
        return ()
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return ()
    name = statement.targets[0].id
    scope = scope_of(statement, file)
    own = [one for one in file.plain_names[name] if scope_of(one, file) is scope and one is not statement.targets[0]]
    uses = [one for one in own if isinstance(one.ctx, ast.Load) and one.lineno > statement.lineno]
    if name != owner and (len(own) != len(uses) or len([one for one in bounds_of(scope) if one.name == name]) != 1):
        return ()
    if not uses or not all(_is_plain(one, file) for one in uses) or not _modes_are_kept({name, owner}, merge, program):
        return ()
    renamed = [edit_of(file, one, owner) for one in uses] if name != owner else []
    return (remove_statement(file, statement), *renamed)


def _is_plain(use: ast.Name, file: SourceFile) -> bool:
    """`merged(...)`, `merged.generate(...)`, `merged.eval()`."""
    above = file.parents.get(use)
    if isinstance(above, ast.Call) and above.func is use:
        return True
    return isinstance(above, ast.Attribute) and above.attr in _ASKED


def _modes_are_kept(names: set[str], merge: Merge, program: Program) -> bool:
    """Whether dropout is off where it evaluates, as a merged adapter's is, and on again where it trains."""
    scope = scope_of(merge.call, merge.file)
    is_off = any((_mode_of(one, "eval") or "") in names for one in walk(scope))
    if merge.loop is None or not is_off:
        return is_off  # a trainer sets `train()` itself before each step
    places = [merge.loop, *run_in_steps(program)]
    return any(_mode_of(one, "train") for place in places for one in walk(place))


def _mode_of(node: ast.AST, mode: str) -> str | None:
    """The name of the module that a call of `eval()` or `train()` switches; None for any other node."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != mode:
        return None
    is_undone = any(isinstance(one, ast.Constant) and one.value is False for one in node.args)
    return None if is_undone else dotted_name(node.func.value)
