"""The hook that steps the schedule goes behind the one that steps the optimizer, in the list in whose order both are called.

`hooks: [schedule, optimize]` of a configuration file becomes `hooks: [optimize, schedule]`; so do a list in the program, and calls
or decorators that register hooks one after the other. Where both have a number by which they are sorted, `priority = 30`, the
schedule's becomes one right behind the optimizer's. Only for the step that torch's warning names, and where nothing else tells the
two hooks their place: an event of their own, a condition under which the optimizer does not step.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.loop.early_schedule import LATER, warned_steps
from explainer.fix.loop.hook_list import Hook, HookList, find_hook_lists, told_of
from explainer.fix.loop.hook_number import number_behind, numbers_of, numbers_told
from explainer.fix.loop.hook_runner import Runners, runners_of
from explainer.source.loop.round import steps_anyway, steps_optimizer
from explainer.source.loop.step import SCALER_STEP, UPDATE, Act, find_acts, is_optimizer
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of

_OPTIMIZER = re.compile(r"opt(?:im\w*)?(?:_\w+)?$", re.IGNORECASE)
_LEAVES = (ast.Return, ast.Continue, ast.Raise)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each list in which the schedule's hook stands before the optimizer's."""
    program = context.program
    early = list(warned_steps(context.incident, program))
    steps = [one for one in find_acts(program) if _steps(one, program) and one not in early] if early else []
    late = runners_of(steps, program)
    lists = list(find_hook_lists(program)) if late.entries else []
    for act in early:
        runners = runners_of([act], program)
        unsure = runners_of([one for one in steps if not _needs(one) <= _needs(act)], program)
        for one in lists:
            yield from _moved(one, runners, late, unsure)
        yield from _renumbered(runners, late, unsure, program)


def _steps(act: Act, program: Program) -> bool:
    """Whether a call steps an optimizer: by what made it, or by its name where that is not seen."""
    is_scaled = act.kind in (SCALER_STEP, UPDATE)
    is_named = _OPTIMIZER.search(act.object.rpartition(".")[2]) is not None
    return steps_optimizer(act) and (is_scaled or is_named or is_optimizer(Value(act.subject, act.file), program))


def _moved(one: HookList, early: Runners, late: Runners, unsure: Runners) -> Iterator[Proposal]:
    """The edit for a list, if one of its hooks steps the schedule and a later one the optimizer, by the same event."""
    schedules = [hook.members(early, one.file) for hook in one.hooks]
    optimizers = [hook.members(late, one.file) for hook in one.hooks] if any(schedules) else []
    both = zip(schedules, optimizers, strict=False)
    kinds = [(early.events(first), late.events(second)) for first, second in both]
    at = [place for place, (first, second) in enumerate(kinds) if first and not second]
    behind = [place for place, (first, second) in enumerate(kinds) if at and not first and second & kinds[at[0]][0]]
    if len(at) != 1 or not behind or behind[-1] < at[0]:
        return
    schedule, optimizer = one.hooks[at[0]], one.hooks[behind[-1]]
    told = [_told(schedule, schedules[at[0]]), _told(optimizer, optimizers[behind[-1]])]
    skips = bool(optimizers[behind[-1]] & unsure.entries.keys())
    edit = one.move(at[0], behind[-1]) if told[0] == told[1] and not skips else None
    if edit is None:
        return
    names = [_name(hook, one) for hook in (schedule, optimizer)]
    place = f"{os.path.basename(one.file.path)}:{one.file.line_of(optimizer.span[0])}"
    yield Proposal(
        edits=(edit,),
        culprit=culprit_at(
            one.file, _shown(schedule, one), f"steps the schedule, and is called before `{names[1]}` ({place})"
        ),
        belief=one.belief,
        applicability="unsafe",
        because=LATER,
        title=f"Call `{names[0]}` behind `{names[1]}`, which steps the optimizer",
        is_origin=True,
    )


def _renumbered(early: Runners, late: Runners, unsure: Runners, program: Program) -> Iterator[Proposal]:
    """The edit of the schedule's own number, where it and the optimizer's say which of both is called first.

    Which numbers come first the warning says: the schedule's did.
    """
    events = {name for one in early.entries.values() for name in one} & {
        name for one in late.entries.values() for name in one
    }
    for event in sorted(events):
        own, other = numbers_of(early, event, program), numbers_of(late, event, program)
        is_sure = len(own) == len(other) == 1 and not (late.entries.keys() & unsure.entries.keys())
        if not is_sure or own[0].word != other[0].word or own[0].value == other[0].value or own[0].is_inherited:
            continue
        number, limit = own[0], other[0]
        value = number_behind(limit.value, numbers_told(number.word, program), is_above=limit.value > number.value)
        why = f"its {number.word} calls the hook that steps the schedule before the one that steps the optimizer"
        yield Proposal(
            edits=(number.moved(value),),
            culprit=culprit_at(number.file, number.span, f"{why} ({limit.value:g})"),
            belief=2.6,
            applicability="unsafe",
            because=LATER,
            title=f"Call the hook that steps the schedule behind the optimizer's: `{number.word}` {value:g}",
            is_origin=True,
        )
        return


def _told(hook: Hook, members: frozenset[ast.AST]) -> Mapping[str, str]:
    found = dict(hook.told)
    for one in members:
        found |= told_of(one)
    return found


def _name(hook: Hook, one: HookList) -> str:
    """A hook as its list writes it, the first line of it."""
    text = hook.words[0] if hook.words else one.file.text[slice(*hook.span)]
    return text.partition("\n")[0].strip()


def _shown(hook: Hook, one: HookList) -> tuple[int, int]:
    start, end = hook.span
    return start, min(end, one.file.line_start(one.file.line_of(start) + 1))


def _needs(act: Act) -> frozenset[str]:
    """The conditions under which a function gets to a call: those around it, and those that leave the function before."""
    file = act.file
    function = file.enclosing(act.call, ast.FunctionDef, ast.AsyncFunctionDef)
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return frozenset()
    around = set(file.around(act.statement))
    found = []
    for one in walk(function):
        if not isinstance(one, ast.If) or _asks_for_none(one.test):
            continue
        leaves = one.lineno < act.call.lineno and any(isinstance(each, _LEAVES) for each in walk(one))
        if leaves or (one in around and not steps_anyway(one, act)):
            found.append(_text(one.test, function))
    return frozenset(found)


def _asks_for_none(test: ast.expr) -> bool:
    """Whether a condition asks for what there is in this program: `scaler is None`. It chooses how to step, not when."""
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))


def _text(test: ast.expr, function: Function) -> str:
    """A condition as it reads whatever the parameters are called."""
    text = ast.unparse(test)
    for at, name in enumerate(parameters_of(function)):
        text = re.sub(rf"\b{re.escape(name)}\b", f"_{at}", text)
    return text
