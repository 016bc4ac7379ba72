"""`Corpus(rows, intents=saved["intents"])` for `Corpus(rows)`: what a checkpoint was made with is taken from it, not made anew.

For a list or number that the checkpoint holds beside its weights, that the program reads nowhere, and that a call of its own
makes up where nothing is given: a layer then has another size than the weights.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, default_of
from explainer.source.value.resolve import resolver_of

_SAID = "size mismatch for"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call between the reading of the checkpoint and the loading that leaves such an argument out."""
    if _SAID not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        function = context.program.names(file).function_of(statement) or file.tree
        states = {name for one in walk(statement) if (name := _entry_of(one)) is not None}
        if function is None or not states:
            continue
        nodes = list(walk(function))
        read = {_key(one) for one in nodes if isinstance(one, ast.Subscript)}
        bound = {one.name: one.statement for one in bounds_of(function)}
        for call in (one for one in nodes if isinstance(one, ast.Call)):
            for state in (one for one in states if one in bound and _is_between(bound[one], call, statement)):
                for key in sorted(_entries(context.program) - read):
                    if _leaves_out(call, key, file, context.program):
                        yield Proposal(
                            edits=(add_argument(file, call, f'{key}={state}["{key}"]'),),
                            culprit=culprit_of(file, call, f"makes `{key}` anew, which the checkpoint holds as it was"),
                            belief=2.4,
                        )


def _is_between(made: ast.AST, call: ast.Call, loaded: ast.stmt) -> bool:
    return getattr(made, "lineno", 0) < call.lineno <= loaded.lineno


def _key(node: ast.Subscript) -> str | None:
    return node.slice.value if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str) else None


def _entry_of(node: ast.AST) -> str | None:
    """`saved` of `saved["model"]`."""
    return dotted_name(node.value) if isinstance(node, ast.Subscript) and _key(node) is not None else None


def _entries(program: Program) -> set[str]:
    """The keys of the dictionaries that the program saves."""
    saved = [
        one.args[0]
        for file in program.parsed()
        for one in file.walk()
        if isinstance(one, ast.Call) and program.names(file).is_call(one, "torch.save") and one.args
    ]
    keys = (key for one in saved if isinstance(one, ast.Dict) for key in one.keys)
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _leaves_out(call: ast.Call, name: str, file: SourceFile, program: Program) -> bool:
    """Whether a call of the program's own has a parameter of a name, None by default, and does not give it."""
    function = _called(call, file, program)
    if (
        function is None
        or name not in all_parameters(function)
        or any(one.arg in (name, None) for one in call.keywords)
    ):
        return False
    default = default_of(function, name)
    places = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
    is_given = name in places[: len(call.args)] or any(isinstance(one, ast.Starred) for one in call.args)
    return isinstance(default, ast.Constant) and default.value is None and not is_given


def _called(call: ast.Call, file: SourceFile, program: Program) -> Function | None:
    """The function that a call runs; of a class its `__init__`."""
    found = resolver_of(program).find_class(call.func, file)
    if found is not None:
        methods = (one for one in found[1].body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
        return next(methods, None)
    function = resolver_of(program).function_of(call, Value(call, file))
    return function[1] if function is not None else None
