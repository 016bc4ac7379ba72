"""Takes away the decorator or the `with` under which the tracer saw grad mode off: what ran there is differentiated.

Where layers that an optimizer owns only run under it, it may freeze them on purpose; not so where the function gives
the log-probability of what it drew, which is there to be differentiated and is worth nothing without its graph, nor where the
program loads and copies no weights: layers that stay as they were drawn at random serve nobody, also beside a teacher that its
flags freeze. An evaluation that called the function gets the decorator. With `options["segments"]` the decorators of what
activation checkpointing runs, whose input has a graph.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.held_target import held_targets, targets_among
from explainer.fix.graph.keep_mode import keep_mode, methods_of
from explainer.fix.graph.uncut import dedent
from explainer.fix.loss.pooled import find_pooled
from explainer.fix.network.beside_teacher import is_beside_teacher
from explainer.model.patch import Edit
from explainer.model.trace import GRAD_OFF, STARVING_OFF
from explainer.source.file import SourceFile
from explainer.source.graph.cut import GRAD_MODE_OFF
from explainer.source.graph.segment import find_segments, functions_run_by
from explainer.source.name import Function, Names
from explainer.source.network.freeze import ON_PURPOSE
from explainer.source.place import place_of
from explainer.source.program import Program

# Weights that come from elsewhere, or follow others, may be frozen on purpose.
_BRINGS_WEIGHTS = re.compile(
    r"load_state_dict|from_pretrained|torch\.load|load_file|deepcopy|\.hub\.|lerp_|copy_\(|frozen|freeze|\bema\b|momentum_|target_net",
    re.IGNORECASE,
)
_TEACHER = re.compile(r"(?:^|_)teacher", re.IGNORECASE)  # as a name of the program: a text may speak of a school's
_KEPT_RANDOM = re.compile(
    r"\bfixed\b|reservoir|echo.state|random[_ ](?:feature|projection)|\bnot (?:be )?trained|untrained", re.IGNORECASE
)
_RANDOM = "right where these layers are to train: the program neither loads nor copies weights for them"
_MORE = "what else stands in the block is recorded too: a target that was computed there must be detached"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that switches grad mode off by a decorator or a block."""
    if context.options.get("segments"):
        if context.has_failed:
            yield from _in_segments(context)
        return
    for one in context.incident.traced:
        path = place_of(one.file, context.program.root) if one.kind in (GRAD_OFF, STARVING_OFF) else None
        file = context.program.files.get(path) if path else None
        if file is None:
            continue
        for node in file.walk():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found = list(_decorated(node, one.line, file, context))
                is_meant = one.kind == GRAD_OFF or _scores_its_draw(node)
                is_for_nothing = not is_meant and found and not _draws(node) and _is_random(node, file, context.program)
            elif isinstance(node, ast.With) and node.lineno == one.line:
                found = list(_block(node, file, context.program))
                is_meant = one.kind == GRAD_OFF
                is_for_nothing = not is_meant and _is_for_nothing(node, file, context.program)
            else:
                continue
            if found and one.kind == STARVING_OFF and any(find_pooled(node, file, context.program)):
                continue  # a pool that outlives the step is right to hold no graph: `train_on_what_was_made`
            yield from found if is_meant else ()
            if is_for_nothing:
                yield from (replace(each, applicability="unsafe", because=_RANDOM) for each in found)


def _is_random(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether nothing brings weights to the layers that a function or a block runs, though a teacher beside them may be frozen."""
    return not _brings_weights(program) or is_beside_teacher(node, file, program)


def _brings_weights(program: Program) -> bool:
    named = (
        getattr(node, "id", None)
        or getattr(node, "attr", None)
        or getattr(node, "arg", None)
        or getattr(node, "name", None)
        or ""
        for file in program.parsed()
        for node in file.walk()
    )
    is_told = any(_BRINGS_WEIGHTS.search(one.text) for one in program.parsed())
    return is_told or any(_TEACHER.search(str(one)) for one in named)


def _is_for_nothing(block: ast.With, file: SourceFile, program: Program) -> bool:
    """Whether a block that starves layers can serve no purpose: nothing brings them weights, or says that they stay random.

    What else the block holds must be such a layer's run; one statement, as more could be data or targets.
    """
    is_said = not _is_random(block, file, program) or any(_KEPT_RANDOM.search(one.text) for one in program.parsed())
    names = " ".join(file.segment(one) for one in block.body)
    return not is_said and len(block.body) == 1 and ON_PURPOSE.search(names) is None


def _in_segments(context: Context) -> Iterator[Proposal]:
    """A backward that came to a segment has passed what it was given: what switches grad mode off inside it keeps that from training."""
    for segment in find_segments(context.program):
        for function, file in functions_run_by(segment, context.program).items():
            yield from _decorated(
                function, min((one.lineno for one in function.decorator_list), default=0), file, context
            )


def _draws(function: Function) -> bool:
    """Whether a function draws a sample, as a policy does that acts."""
    return bool(methods_of(function) & {"sample", "multinomial"})


def _scores_its_draw(function: Function) -> bool:
    """Whether a function draws a sample and gives its log-probability."""
    return "log_prob" in methods_of(function) and _draws(function)


def _is_mode(node: ast.expr, names: Names) -> bool:
    called = names.qualified(node.func if isinstance(node, ast.Call) else node) or ""
    return called in GRAD_MODE_OFF and not (isinstance(node, ast.Call) and node.args)


def _decorated(
    function: ast.FunctionDef | ast.AsyncFunctionDef, line: int, file: SourceFile, context: Context
) -> Iterator[Proposal]:
    """Python counts a function from its first decorator: that is the line which was traced."""
    if min((one.lineno for one in function.decorator_list), default=0) != line:
        return
    names = context.program.names(file)
    for one in function.decorator_list:
        if _is_mode(one, names):
            start, end = file.line_start(one.lineno), file.line_start((one.end_lineno or one.lineno) + 1)
            yield Proposal(
                edits=(
                    Edit(file=file.path, start=start, end=end, new=""),
                    *keep_mode(function, file, file.segment(one), context.program),
                    *held_targets(function, file, context.program),
                ),
                culprit=culprit_of(
                    file, one, f"switches grad mode off for all of `{function.name}`, which the loss needs"
                ),
                belief=2.5,
            )


def _block(block: ast.With, file: SourceFile, program: Program) -> Iterator[Proposal]:
    names = program.names(file)
    if (
        len(block.items) != 1
        or not _is_mode(block.items[0].context_expr, names)
        or block.body[0].lineno == block.lineno
    ):
        return
    head = Edit(file=file.path, start=file.line_start(block.lineno), end=file.line_start(block.body[0].lineno), new="")
    yield Proposal(
        edits=(
            head,
            *dedent(file, block.body, file.indent(block.lineno)),
            *targets_among(block.body, names.function_of(block), file, program),
        ),
        culprit=culprit_of(file, block.items[0].context_expr, "switches grad mode off for what the loss needs"),
        belief=1.5,
        applicability="unsafe" if len(block.body) > 1 else None,
        because=_MORE if len(block.body) > 1 else None,
    )
