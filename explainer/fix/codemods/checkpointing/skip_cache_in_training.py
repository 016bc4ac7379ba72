"""A module fills its cache for decoding alone: `if self.kv_cache is not None and not self.training:`.

Told where a trace saw the write, in what stands under a condition that asks for the cache. What the block would have bound
has its value from before it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.trace import CARRIED, WRITE
from explainer.source.file import SourceFile
from explainer.source.name import bound_names
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, parameters_of, scope_of
from explainer.source.value.flow import flow_of

_CACHE = re.compile(r"cache|past_?key|(?<![a-z])kv(?![a-z])", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each condition under which a traced write fills a cache."""
    if not context.has_failed:
        return
    program = context.program
    writes = [
        (line.says, file, statement)
        for kind in (WRITE, CARRIED)
        for line, file, statement in traced_statements(kind, context, guesses=True)
    ]
    written: set[ast.AST] = {statement for _, _, statement in writes} | {scope_of(one, file) for _, file, one in writes}
    for file in program.parsed() if writes else ():
        for node in file.walk():
            if not isinstance(node, ast.If) or node.orelse or not _asks_for_cache(node.test):
                continue
            owner = program.names(file).class_of(node)
            if owner is None or not inherits_module(owner, file, program) or not _is_optional(node, file):
                continue
            if any(_runs(one, file, written, program) for part in node.body for one in walk(part)):
                test = file.segment(node.test)
                test = f"({test})" if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or) else test
                says, where, guilty = writes[0]
                yield Proposal(
                    edits=(edit_of(file, node.test, f"{test} and not self.training"),),
                    culprit=culprit_of(where, guilty, says),
                    belief=2.0,
                )


def _asks_for_cache(test: ast.expr) -> bool:
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in walk(test)}
    return any(map(_CACHE.search, names)) and "training" not in names


def _is_optional(block: ast.If, file: SourceFile) -> bool:
    """Whether all names that a block binds are bound before it: the function goes on without the block."""
    scope = scope_of(block, file)
    before = {one.name for one in bounds_of(scope) if getattr(one.statement, "lineno", 0) < block.lineno}
    before |= set(parameters_of(scope)) if isinstance(scope, ast.FunctionDef) else set()
    bound = {name for one in block.body if isinstance(one, ast.Assign) for name in bound_names(one)}
    is_plain = all(isinstance(one, (ast.Assign, ast.AugAssign, ast.Expr)) for one in block.body)
    return is_plain and all(name in before or name.startswith("self.") for name in bound)


def _runs(node: ast.AST, file: SourceFile, written: set[ast.AST], program: Program) -> bool:
    """Whether a node is a traced write, or a call of the function that holds one."""
    target = flow_of(program).target_of(node, file) if isinstance(node, ast.Call) else None
    return node in written or (target is not None and target[1] in written)
