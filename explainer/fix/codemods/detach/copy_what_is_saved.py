"""What autograd saves and a later write destroys is saved as a copy: `scores @ self.table.clone()`, `torch.sigmoid(x).clone()`.

The lines are those that a trace saw saving; without one, those that read the buffer of which the live graph says that it moved.
A copy where a value is read changes neither values nor gradients, wherever the write stands: it is what remains to do where
the write itself cannot be put out of place. With the option `traced` only what a trace saw, of floating values, and behind all
other ways: a cache is to be left out of training, and its position is no value to copy.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.model.trace import READ, WRITE, TracedLine
from explainer.source.file import SourceFile
from explainer.source.graph.operation import Operation, is_named, operation_of
from explainer.source.graph.write import find_writes
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import bounds_of
from explainer.source.value.definition import seen_through

# Autograd's names for what an operation read second; all others are what it read first.
_SECOND = frozenset(("other", "mat2", "weight", "exponent", "x2", "vec", "vec2", "batch2", "target", "key"))
_THIRD = frozenset(("value",))  # of attention
_TENSOR = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
_NO_READ = frozenset(
    ("shape", "dtype", "device", "ndim", "data", "grad", "requires_grad", "clone", "detach", "size", "dim", "numel")
)
_ATTENTION = "scaled_dot_product_attention"
_EINSUM = "torch.einsum"
_ATTENTIONS = (f"torch.nn.functional.{_ATTENTION}",)
_BELIEF, _LAST = -0.5, -3.0
_MOST = 6


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all lines that save what is written later."""
    if not context.has_failed or any(one.operation == "batch_norm" for one in context.incident.traced):
        return  # whose statistics are read and moved inside of it
    is_traced = bool(context.options.get("traced"))
    if is_traced and str(context.fields.get("dtype", "")).startswith(("int", "uint", "bool")):
        return
    edits: dict[tuple[str, int], Edit] = {}
    places: list[tuple[SourceFile, ast.AST]] = []
    for line, file, statement in traced_statements(READ, context):
        for node, method in _saved(line, file, statement, context):
            made = _where_made(node, file, context.program)
            if made is None:
                continue
            for one in (made, *(_other_reads(made, file, context.program) if made is node else ())):
                edit = put_method(file, one, method)
                edits[edit.file, edit.start] = edit
            places.append((file, statement))
    if not edits and not is_traced:
        for file, node in _reads_of_buffer(context):
            edit = put_method(file, node, ".clone()")
            edits[edit.file, edit.start] = edit
            places.append((file, node))
    if not edits or len(edits) > _MOST:
        return
    file, guilty, why = next(
        ((where, one, line.says) for line, where, one in traced_statements(WRITE, context)),
        (*places[0], "reads what is written before the backward"),
    )
    yield Proposal(
        edits=tuple(edits[key] for key in sorted(edits)),
        culprit=culprit_of(file, guilty, why),
        belief=_LAST if is_traced else _BELIEF,
    )


def _saved(line: TracedLine, file: SourceFile, statement: ast.stmt, context: Context) -> Iterator[tuple[ast.expr, str]]:
    """The expressions of a line whose value the traced operation saved, each with the method that copies it."""
    program = context.program
    named = [node for node in _expressions(statement) if _ends_with(node, _buffers(context)) and _is_read(node, file)]
    if named:
        yield from ((node, ".clone()") for node in named)
        return
    kept, names = (line.node or "").rstrip("0123456789").removesuffix("Backward"), program.names(file)
    for node in _expressions(statement):
        operation = operation_of(node, file, program)
        if operation is None or not is_named(operation, kept):
            continue
        if line.saves_result:
            if _is_read(node, file):
                yield node, ".clone()"
        elif isinstance(node, ast.Call) and names.is_call(node, _EINSUM):
            yield from ((one, ".clone()") for one in _of_equation(node, context) if _is_read(one, file))
        else:
            yield from ((one, ".clone()") for one in _operand(operation, line.saved or "") if _is_read(one, file))
        return
    for node in _expressions(statement):
        if line.operation == _ATTENTION and isinstance(node, ast.Call) and names.is_call(node, *_ATTENTIONS):
            # Run by plain operations, of which one has saved a view of the keys or of the values.
            yield from ((one, ".clone()") for one in node.args[1:3] if isinstance(one, _TENSOR) and _is_read(one, file))
            return
        if isinstance(node, ast.Call) and _is_module(node, names):
            taken = [*node.args, *(one.value for one in node.keywords)]
            found = [one for one in taken if isinstance(one, _TENSOR) and _is_read(one, file)]
            if found and not line.saves_result:
                yield from ((one, ".clone()") for one in found[:1])
                return


