"""Training runs without the cache of decoding: `use_cache=False`, no `past_key_values`, `input_pos=None`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.argument import drop_keyword
from explainer.fix.text.import_line import drop_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import arguments_of, flow_of
from explainer.source.value.lineage import lineage

_CACHES = "transformers."
_Asked = tuple[
    Function | None, str, bool
]  # a function, None for any module, its parameter, and whether that was asked about
_PIECES = "the loop gives the model one piece of a text at a time: without the cache each sees only itself; one call with the whole sequence keeps the context"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call in a loss's forward that is given a cache, or a position in one."""
    if not context.has_failed:
        return
    program, seen = context.program, set[ast.Call]()
    for backward in find_backwards(program):
        file = backward.file
        for line in (*lineage(backward.loss, backward.statement, file, program), backward.statement):
            for call in (node for node in walk(line) if isinstance(node, ast.Call)):
                edits = () if call in seen else tuple(_library(call, file, program)) or tuple(_own(call, file, program))
                seen.add(call)
                if edits:
                    why = "trains through the cache of decoding, which its forward writes in place"
                    is_fed = _is_fed_in_pieces(call, backward.call, file)
                    yield Proposal(
                        edits=edits,
                        culprit=culprit_of(file, call, why),
                        belief=1.5,
                        applicability="unsafe" if is_fed else None,
                        because=_PIECES if is_fed else None,
                    )


def _is_fed_in_pieces(call: ast.Call, backward: ast.Call, file: SourceFile) -> bool:
    """Whether a loop that the backward stands behind calls the model again and again for one loss."""
    loop = file.enclosing(call, ast.For, ast.While, ast.comprehension, ast.FunctionDef, ast.AsyncFunctionDef)
    return isinstance(loop, (ast.For, ast.While)) and all(node is not backward for node in walk(loop))


def _library(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Edit]:
    """A model of transformers: no `past_key_values`, `use_cache=False`; the cache itself goes where nothing else reads it."""
    cache = next((one for one in call.keywords if one.arg == "past_key_values"), None)
    switch = next((one for one in call.keywords if one.arg == "use_cache"), None)
    is_on = switch is not None and getattr(switch.value, "value", None) is True
    if cache is None or getattr(cache.value, "value", 0) is None or not (is_on or switch is None):
        return
    yield drop_keyword(file, call, cache)
    if switch is not None:
        yield edit_of(file, switch.value, "False")
    name = dotted_name(cache.value)
    made = [one for one in file.walk() if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
            and dotted_name(one.targets[0]) == name and name]  # fmt: skip
    uses = [
        node
        for node in file.walk()
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    ]
    if len(made) != 1 or len(uses) != 1 or not isinstance(made[0].value, ast.Call):
        return
    func = made[0].value.func
    if not (program.names(file).qualified(func) or "").startswith(_CACHES):
        return
    yield remove_statement(file, made[0])
    yield from drop_name(file, func)


def _own(call: ast.Call, file: SourceFile, program: Program) -> Iterator[Edit]:
    """A module whose forward skips its cache when an argument is None, as that argument's default is."""
    target = flow_of(program).target_of(call, file) if program.once(_state_writes) else None
    if target is None:
        return
    switches = {one for one in _switches(target[1]) if _switches_a_write(target, one, program)}
    for name, value in arguments_of(call, target[1]):
        if name in switches and getattr(value, "value", 0) is not None:
            keyword = next((one for one in call.keywords if one.arg == name), None)
            yield edit_of(file, keyword.value, "None") if keyword is not None else edit_of(file, value, f"{name}=None")


def _switches(function: Function) -> Iterator[str]:
    """The parameters whose default is None."""
    arguments = function.args.args
    for one, default in zip(
        arguments[len(arguments) - len(function.args.defaults) :], function.args.defaults, strict=True
    ):
        if getattr(default, "value", 0) is None:
            yield one.arg


def _switches_a_write(place: tuple[SourceFile, Function], name: str, program: Program) -> bool:
    """Whether `if name is not None:` holds a write into a module's state, here or where the parameter is handed on."""
    todo = [(place, name)]
    seen: set[_Asked] = set()
    while todo:
        place, name = todo.pop()
        guarded = set(_guarded(place[1], name))
        if any(_writes_state(node) for node in guarded):
            return True
        for call in (node for node in walk(place[1]) if isinstance(node, ast.Call)):
            is_guarded = call in guarded
            for callee, parameter in _handed_on(call, name, place, program, seen, is_guarded=is_guarded):
                if (callee[1], parameter, is_guarded) in seen:
                    continue
                if is_guarded and _writes(callee[1]):
                    return True
                seen.add((callee[1], parameter, is_guarded))
                todo.append((callee, parameter))
    return False


def _guarded(function: Function, name: str) -> Iterator[ast.AST]:
    """What stands in an `if` that asks about a name."""
    for node in walk(function):
        if isinstance(node, ast.If) and any(isinstance(one, ast.Name) and one.id == name for one in walk(node.test)):
            for statement in node.body:
                yield from walk(statement)


def _handed_on(
    call: ast.Call,
    name: str,
    place: tuple[SourceFile, Function],
    program: Program,
    seen: set[_Asked],
    *,
    is_guarded: bool,
) -> Iterator[tuple[tuple[SourceFile, Function], str]]:
    """The functions that a call hands a name to, and what they call it.

    A module that is not known, as one taken out of a container or set from outside, may be any whose forward has a
    parameter of that name.
    """
    target = flow_of(program).target_of(call, place[0])
    if target is not None:
        yield from ((target, to) for to, value in arguments_of(call, target[1]) if dotted_name(value) == name)
    elif (None, name, is_guarded) not in seen and any(
        dotted_name(value) == name for value in (*call.args, *(one.value for one in call.keywords))
    ):
        seen.add((None, name, is_guarded))
        yield from ((one, name) for one in _forwards(program).get(name, ()))


@lru_cache(maxsize=2)
def _forwards(program: Program) -> dict[str, list[tuple[SourceFile, Function]]]:
    """Every `forward` of the program, by the names of its parameters."""
    found: dict[str, list[tuple[SourceFile, Function]]] = {}
    for file, function in program.functions():
        for one in function.args.args if function.name == "forward" else ():
            found.setdefault(one.arg, []).append((file, function))
    return found


@lru_cache(maxsize=1024)
def _writes(function: Function) -> bool:
    """Whether a function writes into its module's state anywhere."""
    return any(_writes_state(node) for node in walk(function))


def _state_writes(program: Program) -> Iterator[ast.AST]:
    """Everything in a program that writes into a module's state."""
    return (node for file in program.parsed() for node in file.walk() if _writes_state(node))


def _writes_state(node: ast.AST) -> bool:
    """`self.k.index_copy_(...)`, `self.k[...] = x`."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute):
        is_method = func.attr.endswith("_") and not func.attr.endswith("__")
        return is_method and (dotted_name(func.value) or "").startswith("self.")
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return False
    return (dotted_name(node.value) or "").startswith("self.")
