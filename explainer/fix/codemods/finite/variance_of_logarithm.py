"""`gaussian_nll_loss(mean, target, log_var)` becomes `gaussian_nll_loss(mean, target, log_var.exp())`: it takes a variance.

Where the name says that it is a logarithm, or something else reads the same output as one: `torch.exp(0.5 * spread)`. A floor, an
absolute value or a softplus would run as well, and give that other reader another quantity than the loss has trained.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = "var has negative entry"
_FUNCTION, _MODULE = "torch.nn.functional.gaussian_nll_loss", "torch.nn.GaussianNLLLoss"
_LOGARITHM = re.compile(r"log_?(?:var|sigma2|s2)|(?:^|_)lv(?:$|_)", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the variance that the failing loss is given."""
    if not context.has_failed or _REFUSED not in message_of(context):
        return
    for file, statement in crash_places(context):
        for node in walk(statement):
            given = _variance(node, file, context.program)
            name = (dotted_name(given) or "").rpartition(".")[2] if given is not None else ""
            if given is not None and name and (_LOGARITHM.search(name) or _is_read_as_logarithm(name, context.program)):
                why = "takes for the variance what is its logarithm"
                yield Proposal(
                    edits=(put_method(file, given, ".exp()"),), culprit=culprit_of(file, given, why), belief=2.5
                )
                return


def _variance(node: ast.AST, file: SourceFile, program: Program) -> ast.expr | None:
    """The third argument of such a loss."""
    if not isinstance(node, ast.Call):
        return None
    names = program.names(file)
    is_loss = names.is_call(node, _FUNCTION) or any(
        isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, _MODULE)
        for one in resolver_of(program).constructors_of(Value(node.func, file))
    )
    named = next((one.value for one in node.keywords if one.arg == "var"), None)
    return (named or (node.args[2] if len(node.args) > 2 else None)) if is_loss else None


def _is_read_as_logarithm(name: str, program: Program) -> bool:
    """Whether half of something of that name is exponentiated: a deviation of a log variance."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") != "exp":
                continue
            given = node.args[0] if node.args else getattr(node.func, "value", None)
            if given is not None and _is_half(given, name):
                return True
    return False


def _is_half(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Div)):
        return False
    sides = (node.left, node.right)
    number = next((one.value for one in sides if isinstance(one, ast.Constant)), None)
    named = {(dotted_name(one) or "").rpartition(".")[2] for one in sides}
    return name in named and number == (0.5 if isinstance(node.op, ast.Mult) else 2)
