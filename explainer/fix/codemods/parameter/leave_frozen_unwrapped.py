"""A frozen network beside one that trains is not wrapped: `DDP(m)` becomes `DDP(m) if any(p.requires_grad for p in m.parameters()) else m`.

Where the program reads `m.module` of what the wrapper gave, the wrapper goes, and the `.module` with it.
Only where the program wraps more than one: a single network that cannot train is frozen by mistake.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.rewrite import replace_whole
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.resolve import resolver_of

_WRAPPERS = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")
_PROPERTY = "its weights are the same on every rank, as nothing changes them"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the wrapper that raised, where another network is wrapped too."""
    if not context.has_failed:
        return
    for file, statement in crash_places(context):
        for node in walk(statement):
            if not isinstance(node, ast.Call) or not context.program.names(file).is_call(node, *_WRAPPERS):
                continue
            name = dotted_name(node.args[0]) if node.args else None
            if name is None or not _are_several(node, file, context.program):
                return
            inside = _reads_inside(node, file)
            if inside:
                yield Proposal(
                    edits=(_bare(node, file), *(edit_of(file, one, file.segment(one.value)) for one in inside)),
                    culprit=culprit_of(file, node, f"wraps `{name}`, of which nothing trains"),
                    belief=2.5,
                    because=_PROPERTY,
                )
                return
            text = f"{file.segment(node)} if any(p.requires_grad for p in {name}.parameters()) else {name}"
            above = file.parents.get(node)
            is_whole = isinstance(above, (ast.Assign, ast.Return)) and above.value is node
            yield Proposal(
                edits=(replace_whole(file, node, text if is_whole else f"({text})"),),
                culprit=culprit_of(file, node, f"wraps `{name}` also where nothing of it trains"),
                belief=2.5,
                because=_PROPERTY,
            )
            return


def _reads_inside(call: ast.Call, file: SourceFile) -> list[ast.Attribute]:
    """`teacher.module`, where what the wrapper gave has a name of its function: of the bare network there is no such part."""
    statement, scope = file.statement(call), scope_of(call, file)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
    name = dotted_name(target) if target is not None else None
    reads = [one for one in walk(scope) if isinstance(one, ast.Attribute) and one.attr == "module"]
    return [one for one in reads if name is not None and dotted_name(one.value) == name]


def _bare(call: ast.Call, file: SourceFile) -> Edit:
    statement, inner = file.statement(call), file.segment(call.args[0])
    is_same = isinstance(statement, ast.Assign) and file.segment(statement.targets[0]) == inner
    return remove_statement(file, statement) if is_same else edit_of(file, call, inner)


def _are_several(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether other networks are wrapped: in calls of their own, or by a helper that is called again."""
    wrapped = [
        node
        for each in program.parsed()
        for node in each.walk()
        if isinstance(node, ast.Call) and program.names(each).is_call(node, *_WRAPPERS)
    ]
    function = program.names(file).function_of(call)
    is_given = function is not None and dotted_name(call.args[0]) in [one.arg for one in function.args.args]
    calls = resolver_of(program).calls_of(function, file) if function is not None and is_given else ()
    return len(wrapped) > 1 or len(calls) > 1
