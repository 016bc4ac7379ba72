"""Makes a block of grad mode switched off and on by hand: `with torch.no_grad():` ends on every way out.

`torch.set_grad_enabled(False)`, some lines, `torch.set_grad_enabled(True)`: a `return`, `break`, `continue` or `raise` in
these lines leaves grad mode off for all that follows. The lines become a `with`; what they compute stays the same. A return
that also leaves out the `model.train()` behind the switch gets one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.rewrite import indented, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.name import Function, Names
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_SUSPENDS = (ast.Yield, ast.YieldFrom, ast.Await)
_DIFFERENTIATES = frozenset({"backward", "manual_backward", "grad", "step", "requires_grad_"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each stretch with grad mode off that has a way out past the line which switches it on."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Expr) and _switch(node, names) is False:
                yield from _block(node, file, context.program)


def _switch(node: ast.AST, names: Names) -> bool | None:
    """What a statement of its own switches grad mode to; None for any other."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return grad_state(node.value, names) if is_call else None  # type: ignore[attr-defined]


def _block(off: ast.Expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    names = program.names(file)
    block = block_of(off, file)
    later = list(block[block.index(off) + 1 :])
    on = next((one for one in later if _restores(one, names)), None)
    function = names.function_of(off)
    if on is not None:
        covered = later[: later.index(on)]
    elif function is not None and off in function.body:
        covered = later
    else:
        return
    inner = [one for each in covered for one in _within(each) if _restores(one, names)]
    ways = [way for each in covered for way in _ways_out(each)]
    if on is None and (not inner or not any(not _follows(inner, way, file) for way in ways)):
        return  # one switch that is never undone is another case; one undone on each way out is right
    is_left = any(not _follows(inner, way, file) for way in ways)
    is_raised = not is_left and on is not None and function is not None and _is_caught(function, file, program)
    if not (is_left or is_raised) or not covered or _is_no_block(covered, inner, names):
        return
    spelled = spell(names, "torch.no_grad")
    if spelled.partition(".")[0] not in names.imports:
        return
    spare = [one for one in inner if _is_spare(one, file)]
    gone = [one for one in (*spare, on) if isinstance(one, ast.stmt)]
    leaves = f"line {_first_line(ways, inner, file)}" if is_left else "an exception that a caller catches"
    edits: list[Edit] = [edit_of(file, off, f"with {spelled}():"), *indented(file, covered, spare)]
    restored = _restored(later[later.index(on) + 1 :] if on in later else (), ways, file)
    yield Proposal(
        edits=(*edits, *restored, *(remove_statement(file, one) for one in gone)),
        culprit=culprit_of(file, off, f"switches grad mode off, and {leaves} leaves it off"),
        belief=2.2,
    )


def _restored(behind: Sequence[ast.stmt], ways: Sequence[ast.stmt], file: SourceFile) -> Iterator[Edit]:
    """`model.train()` on the ways out that return past it, where it follows the switch: who evaluates puts both back."""
    for one in behind:
        call = one.value if isinstance(one, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "train":
            return
        for way in ways:
            if isinstance(way, ast.Return) and not _is_called_before(way, call, file):
                start, indent = file.span(way)[0], file.indent(way.lineno)  # which the block moves in by a step
                step = "\t" if "\t" in indent else "    "
                yield Edit(
                    file=file.path, start=start, end=start, new=f"{file.segment(one)}{file.newline}{indent}{step}"
                )


def _is_called_before(way: ast.stmt, call: ast.Call, file: SourceFile) -> bool:
    block = list(block_of(way, file))
    return any(ast.dump(node) == ast.dump(call) for one in block[: block.index(way)] for node in walk(one))


def _is_caught(function: Function, file: SourceFile, program: Program) -> bool:
    """Whether a caller goes on behind what the function raises: its call stands in the body of a `try`."""
    return any(
        isinstance(above, ast.Try) and above.handlers and any(node is call for one in above.body for node in walk(one))
        for where, call in resolver_of(program).calls_of(function, file)
        for above in where.around(call)
    )


def _restores(node: ast.AST, names: Names) -> bool:
    """`torch.set_grad_enabled(True)`, or of a value that was kept: `set_grad_enabled(was_enabled)`."""
    if _switch(node, names) is True:
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    is_switch = isinstance(call, ast.Call) and (names.qualified(call.func) or "").endswith(".set_grad_enabled")
    return is_switch and isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Name)


def _within(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement, those of functions and classes in it left out."""
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, _SCOPES):
            queue.extend(children(node))


def _ways_out(statement: ast.stmt, *, is_in_loop: bool = False) -> Iterator[ast.stmt]:
    """The statements in one that end more than it: returns, raises, and those of a loop around it."""
    ends = (ast.Return, ast.Raise) if is_in_loop else (ast.Return, ast.Raise, ast.Break, ast.Continue)
    if isinstance(statement, ends):
        yield statement
    elif not isinstance(statement, _SCOPES):
        is_loop = isinstance(statement, (ast.For, ast.AsyncFor, ast.While))
        for name in ("body", "orelse", "finalbody"):
            for one in getattr(statement, name, ()):
                yield from _ways_out(one, is_in_loop=is_in_loop or (is_loop and name == "body"))
        for handler in getattr(statement, "handlers", ()):
            for one in handler.body:
                yield from _ways_out(one, is_in_loop=is_in_loop)


def _follows(inner: Sequence[ast.AST], way: ast.stmt, file: SourceFile) -> bool:
    """Whether grad mode is switched on before a way out, in its own block or, with `finally`, around it."""
    block = list(block_of(way, file))
    if any(one in inner for one in block[: block.index(way)]):
        return True
    above = file.parents.get(way)
    while above is not None and not isinstance(above, _SCOPES):
        if isinstance(above, ast.Try) and any(one in inner for one in above.finalbody):
            return True
        above = file.parents.get(above)
    return False


def _first_line(ways: list[ast.stmt], inner: Sequence[ast.AST], file: SourceFile) -> int:
    return min(way.lineno for way in ways if not _follows(inner, way, file))


def _is_no_block(covered: list[ast.stmt], inner: Sequence[ast.AST], names: Names) -> bool:
    """Whether the lines cannot be one block without grad: they suspend, differentiate, or switch in the middle of work."""
    for each in covered:
        for node in _within(each):
            if isinstance(node, _SUSPENDS) or (isinstance(node, ast.Expr) and _switch(node, names) is False):
                return True
            if isinstance(node, ast.Attribute) and node.attr in _DIFFERENTIATES and isinstance(node.ctx, ast.Load):
                return True
    return any(not _ends_way(one, names.file) for one in inner)


def _ends_way(switch: ast.AST, file: SourceFile) -> bool:
    """Whether nothing is computed between a switch on and the end of its way: only what carries no graph follows."""
    block = list(block_of(switch, file))  # type: ignore[arg-type]
    rest = block[block.index(switch) + 1 :]  # type: ignore[arg-type]
    return bool(rest) and isinstance(rest[-1], (ast.Return, ast.Raise, ast.Break, ast.Continue))


def _is_spare(switch: ast.AST, file: SourceFile) -> bool:
    """Whether a switch on can go: nothing is called between it and the end of the block, which switches on itself."""
    block = list(block_of(switch, file))  # type: ignore[arg-type]
    rest = block[block.index(switch) + 1 :]  # type: ignore[arg-type]
    return not any(isinstance(node, ast.Call) for one in rest for node in walk(one))
