"""`part.view(shape)` for `nn.Parameter(part.view(shape))` of what a network computes, where a trace saw the network starve behind it.

A parameter is a new leaf: gradients end there, and one that is made in each step is trained by no optimizer. Not where a module or
an optimizer takes it, which refuse anything else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.graph.uncut import unwrapped
from explainer.model.patch import Edit
from explainer.model.trace import STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.graph.cut import is_leaf
from explainer.source.network.anew import PARAMETER
from explainer.source.program import Program
from explainer.source.tree import children

_MADE = "Parameter"
_TAKES_PARAMETERS = frozenset(("ParameterList", "ParameterDict", "register_parameter", "setattr", "add_param_group"))


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all traced lines that make parameters of computed weights: none of them is right without the others."""
    found = [each for each in traced_statements(STARVING_CUT, context) if each[0].operation == _MADE]
    edits: dict[Edit, None] = {}
    for _, file, statement in found:
        own = _dropped(statement, file, context.program)
        if not own:
            return
        edits.update(dict.fromkeys(own))
    for line, file, statement in found[:1]:
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, statement, line.says), belief=2.0)


def _dropped(statement: ast.stmt, file: SourceFile, program: Program) -> list[Edit]:
    """The edits that take each `Parameter(...)` of a statement away; none where one of them has to be a parameter."""
    if any(isinstance(one, (ast.Attribute, ast.Subscript)) and not _is_item(one) for one in _targets(statement)):
        return []
    edits: list[Edit] = []
    for call in _calls(statement, file, program):
        own = unwrapped(call, file) if is_leaf(call, file, program) and not _is_taken(call, file) else None
        if own is None:
            return []
        edits += own
    return edits


def _targets(statement: ast.stmt) -> list[ast.expr]:
    return (
        statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", ast.Constant(None))]
    )


def _is_item(target: ast.expr) -> bool:
    """Whether a target is an item of a plain name, as of a dictionary of weights: a module's own tables hold parameters alone."""
    return isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name)


def _calls(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.Call]:
    names = program.names(file)
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.Call) and names.qualified(node.func) in PARAMETER:
            yield node
        queue.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _is_taken(node: ast.AST, file: SourceFile) -> bool:
    """Whether a call above takes parameters: to register them, or to step them."""
    above = file.parents.get(node)
    while above is not None and not isinstance(above, ast.stmt):
        called = above.func if isinstance(above, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name in _TAKES_PARAMETERS:
            return True
        above = file.parents.get(above)
    return False
