"""A forward hook that writes the module's output in place returns the new output instead: PyTorch hands that on.

`output.clamp_(-b, b)` becomes `return output.clamp(-b, b)`. Only of functions that are registered as forward hooks and as
nothing else, that bind the output to no other value and return nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.out_of_place import out_of_place
from explainer.model.patch import Edit
from explainer.source.alias import is_aliased
from explainer.source.binding import walk_scope
from explainer.source.callee import Callee, callees_of
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.write import AUGMENTED, FUNCTION, METHOD, SUBSCRIPT, Write, find_writes

_FORWARD = frozenset({"register_forward_hook", "register_module_forward_hook"})
_ALIASED = "the hook keeps the output under another name too, which would hold the old values"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each forward hook that writes its output."""
    if not context.has_failed:
        return
    program = context.program
    hooks, others = _registered(program)
    for hook, name in hooks.items():
        is_other_too = any(one.function is hook.function for one in others)
        if is_other_too or _is_called(hook, program):
            continue
        writes = [one for one in find_writes(program) if _is_in(one, hook) and _root(one.target) == name]
        edits = _edits(hook, name, writes)
        if not edits:
            continue
        aliased = any(is_aliased(one, program) for one in writes)
        yield Proposal(
            edits=edits,
            culprit=culprit_of(
                hook.file, writes[0].node, f"a forward hook: writes `{name}`, the module's output, in place"
            ),
            belief=2.2,
            applicability="unsafe" if aliased else None,
            because=_ALIASED if aliased else None,
        )


def _registered(program: Program) -> tuple[dict[Callee, str], list[Callee]]:
    """The forward hooks of a program, each with the name of its output, and the functions that are other hooks."""
    hooks: dict[Callee, str] = {}
    others: list[Callee] = []
    for file in program.parsed():
        for node in file.walk():
            called = _method(node)
            if not isinstance(node, ast.Call) or not called.startswith("register_") or not called.endswith("_hook"):
                continue
            given = next((one.value for one in node.keywords if one.arg == "hook"), node.args[0] if node.args else None)
            for callee in callees_of(given, file, program) if given is not None else ():
                name = callee.parameter(3 if _takes_keywords(node) else 2)
                if called in _FORWARD and name is not None:
                    hooks[callee] = name
                elif called not in _FORWARD:
                    others.append(callee)
    return hooks, others


def _method(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _takes_keywords(node: ast.Call) -> bool:
    return any(
        one.arg == "with_kwargs" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in node.keywords
    )


def _is_called(hook: Callee, program: Program) -> bool:
    """Whether the program calls the hook itself too, and would drop what it returns."""
    name = getattr(hook.function, "name", None)
    calls = (node for file in program.parsed() for node in file.walk() if isinstance(node, ast.Call))
    return name is not None and any(_method(one) == name and len(one.args) > 2 for one in calls)


def _is_in(write: Write, hook: Callee) -> bool:
    around = write.file.enclosing(write.node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return write.file.path == hook.file.path and around is hook.function


def _root(target: ast.expr) -> str | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _edits(hook: Callee, name: str, writes: Sequence[Write]) -> tuple[Edit, ...]:
    """The writes out of place, and what the hook returns; none where one of them cannot be written so."""
    if not writes or any(_rewritten(one, name) == () for one in writes):
        return ()
    function = hook.function
    if isinstance(function, ast.Lambda):
        return _of_lambda(function, writes)
    own = list(walk_scope(function))
    decorators = {dotted_name(one) for one in function.decorator_list}
    if decorators - {"staticmethod"} or any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in own):
        return ()
    if any(isinstance(one, ast.Assign) and name in set(bound_names(one)) for one in own):
        return ()
    returns = [one for one in own if isinstance(one, ast.Return)]
    calls = [one.node for one in writes]
    if any(not (_is_nothing(one) or dotted_name(one.value) == name or one.value in calls) for one in returns):
        return ()
    last = function.body[-1]
    alone = next((one for one in writes if len(writes) == 1 and hook.file.statement(one.node) is last), None)
    if alone is not None and not isinstance(last, ast.Return) and alone.kind != SUBSCRIPT:
        return _returned(alone, name)
    edits = list(dict.fromkeys(edit for one in writes for edit in _rewritten(one, name)))
    first = min(one.node.lineno for one in writes)
    edits += [edit_of(hook.file, one, f"return {name}") for one in returns if _is_nothing(one) and one.lineno > first]
    if not isinstance(last, (ast.Return, ast.Raise)):
        edits.append(insert_after(hook.file, last, f"return {name}"))
    return tuple(edits)


def _is_nothing(node: ast.Return) -> bool:
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


def _rewritten(write: Write, name: str) -> tuple[Edit, ...]:
    """One write as an assignment; a part of the output is written into a clone of it."""
    if write.name == name and write.kind in (AUGMENTED, METHOD, FUNCTION):
        return out_of_place(write) or _lambda_body(write)
    if write.kind == SUBSCRIPT and write.name == name:
        return (insert_before(write.file, write.file.statement(write.node), f"{name} = {name}.clone()"),)
    return ()


def _lambda_body(write: Write) -> tuple[Edit, ...]:
    """`output.clamp_(-1, 1)` as the value of a lambda, without its underscore."""
    node = write.node
    if not isinstance(write.file.parents.get(node), ast.Lambda) or not isinstance(node, ast.Call):
        return ()
    end = write.file.span(node.func)[1]
    is_plain = not write.file.segment(node.func).endswith(("zero_", "fill_", "copy_", "normal_", "uniform_"))
    return (Edit(file=write.file.path, start=end - 1, end=end, new=""),) if is_plain else ()


def _of_lambda(function: ast.Lambda, writes: Sequence[Write]) -> tuple[Edit, ...]:
    return _lambda_body(writes[0]) if len(writes) == 1 and writes[0].node is function.body else ()


def _returned(write: Write, name: str) -> tuple[Edit, ...]:
    """The edits of the hook's last statement, with `return` in place of the assignment."""
    lead = f"{name} = "
    edits = out_of_place(write)
    return tuple(
        Edit(file=one.file, start=one.start, end=one.end, new="return " + one.new.removeprefix(lead))
        if one.new.startswith(lead)
        else one
        for one in edits
    )
