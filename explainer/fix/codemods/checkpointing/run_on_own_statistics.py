"""A pass in eval mode gets its own copy of the running statistics, which a pass in training mode moves before the backward.

`clean = net(x)` becomes `clean = torch.func.functional_call(net, {name: one.clone() for name, one in net.named_buffers()}, (x,))`:
the same values, and a gradient that is that of those values. Only the call that a trace saw is rewritten.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.model.trace import HIDDEN_WRITE, READ
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all traced calls of networks whose running statistics move afterwards."""
    if not any(one.kind == HIDDEN_WRITE and one.operation == "batch_norm" for one in context.incident.traced):
        return
    found: dict[ast.Call, SourceFile] = {}
    for line, file, statement in traced_statements(READ, context):
        calls = list(_calls_of_networks(statement, file, context.program)) if line.operation == "batch_norm" else []
        if len(calls) == 1:
            found[calls[0]] = file
    edits = tuple(
        edit_of(file, call, _on_copies(call, file, spell(context.program.names(file), "torch.func.functional_call")))
        for call, file in found.items()
    )
    for call, file in list(found.items())[:1]:
        why = "runs on running statistics that a pass in training mode moves before the backward"
        yield Proposal(edits=edits, culprit=culprit_of(file, call, why), belief=1.0)


def _calls_of_networks(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.Call]:
    """The calls of objects in a statement: no function of the program, of torch or of Python is one, nor is a method."""
    names = program.names(file)
    for node in walk(statement):
        if not isinstance(node, ast.Call) or any(isinstance(one, ast.Starred) for one in node.args):
            continue
        name = dotted_name(node.func)
        called = names.qualified(node.func) or ""
        root = called.partition(".")[0]
        if name is None or name == "self" or root in set(names.imports.values()) | {"torch"} or hasattr(builtins, name):
            continue
        function = resolver_of(program).function_of(node, Value(node.func, file))
        is_object = isinstance(node.func, ast.Name) or name.startswith("self.")
        if is_object and (function is None or function[1].name in ("forward", "__call__")):
            yield node


def _on_copies(call: ast.Call, file: SourceFile, spelled: str) -> str:
    net = file.segment(call.func)
    given = ", ".join(file.segment(one) for one in call.args)
    buffers = f"{{name: one.clone() for name, one in {net}.named_buffers()}}"
    text = f"{spelled}({net}, {buffers}, ({given}{',' if len(call.args) == 1 else ''})"
    named = [
        f'"{one.arg}": {file.segment(one.value)}' if one.arg else f"**{file.segment(one.value)}"
        for one in call.keywords
    ]
    return f"{text}, {{{', '.join(named)}}})" if named else f"{text})"
