"""A network that was frozen for another's update is thawed for its own: `set_requires_grad(critic, True)` before its forward.

Told where the optimizer whose turn it is has made steps and is frozen as a whole by now, and where nothing switches the network on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before
from explainer.source.file import SourceFile
from explainer.source.loop.ownership import owned_by
from explainer.source.name import dotted_name
from explainer.source.network.freeze import switches_in
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_FACT = "live_frozen_optimizer"


def propose(context: Context) -> Iterator[Proposal]:
    """The switch before the first statement of the failing block that runs the network."""
    if not context.has_failed or not any(one.name == _FACT for one in context.incident.facts):
        return
    switches = list(_switches(context))
    for file, statement in failing_statements(context):
        block = block_of(statement, file)
        due = _due(statement, block, file, context)
        for where, switch, name in switches:
            made = _made(name, switch, where, context)
            runs = ((one, _run(one, file, name, made, context)) for one in block if one.lineno <= statement.lineno)
            first, ran = next((one for one in runs if one[1] is not None), (statement, None))
            if ran is not None and ran in (due or {ran}):
                text = _thawed(switch, where, name, ran) if where is file else f"{ran}.requires_grad_(True)"
                yield Proposal(
                    edits=(insert_before(file, first, text),),
                    culprit=culprit_of(where, switch, f"freezes `{name}`, and nothing thaws it for its own update"),
                    belief=2.0,
                    is_origin=True,
                )


def _due(statement: ast.stmt, block: Sequence[ast.stmt], file: SourceFile, context: Context) -> frozenset[str]:
    """The modules of the optimizer that steps next behind a backward; none where that is not known."""
    behind = block[block.index(statement) :] if statement in block else []
    for call in (node for one in behind for node in walk(one) if isinstance(node, ast.Call)):
        name = dotted_name(call.func) or ""
        if name.endswith(".step") and (owned := owned_by(name.removesuffix(".step"), call, file, context.program)):
            return owned
    return frozenset()


def _switches(context: Context) -> Iterator[tuple[SourceFile, ast.stmt, str]]:
    """The statements that freeze a module which no statement switches on again, by its name."""
    program = context.program
    scopes = [
        (file, scope) for file in program.parsed() for scope in (file.tree, *program.names(file).functions) if scope
    ]
    found = [(file, *one) for file, scope in scopes for one in switches_in(scope, file, program)]
    thawed = {name.rpartition(".")[2] for _, _, name, is_off in found if not is_off}
    for file, statement, name, is_off in found:
        if is_off and name.rpartition(".")[2] not in thawed and name != "self":
            yield file, statement, name


def _made(name: str, statement: ast.stmt, file: SourceFile, context: Context) -> set[ast.expr]:
    node = next((one for one in walk(statement) if isinstance(one, ast.expr) and dotted_name(one) == name), None)
    made = resolver_of(context.program).constructors_of(Value(node, file)) if node is not None else []
    return {one.node for one in made}


def _run(statement: ast.stmt, file: SourceFile, name: str, made: set[ast.expr], context: Context) -> str | None:
    """The name by which a statement runs a module: its own, or that of a parameter which is the same module."""
    for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
        called = dotted_name(call.func)
        if called is None:
            continue
        if called == name:
            return called
        ran = resolver_of(context.program).constructors_of(Value(call.func, file)) if made else []
        if len(ran) == 1 and {one.node for one in ran} == made and "." not in called.removeprefix("self."):
            return called
    return None


def _thawed(switch: ast.stmt, file: SourceFile, name: str, ran: str) -> str:
    """The switch the other way round, as the program writes it; of a loop, or of several modules, what says the same."""
    off = [one for one in walk(switch) if isinstance(one, ast.Constant) and one.value is False]
    named = [one for one in walk(switch) if isinstance(one, ast.expr) and dotted_name(one) == name]
    is_list = any(isinstance(file.parents.get(one), (ast.List, ast.Tuple)) for one in named)
    if not isinstance(switch, ast.Expr) or len(off) != 1 or len(named) != 1 or is_list:
        return f"{ran}.requires_grad_(True)"
    start, text = file.span(switch)[0], file.segment(switch)
    for node, new in sorted(((off[0], "True"), (named[0], ran)), key=lambda one: -file.span(one[0])[0]):
        begin, end = (at - start for at in file.span(node))
        text = text[:begin] + new + text[end:]
    return text
