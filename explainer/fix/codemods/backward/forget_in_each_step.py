"""A memory that the passes of one step share is emptied where the next step begins: `model.forget()`, which the program has for that.

    def forget(self):
        self.memory = None

    def read(self, prompt):
        if self.memory is None:
            self.memory = self.reader(prompt)
        return self.memory

Filling it anew in each pass would read the prompt by other random numbers. Only where a method empties it and does nothing else, an
evaluation calls that, and the training loop does not. A state, which each pass writes on, is no such memory: it goes on from step to step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import fails_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.loop.backward import find_backwards
from explainer.source.loop.carried import training_loops
from explainer.source.name import dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the first run of such a module in each training loop that never empties it."""
    if not context.has_failed:
        return
    program = context.program
    forgetful = list(_forgetful(program))
    failed = any(fails_at(one, context) for one in find_backwards(program))
    for file, loop, _ in dict.fromkeys(training_loops(program)):
        for owner, method in forgetful:
            run = next(_runs_of(owner, loop, file, program), None)
            name = dotted_name(run.func) if run is not None else None
            if run is None or name is None or _is_called(method, loop) or not _is_called_elsewhere(method, program):
                continue
            statement = _of_loop(file.statement(run), loop, file)
            yield Proposal(
                edits=(insert_before(file, statement, f"{name}.{method}()"),),
                culprit=culprit_of(file, run, f"meets what `{name}` has kept since an earlier step: `{method}` is not called here"),
                belief=2.6 if failed else 2.0,
                because="the passes of one step still share it; the next step fills it anew",
                title=f"Empty it where a step begins: `{name}.{method}()`",
            )  # fmt: skip


def _forgetful(program: Program) -> Iterator[tuple[ast.ClassDef, str]]:
    """The modules that keep what their first pass made, with the method that does nothing but empty it."""
    for file in program.parsed():
        for owner in program.names(file).classes.values():
            guards = [(node, name) for node in walk(owner) if (name := _kept(node)) is not None]
            kept = {name for _, name in guards}
            if any(_is_written_on(name, guard, program) for guard, name in guards):
                continue
            methods = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name != "__init__"]
            for one in methods if kept and inherits_module(owner, file, program) else ():
                emptied = {name for each in one.body for name in _emptied(each)}
                if kept <= emptied and all(any(_emptied(each)) for each in one.body if not _is_text(each)):
                    yield owner, one.name


def _kept(node: ast.AST) -> str | None:
    """`self.memory` of `if self.memory is None: self.memory = ...`."""
    if (
        not isinstance(node, ast.If)
        or not isinstance(node.test, ast.Compare)
        or not isinstance(node.test.ops[0], ast.Is)
    ):
        return None
    name = dotted_name(node.test.left) or ""
    bound = {dotted_name(one) for each in node.body if isinstance(each, ast.Assign) for one in each.targets}
    return name if name.startswith("self.") and name in bound else None


def _is_written_on(name: str, guard: ast.AST, program: Program) -> bool:
    """Whether anything but None is put under the name outside of its guard: a state."""
    inside, last = set(walk(guard)), name.rpartition(".")[2]
    for file in program.parsed():
        for node in file.walk():
            is_stored = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == last
            value = getattr(file.statement(node), "value", None) if is_stored and node not in inside else None
            if is_stored and node not in inside and not (isinstance(value, ast.Constant) and value.value is None):
                return True
    return False


def _emptied(statement: ast.stmt) -> Iterator[str]:
    """The attributes that a statement makes None."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(statement, ast.Assign) and isinstance(value, ast.Constant) and value.value is None:
        yield from (
            name for one in statement.targets if (name := dotted_name(one)) is not None and name.startswith("self.")
        )


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _runs_of(owner: ast.ClassDef, loop: ast.AST, file: SourceFile, program: Program) -> Iterator[ast.Call]:
    """The calls of such a module in a loop, the first one first."""
    calls = (one for one in walk_scope(loop) if isinstance(one, ast.Call) and dotted_name(one.func))
    for one in sorted(calls, key=lambda each: (each.lineno, each.col_offset)):
        owners = resolver_of(program).classes_of(Value(one.func, file))
        if [each for _, each in owners] == [owner]:
            yield one


def _is_called(method: str, node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == method for one in walk(node))


def _is_called_elsewhere(method: str, program: Program) -> bool:
    return bool(resolver_of(program).calls_named(method))


def _of_loop(statement: ast.stmt, loop: ast.For | ast.While, file: SourceFile) -> ast.stmt:
    """The statement of a loop's own body in which another one stands."""
    at: ast.AST = statement
    while file.parents.get(at) is not loop and file.parents.get(at) is not None:
        at = file.parents[at]
    return at if isinstance(at, ast.stmt) else statement
