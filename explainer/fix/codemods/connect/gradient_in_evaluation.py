"""A gradient that an evaluation step of Lightning takes: `Trainer(inference_mode=False)`, and `torch.enable_grad()` in the step.

`validation_step`, `test_step` and `predict_step` run in inference mode; with `inference_mode=False` they run under `no_grad`, so
that one of the two alone still fails. The residual of an equation, forces, saliency maps.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.setting.spread import set_in_options
from explainer.fix.text.rewrite import add_argument, in_block, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.value.lineage import block_of

_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_STEPS = frozenset({"validation_step", "test_step", "predict_step"})
_ARGUMENT = "inference_mode"


def propose(context: Context) -> Iterator[Proposal]:
    """The edit of all trainers, with the statement of the step that was running."""
    if not context.has_failed:
        return
    trainers = _trainers(context)
    is_on = False
    for file, statement in failing_statements(context):
        names = context.program.names(file)
        function = names.function_of(statement)
        above = next((one for one in file.around(statement) if isinstance(one, ast.With)), None)
        is_on = is_on or (above is not None and any(grad_state(one.context_expr, names) for one in above.items))
        if function is None or function.name not in _STEPS or statement not in block_of(statement, file):
            continue
        if not trainers or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return
        wrapped = [] if is_on else in_block(file, [statement], f"with {spell(names, 'torch.enable_grad')}():")
        where, why = statement, "takes a gradient where Lightning has switched grad mode off"
        if above is not None and is_on:
            where, why = above, "switches grad mode on, which does nothing within Lightning's inference mode"
        yield Proposal(
            edits=(*trainers, *wrapped),
            culprit=culprit_of(file, where, why),
            belief=2.5,
            because="what the step computes is the same; the trained steps are not touched",
            is_origin=True,
        )
        return


def _trainers(context: Context) -> tuple[Edit, ...]:
    """The edits of the trainers that evaluate in inference mode; none where one of them cannot be read."""
    found: list[tuple[SourceFile, ast.Call]] = [
        (file, node)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call) and context.program.names(file).is_call(node, *_TRAINERS)
    ]
    edits = [_told(file, node, context) for file, node in found]
    known = [one for one in edits if one is not None]
    return tuple(dict.fromkeys(known)) if len(known) == len(edits) else ()


def _told(file: SourceFile, node: ast.Call, context: Context) -> Edit | None:
    """The edit of one trainer, where its `**options` are written if it has any."""
    given = {one.arg for one in node.keywords}
    if _ARGUMENT in given:
        return None
    if None in given:
        return set_in_options(node, _ARGUMENT, value=False, file=file, program=context.program)
    return add_argument(file, node, f"{_ARGUMENT}=False")
