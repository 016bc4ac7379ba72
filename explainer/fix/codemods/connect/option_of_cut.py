"""A call on the way to the loss asks a function to leave out the cut that an option of it makes: `dice(p, y, threshold=None)`.

    def binarise(p, threshold=0.5):
        if threshold is None:
            return p
        return (p > threshold).float()

The function stays as it is: reports take its decisions. The option is followed through the functions that hand it on. So is one that
switches grad mode, `with torch.set_grad_enabled(learn)`. What is the target of a loss of torch stays cut; where several calls lie on
the way, each has to be known for a prediction or a target: which of two views is to learn, their names do not say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.failure import backward_roots, dead_ends
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.model.trace import CUT, GRAD_OFF
from explainer.source.file import SourceFile
from explainer.source.loss.loss import find_losses
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters, default_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of
from explainer.source.value.upstream import calls_behind

_DEPTH = 5
_LEAVES = (ast.Return, ast.Raise)


@dataclass(frozen=True, slots=True)
class _Option:
    """A parameter of a function, and the constant with which the function does not cut."""

    name: str
    wanted: str


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the calls behind the failing loss that leave an option at its default, or set it, so that the function cuts."""
    if not context.has_failed:
        return
    program = context.program
    cuts = dict.fromkeys(_cuts(context))
    if not cuts or len({program.names(file).function_of(statement) for file, statement in cuts}) > 1:
        return  # one of them is the fault, and the others may be meant: which, their options do not say
    losses = program.once(find_losses)
    predicted = {call for one in losses for _, call in calls_behind([Value(one.prediction, one.file)], program)}
    aimed = {call for one in losses for _, call in calls_behind([Value(one.target, one.file)], program)}
    on_way = frozenset(call for _, call in calls_behind(backward_roots(context), program)) - (aimed - predicted)
    for file, statement in cuts:
        function = program.names(file).function_of(statement)
        for option in _options(statement, function, file) if function is not None else ():
            assert function is not None
            found = list(_asked(option, (file, function), on_way, program))
            is_known = len(found) == 1 or all(call in predicted - aimed for _, call, _ in found)
            if found and is_known and all(edit is not None for _, _, edit in found):
                where, call, _ = found[0]
                yield Proposal(
                    edits=tuple(edit for _, _, edit in found if edit is not None),
                    culprit=culprit_of(
                        where, call, f"leaves `{option.name}` as it is, with which `{function.name}` cuts the graph"
                    ),
                    belief=2.3,
                    because=f"the loss takes the value itself; whatever else calls `{function.name}` still gets what it got",
                    title=f"Ask for the value itself where the loss is made: `{option.name}={option.wanted}`",
                )


def _cuts(context: Context) -> Iterator[tuple[SourceFile, ast.stmt]]:
    """Where grad mode was switched off on the way to the loss, else where a trace or the text sees it leave the graph."""
    for kind in (GRAD_OFF, CUT):
        found = [(file, statement) for _, file, statement in traced_statements(kind, context)]
        if found:
            yield from found
            return
    yield from ((cut.file, cut.file.statement(cut.node)) for _, cut in dead_ends(context))


def _options(cut: ast.stmt, function: Function, file: SourceFile) -> Iterator[_Option]:
    """The parameters on which alone it depends whether a function gets to a cut."""
    parameters = all_parameters(function)
    for one in (cut, *file.around(cut)):
        for item in one.items if isinstance(one, ast.With) else ():
            option = _mode(item.context_expr, function)
            if option is not None and option.name in parameters:
                yield option
        if isinstance(one, ast.If):
            option = _switch(one.test, function, is_true=not any(cut in ast.walk(each) for each in one.body))
            if option is not None and option.name in parameters:
                yield option
        if one is function:
            break
    for one in function.body:
        if one is cut or cut in ast.walk(one):
            break
        if isinstance(one, ast.If) and not one.orelse and isinstance(one.body[-1], _LEAVES):
            option = _switch(one.test, function, is_true=True) if isinstance(one.body[-1], ast.Return) else None
            if option is not None and option.name in parameters:
                yield option


def _switch(test: ast.expr, function: Function, *, is_true: bool) -> _Option | None:
    """The option that makes a test true, or false: None for `threshold is None`, False for `hard`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _switch(test.operand, function, is_true=not is_true)
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
        other = test.comparators[0]
        is_none = isinstance(other, ast.Constant) and other.value is None
        wants_none = isinstance(test.ops[0], ast.Is) if is_true else isinstance(test.ops[0], ast.IsNot)
        return _Option(test.left.id, "None") if is_none and wants_none else None
    default = default_of(function, test.id) if isinstance(test, ast.Name) else None
    is_flag = isinstance(default, ast.Constant) and isinstance(default.value, bool)
    return _Option(test.id, str(is_true)) if is_flag and isinstance(test, ast.Name) else None


def _mode(context: ast.expr, function: Function) -> _Option | None:
    """The flag that a block switches grad mode by: `learn` of `torch.set_grad_enabled(learn)`."""
    given = context.args[0] if isinstance(context, ast.Call) and len(context.args) == 1 else None
    is_mode = isinstance(context, ast.Call) and (dotted_name(context.func) or "").endswith("set_grad_enabled")
    return _switch(given, function, is_true=True) if is_mode and isinstance(given, ast.Name) else None


def _asked(
    option: _Option, target: tuple[SourceFile, Function], on_way: frozenset[ast.Call], program: Program, depth: int = 0
) -> Iterator[tuple[SourceFile, ast.Call, Edit | None]]:
    """The calls behind the loss that decide on an option, each with its edit; None where what they give is computed."""
    file, function = target
    for where, call in resolver_of(program).calls_of(function, file):
        if call not in on_way:
            continue
        given = next((value for name, value in arguments_of(call, function) if name == option.name), None)
        caller = program.names(where).function_of(call)
        if given is None:
            yield where, call, add_argument(where, call, f"{option.name}={option.wanted}")
        elif isinstance(given, ast.Constant):
            yield where, call, edit_of(where, given, option.wanted)
        elif caller is not None and isinstance(given, ast.Name) and given.id in all_parameters(caller):
            handed = _Option(given.id, option.wanted)
            if depth < _DEPTH:
                yield from _asked(handed, (where, caller), on_way, program, depth + 1)
        else:
            yield where, call, None
