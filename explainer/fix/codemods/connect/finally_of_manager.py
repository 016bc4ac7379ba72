"""A context manager puts back what it switched off on every way out: `try: yield` and `finally: torch.set_grad_enabled(was)`.

An exception in its block comes up at the bare `yield`, and what stands behind that never runs: where a caller catches it, grad mode
or the flags of parameters stay off for all that follows. A manager that never puts grad mode back gets `with torch.no_grad():`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.fix.text.rewrite import in_block, indented, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.name import Function, Names, dotted_name
from explainer.source.network.freeze import find_freezes
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

_MANAGERS = ("contextlib.contextmanager",)
_DEPTH = 3
_SURE = 4.5  # before every way to take grad mode up again elsewhere
_WHY = "is left by an exception that a caller catches, so that nothing behind it puts back what was switched off"
_NEVER = "switches grad mode off, and nothing behind the `yield` switches it on"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each manager of the program that switches off what the rule's option says: "grad mode", or the "flags" of parameters."""
    if not context.has_failed:
        return
    program = context.program
    if context.options.get("switches") == "grad mode":
        yield from _of_classes(program)
        yield from _noted_late(program)
    for file, function in program.functions():
        names = program.names(file)
        at = next((number for number, one in enumerate(function.body) if _yields(one)), None)
        if at is None or not any(names.qualified(one) in _MANAGERS for one in function.decorator_list):
            continue
        before, bare, behind = function.body[:at], function.body[at], function.body[at + 1 :]
        switch = next((one for one in before if _switches_off(one, file, program)), None)
        is_grad_mode = isinstance(switch, ast.Expr) and grad_state(switch.value, names) is False
        is_asked = context.options.get("switches") == ("grad mode" if is_grad_mode else "flags")
        if switch is None or not is_asked or any(_yields(one) for one in behind):
            continue
        if is_grad_mode and not any(_sets_mode(one, names) for one in behind):
            edits = _in_block(file, function, switch, names)
            if edits:
                yield Proposal(edits=edits, culprit=culprit_of(file, switch, _NEVER), belief=2.2)
        elif behind and _is_caught(function, file, program):
            blocks = in_block(file, [bare], "try:"), in_block(file, behind, "finally:")
            edits = (*blocks[0], *blocks[1]) if all(blocks) else ()
            yield Proposal(edits=edits, culprit=culprit_of(file, bare, _WHY), belief=2.4)


def _of_classes(program: Program) -> Iterator[Proposal]:
    """`torch.set_grad_enabled(self.before)` in the `__exit__` of a class whose `__enter__` switches grad mode off."""
    for file in program.parsed():
        names = program.names(file)
        for owner in names.classes.values():
            methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
            enter, leave = methods.get("__enter__"), methods.get("__exit__")
            if enter is None or leave is None or any(_sets_mode(one, names) for one in leave.body):
                continue
            switch = next((one for one in enter.body if _switches_off(one, file, program)), None)
            if not isinstance(switch, ast.Expr) or grad_state(switch.value, names) is not False:
                continue
            kept = [one for one in enter.body if isinstance(one, ast.Assign) and _asks_mode(one.value, names)]
            text = f"{spell(names, 'torch.set_grad_enabled')}({file.segment(kept[0].targets[0]) if kept else True})"
            yield Proposal(
                edits=(insert_before(file, leave.body[0], text),),
                culprit=culprit_of(file, switch, "switches grad mode off, and `__exit__` does not put it back"),
                belief=_SURE,
                title=f"Put back what `__enter__` switched off: `{text}` in `__exit__`",
            )


def _noted_late(program: Program) -> Iterator[Proposal]:
    """`was = torch.is_grad_enabled()` behind the switch whose undoing takes it: the mode is noted before."""
    for file, function in program.functions():
        names = program.names(file)
        off = [one for one in function.body if isinstance(one, ast.Expr) and grad_state(one.value, names) is False]
        if not off or not any(_sets_mode(one, names) for one in off):
            continue
        behind = function.body[function.body.index(off[0]) + 1 :]
        noted = [one for one in behind if isinstance(one, ast.Assign) and _asks_mode(one.value, names)]
        kept = dotted_name(noted[0].targets[0]) if noted else None
        if kept is None or not _is_put_back(kept, file, names):
            continue
        yield Proposal(
            edits=(remove_statement(file, noted[0]), insert_before(file, off[0], file.segment(noted[0]))),
            culprit=culprit_of(file, off[0], f"switches grad mode off before `{kept}` is told what it was"),
            belief=_SURE,
            title=f"Note grad mode before it is switched off: `{file.segment(noted[0])}` first",
        )


def _is_put_back(kept: str, file: SourceFile, names: Names) -> bool:
    """Whether grad mode is set to what a name holds."""
    calls = [one for one in file.walk() if isinstance(one, ast.Call)]
    sets = [one for one in calls if (names.qualified(one.func) or "").endswith(".set_grad_enabled")]
    return any(
        dotted_name(given) == kept for one in sets for given in (*one.args, *(word.value for word in one.keywords))
    )


def _asks_mode(node: ast.expr, names: Names) -> bool:
    return names.is_call(node, "torch.is_grad_enabled")


def _yields(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Yield)


def _switches_off(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement switches off grad mode, or the flags of parameters."""
    if isinstance(statement, ast.Expr) and grad_state(statement.value, program.names(file)) is False:
        return True
    return any(one.statement is statement and not one.is_on for one in find_freezes(program))


def _sets_mode(statement: ast.stmt, names: Names) -> bool:
    calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
    return any((names.qualified(one.func) or "").endswith(".set_grad_enabled") for one in calls)


def _in_block(file: SourceFile, function: Function, switch: ast.stmt, names: Names) -> tuple[Edit, ...]:
    spelled = spell(names, "torch.no_grad")
    rest = function.body[function.body.index(switch) + 1 :]
    if spelled.partition(".")[0] not in names.imports:
        return ()
    return (edit_of(file, switch, f"with {spelled}():"), *indented(file, rest))


def _is_caught(function: Function, file: SourceFile, program: Program, depth: int = _DEPTH) -> bool:
    """Whether a call of a function, or of one that calls it, stands in a `try` that catches."""
    for where, call in resolver_of(program).calls_of(function, file) if depth else ():
        for above in where.around(call):
            body = above.body if isinstance(above, ast.Try) and above.handlers else []
            if any(node is call for one in body for node in walk(one)):
                return True
        user = program.names(where).function_of(call)
        if user is not None and _is_caught(user, where, program, depth - 1):
            return True
    return False
