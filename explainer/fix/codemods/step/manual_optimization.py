"""Switches a Lightning module to manual optimization where it steps its optimizers by itself: `self.automatic_optimization = False`.

One that says so before `super().__init__()`, which sets it back, says it after. A module with several optimizers, which Lightning 2 steps no more, steps them as Lightning 1 did: each in turn with the loss that
`training_step` computes for its index; where there is one loss, one backward for all. Not where schedulers hang on them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import (
    Context,
    Proposal,
    culprit_at,
    culprit_of,
    edit_of,
    insert_after,
    insert_before,
    lines_of,
    remove_statement,
)
from explainer.fix.setting.choice import has_value
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.lightning import chain_of, find_lightning_modules
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import IN_CODE
from explainer.source.tree import walk

_BY_HAND = frozenset(("manual_backward", "toggle_optimizer", "untoggle_optimizer"))
_FLAG = "automatic_optimization"
_INDEX = "optimizer_idx"
_WHY = "steps its optimizers by itself, and leaves automatic optimization on"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each Lightning module that optimizes by hand and does not say so."""
    if context.options.get("several"):
        if "Training with multiple optimizers" in message_of(context):
            yield from _several(context)
        return
    for owner in find_lightning_modules(context.program):
        chain = list(chain_of(owner, context.program))
        if not any(_optimizes_by_hand(one) for _, one in chain):
            continue
        set_here = [(file, node) for file, one in chain for node in _assigned(one)]
        early = [one for file, owner in chain for one in _set_early(file, owner)]
        if early:
            yield early[0]
        elif set_here:
            yield from _switched(set_here[0], context)
        else:
            # The class that calls the optimizers is the one whose contract this is; its subclasses inherit it.
            file, one = next((each for each in reversed(chain) if _optimizes_by_hand(each[1])), chain[-1])
            edits, at = _added(file, one)
            second = _own_backward(one)
            why = "goes backward by itself, and the trainer goes backward through what is returned" if second else _WHY
            culprit = culprit_of(file, second or at, why)
            yield Proposal(edits=edits, culprit=culprit, belief=2.5)
            return


def _several(context: Context) -> Iterator[Proposal]:
    """The steps of several optimizers, written out; only the line where schedulers or a loss that is no plain one stand in the way."""
    for owner in find_lightning_modules(context.program):
        methods = {
            node.name: (file, one, node)
            for file, one in reversed(list(chain_of(owner, context.program)))
            for node in one.body
            if isinstance(node, ast.FunctionDef)
        }
        if any(_optimizes_by_hand(each) for _, each in chain_of(owner, context.program)):
            continue
        if "training_step" not in methods or "configure_optimizers" not in methods:
            continue
        file, one, step = methods["training_step"]
        where, _, made = methods["configure_optimizers"]
        indexed = any(each.arg == _INDEX for each in step.args.args)
        places = (file, step) if indexed else (where, next((x for x in walk(made) if isinstance(x, ast.Return)), made))
        culprit = culprit_of(*places, "takes the index of an optimizer" if indexed else "gives several optimizers")
        edits = _in_turn(file, one, step) if indexed else _at_once(file, step)
        if not edits or "sched" in ast.unparse(made).lower() or step.decorator_list:
            yield Proposal(edits=(), culprit=culprit, belief=1.0)
            return
        yield Proposal(edits=(*_added(file, one)[0], *edits), culprit=culprit, belief=1.5)
        return


def _in_turn(file: SourceFile, owner: ast.ClassDef, step: ast.FunctionDef) -> tuple[Edit, ...]:
    """`training_step(batch, batch_idx)` that goes through the optimizers; the old one gives each its loss."""
    returned = [one.value for one in walk(step) if isinstance(one, ast.Return) and one.value is not None]
    given = [one.arg for one in step.args.args]
    if not returned or any(isinstance(one, (ast.Dict, ast.Tuple)) for one in returned) or given[-1] != _INDEX:
        return ()
    name = free_name("loss_of_optimizer", owner)
    start = file.text.index("training_step", file.span(step)[0])
    passed = ", ".join(given[1:-1])
    text = (
        f"def training_step(self, {passed}):\n"
        f"    for {_INDEX}, optimizer in enumerate(self.optimizers()):\n"
        f"        self.toggle_optimizer(optimizer)\n"
        f"        loss = self.{name}({passed}, {_INDEX})\n"
        f"        optimizer.zero_grad()\n"
        f"        self.manual_backward(loss)\n"
        f"        optimizer.step()\n"
        f"        self.untoggle_optimizer(optimizer)\n"
    )
    rename = Edit(file=file.path, start=start, end=start + len("training_step"), new=name)
    return (insert_before(file, step, text), rename)


