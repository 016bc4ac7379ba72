"""Runs a forward whose gradient is differentiated again with attention's math backend, which alone has a second derivative.

    with sdpa_kernel(SDPBackend.MATH):
        slope = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]

The backend is chosen in the forward: the statement that runs it is wrapped, and no other forward of the program changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_of_attention
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.import_line import imported
from explainer.fix.text.rewrite import in_block
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asked_of_grad, asks_for
from explainer.source.graph.given_weights import FUNCTIONAL_CALLS
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, calls_behind, parameters_of, reaching
from explainer.source.value.resolve import resolver_of

_MODULE = "torch.nn.attention"
_DEPTH = 4
_ATTENTION = (
    "torch.nn.functional.scaled_dot_product_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.TransformerEncoderLayer",
    "torch.nn.TransformerDecoderLayer",
    "torch.nn.Transformer",
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each forward of which a gradient with a graph of its own is taken."""
    if not is_of_attention(context):
        return
    for file in context.program.parsed():
        for node in file.walk():
            asked = _asked(node, file, context)
            for output, wanted, where in _where_made(*asked, file, context) if asked is not None else ():
                statements = list(_forwards(output, wanted, where, context))
                if statements and not _is_chosen(statements[0], where):
                    yield _wrapped(statements[0], where, context)


def _where_made(
    output: ast.expr, wanted: str | None, file: SourceFile, context: Context
) -> Iterator[tuple[ast.expr, str | None, SourceFile]]:
    """What is differentiated, by what, and where that is written: at each caller of a function that is given it."""
    function = file.enclosing(output, ast.FunctionDef, ast.AsyncFunctionDef)
    named = {one.id for one in walk(output) if isinstance(one, ast.Name)}
    given = named & set(parameters_of(function)) if isinstance(function, ast.FunctionDef) else set()
    given = {one for one in given if not reaching(one, output, file)}
    if len(given) != 1 or not isinstance(function, ast.FunctionDef) or list(_forwards(output, wanted, file, context)):
        yield output, wanted, file
        return
    (name,) = given
    for where, call in resolver_of(context.program).calls_of(function, file):
        bound = bind_call(call, function, Value(call, where))
        if name in bound and isinstance(bound[name].node, ast.expr):
            by = bound.get(wanted or "")
            yield bound[name].node, dotted_name(by.node) if by is not None else None, where


def _asked(node: ast.AST, file: SourceFile, context: Context) -> tuple[ast.expr, str | None] | None:
    """What is differentiated with `create_graph=True`, and by what where that has a name."""
    if not isinstance(node, ast.Call) or not asks_for(node, "create_graph", value=True):
        return None
    if context.program.names(file).is_call(node, "torch.autograd.grad"):
        pair = asked_of_grad(node)
        return (pair[0], dotted_name(pair[1])) if pair is not None else None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
        return node.func.value, None
    return None


def _forwards(output: ast.expr, wanted: str | None, file: SourceFile, context: Context) -> Iterator[ast.stmt]:
    """The plain statements that run a module for an output: on the tensor by which it is differentiated, where that is known."""
    for call in calls_behind(output, file):
        given = [*call.args, *(one.value for one in call.keywords)]
        takes = wanted is not None and any(dotted_name(one) == wanted for one in given)
        statement = file.statement(call)
        is_plain = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return))
        if is_plain and statement is not None and (takes or is_module(_run_by(call, file, context), context.program)):
            yield statement


def _run_by(call: ast.Call, file: SourceFile, context: Context) -> Value:
    """What a call runs: `net` of `net(x)`, and of `functional_call(net, weights, (x,))`."""
    is_functional = context.program.names(file).is_call(call, *FUNCTIONAL_CALLS) and bool(call.args)
    return Value(call.args[0] if is_functional else call.func, file)


def _is_chosen(statement: ast.stmt, file: SourceFile) -> bool:
    """Whether the program chooses the backend there by itself."""
    above = file.enclosing(statement, ast.With)
    return isinstance(above, ast.With) and any("sdp" in file.segment(one.context_expr) for one in above.items)


def _attention(statement: ast.stmt, file: SourceFile, context: Context) -> tuple[SourceFile, ast.expr] | None:
    """Where the module that a statement runs attends, or a part of it, if one place does."""
    resolver, names = resolver_of(context.program), context.program.names
    run = [_run_by(one, file, context) for one in walk(statement) if isinstance(one, ast.Call)]
    owners = {owner: where for value in run for where, owner in resolver.classes_of(value)}
    for owner, where in owners.copy().items():
        owners |= _parts(owner, where, context, 0)
    found = [
        (where, one)
        for owner, where in owners.items()
        for one in walk(owner)
        if isinstance(one, ast.Call) and names(where).is_call(one, *_ATTENTION)
    ]
    return found[0] if len(found) == 1 else None


def _parts(owner: ast.ClassDef, file: SourceFile, context: Context, depth: int) -> dict[ast.ClassDef, SourceFile]:
    """The program's classes of which a class makes its parts, and these theirs."""
    found: dict[ast.ClassDef, SourceFile] = {}
    for one in walk(owner):
        made = resolver_of(context.program).find_class(one.func, file) if isinstance(one, ast.Call) else None
        if made is not None and made[1] is not owner and depth < _DEPTH:
            found |= {made[1]: made[0], **_parts(made[1], made[0], context, depth + 1)}
    return found


def _wrapped(statement: ast.stmt, file: SourceFile, context: Context) -> Proposal:
    backend, first = imported(file, _MODULE, "SDPBackend")
    kernel, second = imported(file, _MODULE, "sdpa_kernel")
    edits: tuple[Edit, ...] = (*first, *second)
    if len(edits) == 2 and edits[0].start == edits[0].end == edits[1].start:
        edits = (Edit(file=file.path, start=edits[0].start, end=edits[0].end,
                      new=f"from {_MODULE} import SDPBackend, sdpa_kernel{file.newline}"),)  # fmt: skip
    block = in_block(file, [statement], f"with {kernel}({backend}.MATH):")
    where, node = _attention(statement, file, context) or (file, statement)
    return Proposal(
        edits=(*edits, *block) if block else (),
        culprit=culprit_of(
            where, node, "attends in what is differentiated twice, and the fused kernels have one derivative"
        ),
        belief=1.8,
    )
