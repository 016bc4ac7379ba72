"""What steps the scaler goes behind what unscales and clips, in the list in whose order a program runs both.

`[Forward(), Backward(), Step(), Clip()]` becomes `[Forward(), Backward(), Clip(), Step()]`: hooks, commands, callbacks, in code or in a
configuration file. Only where nothing else tells the two their place, and nothing stands between them that may have to come behind the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.loop.hook_list import HookList, find_hook_lists
from explainer.fix.loop.hook_runner import Runners, runners_of
from explainer.source.loop.step import SCALER_STEP, UNSCALE, find_acts


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each list in which the scaler steps before the gradients are unscaled."""
    if not context.has_failed:
        return
    program = context.program
    acts = list(find_acts(program))
    steps, unscales = ([one for one in acts if one.kind == kind] for kind in (SCALER_STEP, UNSCALE))
    if not steps or not unscales:
        return
    early, late = runners_of(steps, program), runners_of(unscales, program)
    for one in find_hook_lists(program) if early.entries and late.entries else ():
        yield from _moved(one, early, late)


def _moved(one: HookList, steps: Runners, unscales: Runners) -> Iterator[Proposal]:
    both = [(hook.members(steps, one.file), hook.members(unscales, one.file)) for hook in one.hooks]
    first = [at for at, (step, unscale) in enumerate(both) if step and not unscale]
    second = [at for at, (step, unscale) in enumerate(both) if unscale and not step]
    if len(first) != 1 or len(second) != 1 or second[0] != first[0] + 1:
        return
    step, unscale = one.hooks[first[0]], one.hooks[second[0]]
    is_same_event = steps.events(both[first[0]][0]) & unscales.events(both[second[0]][1])
    edit = one.move(first[0], second[0]) if is_same_event and dict(step.told) == dict(unscale.told) else None
    if edit is not None:
        yield Proposal(
            edits=(edit,),
            culprit=culprit_at(one.file, step.span, "steps before the gradients are unscaled and clipped"),
            belief=one.belief,
            because="the clipping then counts for the step that it was made for",
            title="Step behind what unscales and clips, in the order of the list",
            is_origin=True,
        )
