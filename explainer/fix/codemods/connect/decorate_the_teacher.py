"""A decorator that switches grad mode off moves from a method that all share to the callers that it was meant for.

    class Extractor(nn.Module):
        @torch.no_grad()
        def features(self, x): ...

    class Teacher(Extractor):
        def targets(self, x):
            return self.features(x)

A student that inherits `features` trains nothing before its head. Only where a trace saw the layers in it starve, where a caller says by
its name that it is a teacher or makes targets, and one in another class does not: layers that all of one class keep from learning may be
frozen on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.model.patch import Edit
from explainer.model.trace import CUT, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.graph.cut import GRAD_MODE_OFF
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

_TEACHES = re.compile(r"teacher|target|(?<![a-z])ema(?![a-z])|momentum|reference|anchor|pseudo", re.IGNORECASE)
_EVALUATES = re.compile(r"(?<![a-z])eval|valid|predict|(?<![a-z])test", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each function under such a decorator in which a trace saw layers starve."""
    seen: set[Function] = set()
    for kind in (STARVING_CUT, CUT):
        for _, file, statement in traced_statements(kind, context):
            function = context.program.names(file).function_of(statement)
            if function is not None and function not in seen:
                seen.add(function)
                yield from _moved(function, file, context.program)


def _moved(function: Function, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """The decorator taken off, and put on the callers in the same file that are meant to record no graph."""
    modes = [one for one in function.decorator_list if _switches_off(one, file, program)]
    callers = {
        caller: where
        for where, call in resolver_of(program).calls_of(function, file)
        if (caller := program.names(where).function_of(call)) is not None
    }
    teaching = [one for one, where in callers.items() if where is file and _says(one, _TEACHES, file, program)]
    meant = [
        one for one, where in callers.items()
        if one in teaching or (where is file and _EVALUATES.search(one.name) is not None)
    ]  # fmt: skip
    owners = {program.names(file).class_of(one) for one in teaching}
    others = {program.names(where).class_of(one) for one, where in callers.items() if one not in meant}
    if len(modes) != 1 or not teaching or not others or owners & others:
        return
    (mode,) = modes
    start, end = file.line_start(mode.lineno), file.line_start((mode.end_lineno or mode.lineno) + 1)
    bare = [one for one in meant if not any(_switches_off(each, file, program) for each in one.decorator_list)]
    training = ", ".join(f"`{one.name}`" for one in callers if one not in meant)
    yield Proposal(
        edits=(
            Edit(file=file.path, start=start, end=end, new=""),
            *(insert_before(file, one, f"@{file.segment(mode)}") for one in bare),
        ),
        culprit=culprit_of(file, mode, f"switches grad mode off in `{function.name}` for {training} too, which trains"),
        belief=2.7,
        because=f"`{teaching[0].name}` still records no graph",
        title=f"Switch grad mode off in `{teaching[0].name}` alone: `{function.name}` is shared",
    )


def _says(caller: Function, words: re.Pattern[str], file: SourceFile, program: Program) -> bool:
    """Whether a function, or its class, has one of some words in its name."""
    owner = program.names(file).class_of(caller)
    return words.search(f"{owner.name if owner is not None else ''} {caller.name}") is not None


def _switches_off(decorator: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a decorator is torch's own, or a function of the program that runs what it gets with grad mode off."""
    called = program.names(file).qualified(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
    if called in GRAD_MODE_OFF:
        return not (isinstance(decorator, ast.Call) and decorator.args)
    own = program.find_function(called)
    if own is None:
        return False
    where, maker = own
    contexts = [item.context_expr for one in walk(maker) if isinstance(one, ast.With) for item in one.items]
    return any(isinstance(one, ast.Call) and program.names(where).is_call(one, *GRAD_MODE_OFF) for one in contexts)