def _at_once(file: SourceFile, step: ast.FunctionDef) -> tuple[Edit, ...]:
    """One backward through the loss that `training_step` returns at its end, and a step of each optimizer."""
    returns = [one for one in walk(step) if isinstance(one, ast.Return)]
    last = step.body[-1]
    if (
        len(returns) != 1
        or not isinstance(last, ast.Return)
        or not isinstance(last.value, (ast.Name, ast.Call, ast.BinOp))
    ):
        return ()
    name = last.value.id if isinstance(last.value, ast.Name) else free_name("loss", step)
    lines = [] if isinstance(last.value, ast.Name) else [f"{name} = {file.segment(last.value)}"]
    lines += ["for optimizer in self.optimizers():", "    optimizer.zero_grad()", f"self.manual_backward({name})"]
    lines += ["for optimizer in self.optimizers():", "    optimizer.step()"]
    return (insert_before(file, last, "\n".join(lines)), edit_of(file, last.value, name))


def _optimizes_by_hand(owner: ast.ClassDef) -> bool:
    called = [one.func for one in walk(owner) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    own = [one.attr for one in called if isinstance(one.value, ast.Name) and one.value.id == "self"]
    return bool(_BY_HAND & set(own)) or ("optimizers" in own and any(one.attr == "step" for one in called))


def _own_backward(owner: ast.ClassDef) -> ast.AST | None:
    """The plain backward that `training_step` calls: with automatic optimization that is one of two.

    `manual_backward` says what was meant: there the constructor is at fault, which does not say so.
    """
    steps = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "training_step"]
    calls = (
        one for step in steps for one in walk(step) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    )
    return next((one for one in calls if one.func.attr == "backward"), None)  # type: ignore[attr-defined]


def _assigned(owner: ast.ClassDef) -> Iterator[ast.Assign]:
    for node in walk(owner):
        if isinstance(node, ast.Assign) and any(
            (isinstance(one, ast.Attribute) and one.attr == _FLAG) or (isinstance(one, ast.Name) and one.id == _FLAG)
            for one in node.targets
        ):
            yield node


def _set_early(file: SourceFile, owner: ast.ClassDef) -> Iterator[Proposal]:
    """The flag that is set before `super().__init__()`, which sets it back, goes behind it."""
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    body = made.body if made is not None else []
    above = next((one for one in body if _is_super(one)), None)
    for node in _assigned(owner) if above is not None else ():
        if above is not None and node in body[: body.index(above)]:
            yield Proposal(
                edits=(remove_statement(file, node), insert_after(file, above, lines_of(file, node))),
                culprit=culprit_of(file, node, "is set before `super().__init__()`, which sets it back to True"),
                belief=2.5,
            )


def _switched(place: tuple[SourceFile, ast.Assign], context: Context) -> Iterator[Proposal]:
    """The flag is set: in the code, or by a setting that it is read from."""
    file, node = place
    if isinstance(node.value, ast.Constant):
        if node.value.value is True:
            yield Proposal(
                edits=(edit_of(file, node.value, "False"),), culprit=culprit_of(file, node, _WHY), belief=2.0
            )
        return
    written = [one for each in context.program.documents() for one in each.settings if one.name == _FLAG]
    for setting in settings_behind(node.value, file, context.program) or written[: len(written) == 1]:
        if setting.kind not in IN_CODE and has_value(setting, value=True):
            edit = set_value(setting, new=False)
            if isinstance(edit, Edit):
                span = (setting.key or setting.span)[0], setting.span[1]
                yield Proposal(edits=(edit,), culprit=culprit_at(setting.file, span, _WHY), belief=2.0)


def _added(file: SourceFile, owner: ast.ClassDef) -> tuple[tuple[Edit, ...], ast.AST]:
    """The flag after `super().__init__()`, or with an `__init__` of its own; and the line that lacks it."""
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if made is None:
        first = next((one for one in owner.body if not _is_docstring(one)), owner.body[0])
        text = (
            f"def __init__(self, *args, **kwargs):\n    super().__init__(*args, **kwargs)\n    self.{_FLAG} = False\n"
        )
        return (insert_before(file, first, text),), owner
    above = next((one for one in made.body if _is_super(one)), None)
    if above is None:
        return (insert_before(file, made.body[0], f"self.{_FLAG} = False"),), made
    return (insert_after(file, above, f"self.{_FLAG} = False"),), above


def _is_super(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement.value).startswith("super(")


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
