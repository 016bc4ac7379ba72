"""A compiled backward keeps its buffers, where the program goes back through it again: `donated_buffer = False` before compiling.

What a compiled backward saved is otherwise overwritten while it runs; to keep the graph it has to stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after, insert_before
from explainer.fix.text.import_line import import_after
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asks_for
from explainer.source.name import Names
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value

_MODULE = "torch._functorch.config"
_SETTING = f"{_MODULE}.donated_buffer = False"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit before the first statement that compiles something, for a backward that keeps its graph."""
    if not context.has_failed or _asks_for_second_derivative(context):
        return
    keeping = [
        (file, call)
        for file, statement in failing_statements(context)
        for call in walk(statement)
        if isinstance(call, ast.Call) and any(one.arg == "retain_graph" for one in call.keywords)
    ]
    for file in context.program.parsed():
        compiling = [one for one in file.walk() if _compiles(one, file, context.program)]
        if compiling:
            first = min((file.statement(one) for one in compiling), key=lambda one: one.lineno)
            guilty_file, guilty = keeping[0] if keeping else (file, first)
            yield Proposal(
                edits=(*_imported(file), insert_before(file, first, _SETTING)),
                culprit=culprit_of(guilty_file, guilty, "keeps the graph of a backward that was compiled to give its buffers away"),
                belief=1.5,
            )  # fmt: skip
            return


def _imported(file: SourceFile) -> Iterator[Edit]:
    """The import of the module with the setting, behind that of torch itself."""
    line = f"import {_MODULE}"
    body = file.tree.body if file.tree is not None else []
    own = [one for one in body if isinstance(one, ast.Import) and [each.name for each in one.names] == ["torch"]]
    if own and not any(file.segment(one) == line for one in body):
        yield insert_after(file, own[0], line)
    else:
        yield from import_after(file, line)


def _asks_for_second_derivative(context: Context) -> bool:
    calls = [
        one for _, statement in failing_statements(context) for one in walk(statement) if isinstance(one, ast.Call)
    ]
    return any(asks_for(one, "create_graph", value=True) for one in calls)


def _compiles(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """`torch.compile(net)`, `net.compile()` of a module, `@torch.compile`."""
    names = program.names(file)
    if isinstance(node, ast.Call):
        is_method = (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "compile"
            and not names.is_call(node, "re.compile")
        )
        of_module = (
            is_method and isinstance(node.func, ast.Attribute) and is_module(Value(node.func.value, file), program)
        )
        return names.is_call(node, "torch.compile") or of_module
    decorators = node.decorator_list if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else []
    return any(_is_compiler(one, names) for one in decorators)


def _is_compiler(decorator: ast.expr, names: Names) -> bool:
    return names.qualified(decorator) == "torch.compile"
