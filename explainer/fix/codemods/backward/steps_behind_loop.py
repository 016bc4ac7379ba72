"""Networks that train in one loop by losses of one forward: every backward of the loop before the first step, each for its own weights.

    for name, opt in opts.items():
        opt.zero_grad()
        losses[name].backward(retain_graph=True, inputs=[one for group in opt.param_groups for one in group["params"]])
    for name, opt in opts.items():
        opt.step()

The gradients are those of the losses as they were computed; the step of the first would change the weights that the next goes through.
Without `inputs` the losses would add to each other's gradients, which the loop clears for each: where it does not, a loss may be meant to
train another's network too, and the loop stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, lines_of, remove_statement
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, find_backwards
from explainer.source.loop.step import CLIP_METHODS
from explainer.source.name import bound_names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, reads

_LEAVES = (ast.Break, ast.Continue, ast.Return, ast.Raise, ast.Try, ast.Yield)
_HANDS_OUT = frozenset({"items", "values", "keys"})
_PAIRS = frozenset({"zip", "enumerate", "range", "sorted", "list", "tuple"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each loop that differentiates and steps network by network."""
    if not context.has_failed:
        return
    for backward in find_backwards(context.program):
        file, statement = backward.file, backward.statement
        loop = file.parents.get(statement)
        if not isinstance(loop, ast.For) or statement not in loop.body or not backward.is_plain:
            continue
        moved = _moved(loop, statement)
        step = next((one for one in moved if _called_on(one, "step")), None)
        if step is None or not _takes_turns(loop, backward, step) or not _is_repeatable(loop.iter, file):
            continue
        own = str(_called_on(step, "step"))
        head = f"for {file.segment(loop.target)} in {file.segment(loop.iter)}:"
        body = "\n".join(f"    {line}" if line else line for one in moved for line in lines_of(file, one).splitlines())
        yield Proposal(
            edits=(
                *_given_inputs(backward, own, file),
                *(remove_statement(file, one) for one in moved),
                insert_after(file, loop, f"{head}\n{body}"),
            ),
            # The loss, not the step: computed when its turn comes it is the better cure, where it can be.
            culprit=culprit_of(file, backward.call, "goes back through weights that the loop has stepped since the forward"),
            belief=0.3 + (0.7 if fails_at(backward, context) else 0.0),
            title="Take every step behind the last backward, and give each backward the weights of its own optimizer",
        )  # fmt: skip


def _moved(loop: ast.For, backward: ast.stmt) -> list[ast.stmt]:
    """What goes behind the loop: the one step that follows a backward, with what clips or clears the gradients there."""
    after = loop.body[loop.body.index(backward) + 1 :]
    steps = [one for one in after if _called_on(one, "step")]
    if len(steps) != 1 or loop.orelse or any(isinstance(one, _LEAVES) for each in loop.body for one in walk(each)):
        return []
    own = _called_on(steps[0], "step")
    if not any(_called_on(one, "zero_grad") == own for one in loop.body):
        return []
    moved = [one for one in after if one is steps[0] or _clips(one) or _called_on(one, "zero_grad") == own]
    bound = set[str]().union(*(binds(one) for one in loop.body)) - set(bound_names(loop))
    if any(reads(one, graph=False) & bound for one in moved):
        return []  # what the second loop would not have
    rest = [one for one in after if one not in moved]
    is_seen = any(getattr(one, "attr", "") == "grad" for each in rest for one in walk(each))
    return [] if is_seen else moved


def _called_on(statement: ast.stmt, method: str) -> str | None:
    """What a statement calls a method of, as it reads: `opts[key]` of `opts[key].step()`; None where it does not."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    func = call.func if isinstance(call, ast.Call) and not call.args else None
    return ast.unparse(func.value) if isinstance(func, ast.Attribute) and func.attr == method else None


def _clips(statement: ast.stmt) -> bool:
    calls = (one for one in walk(statement) if isinstance(one, ast.Call))
    return any((dotted_name(one.func) or "").rpartition(".")[2] in CLIP_METHODS for one in calls)


def _takes_turns(loop: ast.For, backward: Backward, step: ast.stmt) -> bool:
    """Whether both the optimizer and the loss are others in each round of a loop."""
    names = set(bound_names(loop))
    wanted = {one.id for one in walk(backward.loss) if isinstance(one, ast.Name)}
    for one in reversed(loop.body[: loop.body.index(backward.statement)]):
        if binds(one) & wanted:
            wanted |= {each.id for each in walk(one) if isinstance(each, ast.Name)}
    return bool(names & wanted) and bool(names & {one.id for one in walk(step) if isinstance(one, ast.Name)})


def _is_repeatable(node: ast.expr, file: SourceFile) -> bool:
    """Whether what a loop goes through can be gone through again: no iterator that is used up."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Attribute, ast.Constant)):
        return True
    if isinstance(node, ast.Subscript):
        return True
    if isinstance(node, ast.Name):
        made = [one.value for one in file.walk() if isinstance(one, ast.Assign) and node.id in bound_names(one)]
        return all(not isinstance(one, (ast.Call, ast.GeneratorExp)) for one in made)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _HANDS_OUT and dotted_name(node.func.value) is not None
    return dotted_name(node.func) in _PAIRS and all(_is_repeatable(one, file) for one in node.args)


def _given_inputs(backward: Backward, own: str, file: SourceFile) -> Iterator[Edit]:
    words = [f'inputs=[one for group in {own}.param_groups for one in group["params"]]']
    if not any(one.arg == "retain_graph" for one in backward.call.keywords):
        words.insert(0, "retain_graph=True")
    yield add_argument(file, backward.call, ", ".join(words))
