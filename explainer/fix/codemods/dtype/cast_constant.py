"""`x @ BANDS.to(x.dtype)`: a constant that was made at import, or when its module was built, follows the tensor that it meets.

A default dtype that is set later, a module in another precision, or NumPy's float64 leave it behind. Its values are no
parameters: the cast changes none beyond the precision in which the rest of the operation is computed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, scope_of
from explainer.source.value.constant_tensor import makes_constant
from explainer.source.value.resolve import resolver_of

_SAYS = ("dtype", "scalar type", "Float", "Double", "float32", "float64")
_INTEGERS = re.compile(r"(?i)\b(u?int(8|16|32|64)?|long|byte|char|short|bool)(tensor)?\b")
# Operations that do not promote: both operands are of one dtype.
_PAIRS = ("torch.matmul", "torch.mm", "torch.bmm", "torch.mv", "torch.dot", "torch.outer", "torch.einsum", "torch.baddbmm",
          "torch.nn.functional.linear", "torch.nn.functional.conv1d", "torch.nn.functional.conv2d", "torch.nn.functional.conv3d",
          "torch.nn.functional.bilinear", "torch.tensordot", "torch.kron", "torch.linalg.solve", "torch.lerp")  # fmt: skip
_METHODS = frozenset({"matmul", "mm", "bmm", "mv", "dot", "outer", "lerp", "lerp_", "baddbmm"})
_NO_CONSTANT = frozenset({"Parameter", "requires_grad", "requires_grad_", "register_buffer"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one constant of an operation of two dtypes."""
    last = context.incident.exceptions[-1].message if context.incident.exceptions else ""
    if not any(word in last for word in _SAYS):
        return
    has_integers = _INTEGERS.search(last) is not None
    for file, statement in list(raised_at(context))[:1]:
        for operands in _operations(statement, file, context.program):
            made = [(one, _made(one, file, context.program)) for one in operands]
            constants = [(one, how) for one, how in made if how is not None]
            others = [one for one, how in made if how is None and dotted_name(one) is not None]
            if len(constants) != 1 or not others:
                continue
            (constant, _), other = constants[0], others[0]
            known = seen(other, context)
            if has_integers and (known is None or known.is_integer):
                continue  # a constant that is cast to whole numbers is another one
            dtype = f"{file.segment(_bare(other))}.dtype"
            yield Proposal(
                edits=(put_method(file, constant, f".to({dtype})"),),
                culprit=culprit_of(file, constant, f"was made before `{file.segment(other)}` and its dtype were known"),
                belief=1.8,
            )


def _operations(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[list[ast.expr]]:
    """The operands of each operation of a statement that takes one dtype."""
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield [node.left, node.right]
        elif isinstance(node, ast.Call) and program.names(file).is_call(node, *_PAIRS):
            yield [one for one in node.args if not isinstance(one, (ast.Constant, ast.Starred))]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield [node.func.value, *node.args]


def _bare(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Attribute) and node.attr in ("T", "mT") else node


def _made(node: ast.expr, file: SourceFile, program: Program) -> SourceFile | None:
    """Where a constant is made, of a module or in `__init__`; None for what is none."""
    bare = _bare(node)
    scope = scope_of(bare, file)
    is_given = not isinstance(scope, ast.Module) and (dotted_name(bare) or "") in all_parameters(scope)
    if dotted_name(bare) is None or is_given:
        return None
    behind = list(resolver_of(program).behind(Value(bare, file)))
    if not behind or any(not _is_constant(one, program) for one in behind):
        return None
    return behind[0].file


def _is_constant(value: Value, program: Program) -> bool:
    scope = scope_of(value.node, value.file)
    is_early = isinstance(scope, (ast.Module, ast.ClassDef)) or getattr(scope, "name", "") in ("__init__", "setup")
    words = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in walk(value.node)}
    makes = any(isinstance(one, ast.Call) and makes_constant(one, value.file, program) for one in walk(value.node))
    return is_early and makes and not words & _NO_CONSTANT and not any(
        isinstance(one, ast.keyword) and one.arg == "requires_grad" for one in walk(value.node)
    )  # fmt: skip
