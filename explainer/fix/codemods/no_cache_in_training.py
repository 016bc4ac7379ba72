"""Training runs without the cache of decoding: `use_cache=False`, no `past_key_values`, `input_pos=None`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.import_line import drop_name
from explainer.fix.loss import drop_keyword
from explainer.model.patch import Edit
from explainer.source.backward import find_backwards
from explainer.source.file import SourceFile
from explainer.source.flow import arguments_of, flow_of
from explainer.source.lineage import lineage, reads
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program

_CACHES = "transformers."


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each call in a loss's forward that is given a cache, or a position in one."""
    if not context.has_failed:
        return
    program, seen = context.program, set[ast.Call]()
    for backward in find_backwards(program):
        file = backward.file
        for line in (*lineage(backward.loss, backward.statement, file, program), backward.statement):
            for call in (node for node in ast.walk(line) if isinstance(node, ast.Call)):
                edits = () if call in seen else tuple(_library(call, file, program)) or tuple(_own(call, file, program))
                seen.add(call)
                if edits:
                    why = "trains through the cache of decoding, which its forward writes in place"
                    yield Proposal(edits=edits, culprit=culprit_of(file, call, why), belief=1.5)


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
    target = flow_of(program).target_of(call, file)
    if target is None:
        return
    switches = {one for one in _switches(target[1]) if _guards_a_write(target[1], one)}
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


def _guards_a_write(function: Function, name: str) -> bool:
    """Whether `if name is not None:` holds a write into an attribute of the module."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and name in reads(node.test, graph=False) | {
            each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)
        }:
            for one in (each for statement in node.body for each in ast.walk(statement)):
                func = one.func if isinstance(one, ast.Call) else None
                is_method = (
                    isinstance(func, ast.Attribute)
                    and func.attr.endswith("_")
                    and (dotted_name(func.value) or "").startswith("self.")
                )
                is_part = (
                    isinstance(one, ast.Subscript)
                    and isinstance(one.ctx, ast.Store)
                    and (dotted_name(one.value) or "").startswith("self.")
                )
                if is_method or is_part:
                    return True
    return False
