"""A logarithm of an exponential written by hand becomes the library's fused form, which never forms what overflows or rounds to 0.

`log(softmax(x))` is `log_softmax(x)`; `log(sigmoid(x))` and `log(1 - sigmoid(x))` are `logsigmoid(x)` and `logsigmoid(-x)`;
`log(exp(x).sum(d))` is `logsumexp(x, d)`; `log(1 + exp(x))` is `softplus(x)`; `exp(x) / exp(x).sum(d, keepdim=True)` is
`softmax(x, d)`; `1 / (1 + exp(-x))` is `sigmoid(x)`. A probability with a name is followed to where it was computed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.clue.blame import anomaly_node, nearness
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.loss.log_space import FUNCTIONAL, argument_of, called_with, followed
from explainer.fix.loss.written_out import softmax_written_out
from explainer.fix.text.rewrite import operand, replace_whole, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names
from explainer.source.program import Program
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.number import number_of


class Stable(NamedTuple):
    """The fused form of an expression: its text, the node it replaces, why the old one was unstable."""

    node: ast.expr
    text: str
    why: str
    nodes: tuple[str, ...]


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for each function that has unstable forms; all of them go together."""
    if not context.has_failed:
        return
    flow = flow_of(context.program)
    for file in context.program.parsed():
        found: dict[ast.AST | None, list[Stable]] = {}
        for node in file.walk():
            form = _form(node, file, context.program) if isinstance(node, (ast.Call, ast.BinOp)) else None
            if form is not None and flow.reach_of(form.node, file):
                found.setdefault(context.program.names(file).function_of(form.node), []).append(form)
        for forms in found.values():
            yield _proposal(file, forms, context, flow.reach_of(forms[0].node, file))


def _proposal(file: SourceFile, forms: list[Stable], context: Context, reach: Reach) -> Proposal:
    first = max(forms, key=lambda form: nearness(file, form.node, context))
    belief = 1.0 if reach == Reach.SURE else 0.0
    node = anomaly_node(context)
    belief += 1.5 if node in first.nodes else -0.3 if node else 0.0
    edits: tuple[Edit, ...] = tuple(replace_whole(file, form.node, form.text) for form in forms)
    return Proposal(
        edits=edits,
        culprit=culprit_of(file, first.node, first.why),
        belief=belief + nearness(file, first.node, context),
    )


def _form(node: ast.Call | ast.BinOp, file: SourceFile, program: Program) -> Stable | None:
    names = program.names(file)
    if isinstance(node, ast.BinOp):
        return _quotient(node, file, program) if isinstance(node.op, ast.Div) else None
    argument = argument_of(node, names, "log")
    if argument is not None:
        return _logarithm(node, argument, file, program)
    argument = argument_of(node, names, "log1p")
    power = called_with(argument, names, "exp") if argument is not None else None
    return _softplus(node, power, file, names) if power is not None else None


def _logarithm(node: ast.Call, argument: ast.expr, file: SourceFile, program: Program) -> Stable | None:
    names = program.names(file)
    value = followed(argument, node, file, program)
    if isinstance(value, ast.BinOp):
        return _of_sum(node, value, file, program)
    if not isinstance(value, ast.Call):
        return None
    inner = called_with(value, names, "softmax")
    if inner is not None:
        return _log_softmax(node, value, inner, file, names)
    inner = called_with(value, names, "sigmoid")
    if inner is not None:
        text = f"{spell(names, f'{FUNCTIONAL}.logsigmoid')}({file.segment(inner)})"
        return Stable(node, text, "takes the logarithm of a sigmoid, which rounds to 0", ("Log",))
    return _log_sum(node, value, file, program)


def _of_sum(node: ast.Call, value: ast.BinOp, file: SourceFile, program: Program) -> Stable | None:
    """`log(1 + exp(x))` and `log(1 - sigmoid(x))`."""
    names = program.names(file)
    if number_of(value.left, names) != 1.0 and number_of(value.right, names) != 1.0:
        return None
    other = value.right if number_of(value.left, names) == 1.0 else value.left
    if isinstance(value.op, ast.Add):
        power = called_with(other, names, "exp")
        return _softplus(node, power, file, names) if power is not None else None
    chance = followed(other, node, file, program)
    logit = called_with(chance, names, "sigmoid") if isinstance(value.op, ast.Sub) and other is value.right else None
    if logit is None:
        return None
    text = f"{spell(names, f'{FUNCTIONAL}.logsigmoid')}(-{operand(file, logit)})"
    return Stable(node, text, "takes the logarithm of 1 minus a sigmoid, which rounds to 0", ("Log", "Rsub"))


def _log_softmax(node: ast.Call, value: ast.Call, inner: ast.expr, file: SourceFile, names: Names) -> Stable | None:
    rest = [file.segment(one) for one in value.args if one is not inner]
    rest += [f"dim={file.segment(one.value)}" for one in value.keywords if one.arg in ("dim", "axis")]
    if len(rest) != 1:
        return None
    text = f"{spell(names, 'torch.log_softmax')}({file.segment(inner)}, {rest[0]})"
    return Stable(node, text, "takes the logarithm of a softmax, which rounds to 0", ("Log",))


def _log_sum(node: ast.Call, value: ast.Call, file: SourceFile, program: Program) -> Stable | None:
    """`log(exp(x).sum(d))`, also as `torch.sum(torch.exp(x), d)`."""
    names = program.names(file)
    summed = argument_of(value, names, "sum")
    power = followed(summed, node, file, program) if summed is not None else None
    inner = called_with(power, names, "exp")
    rest = [file.segment(one) for one in value.args if one is not summed]
    rest += [f"{one.arg}={file.segment(one.value)}" for one in value.keywords]
    if inner is None or not rest or {one.arg for one in value.keywords} - {"dim", "keepdim"}:
        return None
    text = f"{spell(names, 'torch.logsumexp')}({file.segment(inner)}, {', '.join(rest)})"
    return Stable(node, text, "sums exponentials, which overflow above 88", ("Log", "Exp", "Sum", "Sub"))


def _softplus(node: ast.expr, inner: ast.expr, file: SourceFile, names: Names) -> Stable:
    text = f"{spell(names, f'{FUNCTIONAL}.softplus')}({file.segment(inner)})"
    return Stable(node, text, "adds 1 to an exponential, which overflows above 88", ("Exp", "Log", "Log1P", "Add"))


def _quotient(node: ast.BinOp, file: SourceFile, program: Program) -> Stable | None:
    """A softmax or a sigmoid written out."""
    names, softmax = program.names(file), softmax_written_out(node, file, program)
    if softmax is not None:
        why = "divides exponentials, which overflow above 88 and round to 0 below -103"
        return Stable(node, softmax, why, ("Exp", "Div"))
    if (
        number_of(node.left, names) != 1.0
        or not isinstance(node.right, ast.BinOp)
        or not isinstance(node.right.op, ast.Add)
    ):
        return None
    power = called_with(node.right.right, names, "exp") or called_with(node.right.left, names, "exp")
    has_one = 1.0 in (number_of(node.right.left, names), number_of(node.right.right, names))
    if not has_one or not isinstance(power, ast.UnaryOp) or not isinstance(power.op, ast.USub):
        return None
    text = f"{spell(names, 'torch.sigmoid')}({file.segment(power.operand)})"
    return Stable(
        node, text, "divides by 1 plus an exponential, which overflows above 88", ("Exp", "Reciprocal", "Div", "Mul")
    )
