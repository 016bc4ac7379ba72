"""Where in the program a backward failed: the expressions that it was asked of, and the statements that the frames name."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context
from explainer.model.incident import Frame
from explainer.source.file import SourceFile
from explainer.source.graph.cut import Cut
from explainer.source.name import Names
from explainer.source.place import place_of
from explainer.source.program import Program
from explainer.source.tree import children
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.provenance import provenance_of

_GRADS = ("torch.autograd.grad", "torch.autograd.backward")
_TAKES_LOSS = frozenset({"backward", "manual_backward"})
_STEPS = frozenset({"compute_loss", "training_step"})


def failing_statements(context: Context) -> list[tuple[SourceFile, ast.stmt]]:
    """The statements that the user's frames name, the innermost frame first."""
    return statements_at(context.frames, context)


def statements_at(frames: Sequence[Frame], context: Context) -> list[tuple[SourceFile, ast.stmt]]:
    """The statements that frames of the program name, the innermost frame first."""
    found: list[tuple[SourceFile, ast.stmt]] = []
    for frame in reversed(frames):
        path = place_of(frame.file, context.program.root)
        statement = context.program.at(path, frame.line, frame.mark) if path and frame.line else None
        if path and statement is not None:
            found.append((context.program.files[path], statement))
    return found


def backward_roots(context: Context) -> list[Value]:
    """What the failing backward was asked of; where the frames name none, what every backward of the program is asked of."""
    for file, statement in failing_statements(context):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            continue
        found = [Value(one, file) for one in _asked(_shallow(statement), context.program.names(file))]
        if found:
            return found
    steps = [
        Value(node.value, file)
        for file, function in context.program.functions()
        if function.name in _STEPS
        for node in walk_scope(function)
        if isinstance(node, ast.Return) and node.value is not None
    ]
    if steps:
        return steps
    return asked_values(context.program)


def dead_ends(context: Context) -> Iterator[tuple[Value, Cut]]:
    """Each failing loss that no parameter reaches, with the cuts that end its graph, one of each way to them."""
    for root in backward_roots(context):
        trace = provenance_of(context.program).trace(root)
        for chain in trace.chains if not trace.live else ():
            yield root, chain[0]


def _shallow(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in it."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop(0)
        yield node
        todo.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _asked(nodes: Iterator[ast.AST], names: Names) -> Iterator[ast.expr]:
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = names.qualified(node.func) or ""
        if called in _GRADS and node.args:
            yield node.args[0]
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _TAKES_LOSS:
            owner = node.func.value
            is_driver = node.func.attr == "manual_backward" or (node.args and not _is_gradient(node))
            yield node.args[0] if is_driver and node.args else owner


def _is_gradient(node: ast.Call) -> bool:
    """Whether the argument of `x.backward(g)` is a gradient rather than the loss of `accelerator.backward(loss)`."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", "")
    return not any(word in name.lower() for word in ("accelerator", "fabric", "engine", "amp", "scaler", "trainer"))


def is_in_frames(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether a frame of the failure stands in the statement of a node."""
    statement = file.statement(node)
    return any(where is file and one is statement for where, one in failing_statements(context))


def asked_values(program: Program) -> list[Value]:
    """Everything that a backward of the program is asked of."""
    return [Value(one, file) for file in program.parsed() for one in _asked(file.walk(), program.names(file))]


def is_written_once(context: Context) -> bool:
    """Whether the message counts one write between the forward and its backward: nothing was put in and taken back."""
    return str(context.fields.get("gap")) == "1"
