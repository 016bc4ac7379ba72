"""Iterators of parameters, which one pass uses up, as a program writes them and as lists."""

from __future__ import annotations

import ast

from explainer.source.file import SourceFile


def listed(node: ast.expr, file: SourceFile) -> str:
    """A generator, a filter or a chain as the list of what it gives."""
    if isinstance(node, ast.GeneratorExp):
        text = file.segment(node)
        return f"[{text[1:-1]}]" if text.startswith("(") else f"[{text}]"
    given = node.args if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute) else []
    test, iterated = given if len(given) == 2 else (None, None)
    if isinstance(iterated, ast.expr) and isinstance(test, ast.Lambda) and len(test.args.args) == 1:
        one = test.args.args[0].arg
        return f"[{one} for {one} in {file.segment(iterated)} if {file.segment(test.body)}]"
    return f"list({file.segment(node)})"
