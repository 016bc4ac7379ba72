"""What a program runs in evaluation mode only: the branches that ask a module's `training`, and functions used there alone."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile

_DEPTH = 3


def is_eval_only(node: ast.AST, file: SourceFile, depth: int = _DEPTH) -> bool:
    """Whether a node stands in a branch that runs with `training` False, or in a function that is only used in one."""
    child, above = node, file.parents.get(node)
    while above is not None:
        if isinstance(above, (ast.If, ast.IfExp)) and _is_asleep(child, above):
            return True
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)) and depth:
            named = [*file.plain_names.get(above.name, ()), *file.attributes.get(above.name, ())]
            uses = [one for one in named if isinstance(one.ctx, ast.Load)]
            if uses and all(is_eval_only(one, file, depth - 1) for one in uses):
                return True
        child, above = above, file.parents.get(above)
    return False


def _is_asleep(child: ast.AST, branch: ast.If | ast.IfExp) -> bool:
    """Whether a child of a branch runs where its module is not in training."""
    body = branch.body if isinstance(branch.body, list) else [branch.body]
    other = branch.orelse if isinstance(branch.orelse, list) else [branch.orelse]
    test, is_negated = branch.test, False
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, is_negated = test.operand, True
    if not isinstance(test, ast.Attribute) or test.attr != "training":
        return False
    return any(one is child for one in (body if is_negated else other))
