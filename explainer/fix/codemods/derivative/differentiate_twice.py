"""Operations that have no second derivative are written with ones that have: `cdist`, `@once_differentiable`, fused attention."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.graph.resaved import resaved
from explainer.fix.text.import_line import drop_name, import_after
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program

_ONCE = "torch.autograd.function.once_differentiable"
_ATTENTION = "torch.nn.functional.scaled_dot_product_attention"
_SLOWER = "the same values; the plain kernel needs memory for the whole matrix of scores"
_ANEW = "Save the inputs, compute the rest anew in `backward`, and let that be differentiated"
_SAVED = "what the forward computes on the way is a constant to a second derivative: it is computed anew of the inputs"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the operation that the message names."""
    if not context.has_failed:
        return
    message = message_of(context)
    for file in context.program.parsed():
        if "once_differentiable" in message:
            yield from _once(file, context.program)
        elif "cdist" in message:
            yield from _cdist(file, context.program)
        elif "scaled_dot_product" in message or "_flash_attention" in message:
            yield from _attention(file, context.program)


def _once(file: SourceFile, program: Program) -> Iterator[Proposal]:
    names = program.names(file)
    for function in names.functions:
        for one in function.decorator_list:
            if names.qualified(one) == _ONCE:
                start, end = file.line_start(one.lineno), file.line_start(one.lineno + 1)
                forward = _beside(function, "forward", file)
                saved = resaved(forward, function, file) if forward is not None else None
                edits = (Edit(file=file.path, start=start, end=end, new=""), *drop_name(file, one), *(saved or ()))
                yield Proposal(
                    edits=edits if saved is not None else (),
                    culprit=culprit_of(file, one, f"forbids to differentiate `{function.name}` again"),
                    belief=1.5,
                    because=_SAVED if saved else None,
                    title=_ANEW if saved else None,
                )


def _beside(function: Function, name: str, file: SourceFile) -> Function | None:
    """Another method of a method's class."""
    owner = file.enclosing(function, ast.ClassDef)
    body = owner.body if isinstance(owner, ast.ClassDef) else ()
    return next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == name), None)


def _cdist(file: SourceFile, program: Program) -> Iterator[Proposal]:
    for node in file.walk():
        if (
            isinstance(node, ast.Call)
            and program.names(file).qualified(node.func) == "torch.cdist"
            and len(node.args) == 2
            and not node.keywords
        ):
            first, second = (operand(file, one) for one in node.args)
            text = f"({first}[:, None] - {second}).norm(dim=2)"
            why = "has no second derivative: the loss differentiates its gradient"
            yield Proposal(
                edits=(edit_of(file, node, text),), culprit=culprit_of(file, node, why), belief=1.5, applicability="unsafe",
                because="for matrices of two dimensions; needs memory for every difference",
            )  # fmt: skip


def _attention(file: SourceFile, program: Program) -> Iterator[Proposal]:
    """The forward whose gradient is differentiated again, under the plain attention kernel."""
    statements = list(dict.fromkeys(_forwards(file, program)))
    for statement in statements[:1]:
        indent = file.indent(statement.lineno)
        start, end = file.line_start(statement.lineno), file.span(statement)[1]
        body = "\n".join(f"    {line}" if line.strip() else line for line in file.text[start:end].split("\n"))
        edits = [
            Edit(
                file=file.path,
                start=start,
                end=end,
                new=f"{indent}with sdpa_kernel(SDPBackend.MATH):{file.newline}{body}",
            )
        ]
        edits += import_after(file, "from torch.nn.attention import SDPBackend, sdpa_kernel")
        why = "runs a fused attention kernel, whose gradient has no derivative"
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, statement, why), belief=1.5, because=_SLOWER)


def _forwards(file: SourceFile, program: Program) -> Iterator[ast.stmt]:
    """The call of a transform of `torch.func` that differentiates forward; `attention_by_math` knows `autograd.grad`."""
    names = program.names(file)
    for node in file.walk():
        called = names.qualified(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or _is_plain(node, file, program):
            continue
        if called in ("torch.func.jvp", "torch.func.hessian", "torch.func.jacfwd"):
            yield file.statement(node)


def _is_plain(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a node stands in a block that has chosen the kernel already."""
    above = file.enclosing(node, ast.With)
    while isinstance(above, ast.With):
        calls = [item.context_expr for item in above.items]
        if any(
            isinstance(one, ast.Call) and (program.names(file).qualified(one.func) or "").endswith("sdpa_kernel")
            for one in calls
        ):
            return True
        above = file.enclosing(above, ast.With)
    return False
