"""An adapter for each of several things gets its name: `model.add_adapter(config, adapter_name=desk)`.

A function, or a loop, adds one for each under the same name; what the program activates or saves later is called by the things
themselves (`for desk in DESKS: model.set_adapter(desk)`), which says how they are meant to be called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of

_NAMES = frozenset({"set_adapter", "delete_adapter", "activate_adapter"})
_SAME = frozenset({"list", "tuple", "sorted", "iter", "reversed"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the failing call that adds one more adapter under a name that there is."""
    if not context.has_failed:
        return
    program = context.program
    wanted = set(_used(program))
    for file, statement in failing_statements(context) if wanted else ():
        for call in walk(statement):
            if not isinstance(call, ast.Call) or getattr(call.func, "attr", "") != "add_adapter":
                continue
            names = {name for name, over in _at_hand(call, file, program) if over in wanted}
            given = _name(call)
            if len(names) != 1 or not (given is None or isinstance(given, ast.Constant)):
                continue
            name = names.pop()
            edit = edit_of(file, given, name) if given is not None else add_argument(file, call, f"adapter_name={name}")
            why = f"adds an adapter for each `{name}`, all under one name"
            yield Proposal(edits=(edit,), culprit=culprit_of(file, call, why), belief=2.5)


def _used(program: Program) -> Iterator[str]:
    """What the names of adapters are taken from where the program activates them one after the other."""
    for file in program.parsed():
        for call in file.walk():
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in _NAMES and call.args:
                name = call.args[0]
                if isinstance(name, ast.Name):
                    yield from (over for target, over in _loops(call, file) if target == name.id)


def _at_hand(call: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[str, str]]:
    """The names where a call stands that hold an element each: of loops around it, and parameters that are given one."""
    yield from _loops(call, file)
    function = program.names(file).function_of(call)
    if function is None:
        return
    given: dict[str, set[str | None]] = {}
    for where, outer in resolver_of(program).calls_of(function, file):
        loops = dict(_loops(outer, where))
        for parameter, value in arguments_of(outer, function):
            given.setdefault(parameter, set()).add(loops.get(dotted_name(value) or ""))
    for parameter in all_parameters(function) & given.keys():
        overs = given[parameter]
        over = next(iter(overs)) if len(overs) == 1 else None
        if over is not None:
            yield parameter, over


def _loops(node: ast.AST, file: SourceFile) -> Iterator[tuple[str, str]]:
    """The names that the loops around a node bind to an element, each with what it is an element of."""
    for above in file.around(node):
        if isinstance(above, ast.For):
            yield from _elements(above.target, above.iter)


def _elements(target: ast.expr, over: ast.expr) -> Iterator[tuple[str, str]]:
    func = over.func if isinstance(over, ast.Call) else None
    if isinstance(func, ast.Name) and isinstance(over, ast.Call) and over.args:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        if func.id == "enumerate" and len(parts) == 2:
            yield from _elements(parts[1], over.args[0])
        elif func.id == "zip" and len(parts) == len(over.args):
            for one, each in zip(parts, over.args, strict=True):
                yield from _elements(one, each)
        elif func.id in _SAME:
            yield from _elements(target, over.args[0])
        return
    if isinstance(func, ast.Attribute) and func.attr == "items" and isinstance(target, (ast.Tuple, ast.List)):
        target, over = target.elts[0], func.value
    elif isinstance(func, ast.Attribute) and func.attr == "keys":
        over = func.value
    name = dotted_name(over)
    if isinstance(target, ast.Name) and name is not None:
        yield target.id, name.rpartition(".")[2]


def _name(call: ast.Call) -> ast.expr | None:
    """What a call names its adapter: `add_adapter("second", config)` of PEFT, `add_adapter(config, "second")` of transformers."""
    given = next((one.value for one in call.keywords if one.arg == "adapter_name"), None)
    texts = [one for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return given or next(iter(texts), None) or (call.args[1] if len(call.args) > 1 else None)