def _where_made(node: ast.expr, file: SourceFile, program: Program) -> ast.expr | None:
    """What a name is bound to, where that is a view which nothing writes through: all who read the name mean what it was then.

    None for a copy.
    """
    scope = program.names(file).function_of(node) or file.tree
    if not isinstance(node, ast.Name) or scope is None:
        return node
    bound = [one for one in bounds_of(scope) if one.name == node.id]
    made = bound[0].node if len(bound) == 1 and bound[0].pick is None and not bound[0].is_element else None
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "clone":
        return None
    is_view = isinstance(made, ast.Subscript) or (isinstance(made, ast.Call) and seen_through(made)[1])
    is_written = any(one.file is file and one.name == node.id for one in find_writes(program))
    reads = [
        one for one in walk(scope) if isinstance(one, ast.Name) and one.id == node.id and isinstance(one.ctx, ast.Load)
    ]
    return made if made is not None and is_view and not is_written and len(reads) > 1 else node


def _other_reads(node: ast.expr, file: SourceFile, program: Program) -> Iterator[ast.expr]:
    """The other operations of a function that may save the same attribute: a backward stops at the first that it comes to."""
    name, function = dotted_name(node), program.names(file).function_of(node)
    if isinstance(node, ast.Attribute) and name is not None and function is not None:
        for one in walk(function):
            is_twin = isinstance(one, ast.Attribute) and one is not node and dotted_name(one) == name
            if is_twin and isinstance(one, ast.expr) and _is_operand(one, file, program):
                yield one


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of a statement, outermost first, not those of the statements in its body."""
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.expr):
            yield node
        queue.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _operand(operation: Operation, saved: str) -> Iterator[ast.expr]:
    position = 1 if saved in _SECOND else 2 if saved in _THIRD else 0
    if position < len(operation.operands) and isinstance(operation.operands[position], _TENSOR):
        yield operation.operands[position]


def _of_equation(call: ast.Call, context: Context) -> list[ast.expr]:
    """Of the tensors of an equation, whose order in the product is torch's own, those of the name that is written; else all."""
    tensors: list[ast.expr] = [one for one in call.args[1:] if isinstance(one, _TENSOR)]
    written = {
        write.name.rpartition(".")[2]
        for _, file, statement in traced_statements(WRITE, context)
        for write in find_writes(context.program)
        if write.file is file and write.name and file.statement(write.node) is statement
    }
    read = [
        one
        for one in tensors
        if {(dotted_name(part) or "").rpartition(".")[2] for part in walk(one)} & (written - {""})
    ]
    return read or tensors


def _is_read(node: ast.AST, file: SourceFile) -> bool:
    """Whether a node is read for its values, and not as a copy already."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "clone":
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    above = file.parents.get(node)
    if isinstance(above, ast.Attribute):
        return above.attr not in _NO_READ and not (above.attr.endswith("_") and not above.attr.startswith("_"))
    return not (isinstance(above, ast.Call) and above.func is node)


def _is_module(node: ast.Call, names: Names) -> bool:
    """A call of the program's own modules, not of a function of a library or a constructor of layers."""
    called = names.qualified(node.func) or dotted_name(node.func) or ""
    last = called.rpartition(".")[2]
    is_known = called.startswith(("torch.", "numpy.")) or hasattr(builtins, called.removeprefix("builtins."))
    return bool(called) and not is_known and not last[:1].isupper()


def _buffers(context: Context) -> frozenset[str]:
    """The last names of the buffers that moved, as the live graph tells them."""
    told = [str(one.value) for one in context.incident.facts if one.name == "live_moved_buffer"]
    return frozenset(one.rpartition(".")[2] for one in told)


def _ends_with(node: ast.AST, names: frozenset[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names and dotted_name(node.value) is not None


def _reads_of_buffer(context: Context) -> Iterator[tuple[SourceFile, ast.expr]]:
    """Where a forward computes with a buffer that moved; else where a method hands out its memory: `return self.bank.detach()`."""
    buffers = _buffers(context)
    if not buffers:
        return
    read, given = [], []
    for file, function in context.program.functions():
        if context.program.names(file).class_of(function) is None or function.name == "__init__":
            continue
        for node in walk(function):
            if _ends_with(node, buffers) and isinstance(node, ast.expr) and _is_operand(node, file, context.program):
                read.append((file, node))
            elif isinstance(node, ast.Return) and node.value is not None:
                value = _memory_of(node.value)
                if isinstance(value, ast.Attribute) and _ends_with(value, buffers):
                    given.append((file, node.value))
    yield from read or given


def _memory_of(value: ast.expr) -> ast.expr:
    """`self.bank` of `self.bank.detach()[:, :n].t()`: a detached tensor has the same memory, and the same count of its writes."""
    while isinstance(value, (ast.Call, ast.Subscript)):
        method = value.func if isinstance(value, ast.Call) else None
        if not seen_through(value)[1] and not (isinstance(method, ast.Attribute) and method.attr == "detach"):
            break
        value = method.value if isinstance(method, ast.Attribute) else value.value  # type: ignore[union-attr]
    return value


def _is_operand(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether autograd may save a value that is read here: as an operand, an argument of torch, or under a method."""
    if not _is_read(node, file):
        return False
    above = file.parents.get(node)
    if isinstance(above, ast.BinOp):
        return isinstance(above.op, (ast.Mult, ast.Div, ast.MatMult, ast.Pow))
    if isinstance(above, ast.Call):
        return (program.names(file).qualified(above.func) or "").startswith("torch.")
    return isinstance(above, ast.Attribute) and isinstance(file.parents.get(above), ast.Call)
