"""An inference tensor that a library handed out is cloned where training uses it: `probe(codes.clone())`.

Where the program itself switches inference mode on, `no_grad` in its place is the better cure. Which name holds such a tensor
only the live program can say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import raised_at
from explainer.fix.rewrite import put_method
from explainer.fix.seen import seen_tensors
from explainer.source.binding import Value
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.origin import origins
from explainer.source.resolve import resolver_of
from explainer.source.tree import walk

_READ = (ast.Name, ast.Attribute, ast.Subscript)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each statement that raised and reads inference tensors."""
    wanted = {text for text, one in seen_tensors(context).items() if one.is_inference}
    for file, statement in raised_at(context) if wanted else ():
        compound = isinstance(statement, (ast.For, ast.While, ast.With, ast.If, ast.FunctionDef))
        read = (
            [] if compound else [node for node in walk(statement) if isinstance(node, _READ) and _is_read(node, wanted)]
        )
        if read:
            kept = _kept(Value(read[0], file), context)
            yield Proposal(
                edits=tuple(put_method(file, node, ".clone()") for node in read),
                culprit=culprit_of(
                    *kept, f"makes `{ast.unparse(read[0])}` once, in inference mode, and keeps it for training"
                )
                if kept is not None
                else culprit_of(file, read[0], f"trains on `{ast.unparse(read[0])}`, which was made in inference mode"),
                belief=0.0,
                is_origin=kept is not None,
            )


def _kept(value: Value, context: Context) -> tuple[SourceFile, ast.stmt] | None:
    """The one statement that makes what a method keeps in its object when it is asked for it first."""
    resolver = resolver_of(context.program)
    found: dict[ast.stmt, SourceFile] = {}
    for one in (value, *origins(value, context.program)):
        node = one.node.value if isinstance(one.node, ast.Subscript) else one.node
        name = dotted_name(node) or ""
        for made in resolver.behind(replace(one, node=node)) if name.startswith("self.") else ():
            function = context.program.names(made.file).function_of(made.node)
            is_empty = isinstance(made.node, ast.Constant)
            if not is_empty and (function is None or function.name == "__init__"):
                return None
            if not is_empty:
                found[made.file.statement(made.node)] = made.file
    statements = list(found.items())
    return (statements[0][1], statements[0][0]) if len(statements) == 1 else None


def _is_read(node: ast.Name | ast.Attribute | ast.Subscript, wanted: set[str]) -> bool:
    return isinstance(node.ctx, ast.Load) and ast.unparse(node) in wanted
