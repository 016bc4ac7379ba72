"""`scores.masked_fill(mask, float("-inf"))` becomes `torch.finfo(scores.dtype).min`: a row that is masked throughout stays finite.

A softmax over nothing but -inf is 0/0, and the entropy of any masked row 0 times -inf. With the dtype's smallest number such a row is uniform, and every other row is as before.
Also `-math.inf`, `-float("inf")`, `-torch.inf`, `torch.where(mask, scores, -inf)` and a constant that float16 cannot hold.
A mask that is made by itself and added to the scores gets -1e9, of which a sum with scores is finite;
the logarithm of one that is added goes no lower than that. `mask_value: -.inf` of a configuration file gets -1e4.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.blame import anomaly_node, nearness
from explainer.fix.clue.crash import is_crash, message_of
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.loss.empty_row import zeros_where_added, zeros_where_hidden
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import operand, put_method, spell
from explainer.model.patch import Edit
from explainer.model.trace import NOT_FINITE
from explainer.source.data.padding import shows_tokens
from explainer.source.file import SourceFile
from explainer.source.graph.mask import Fill, find_fills, is_minus_infinity, is_never_whole, softmax_parts
from explainer.source.name import dotted_name
from explainer.source.network.precision import find_halves
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.origin import origins
from explainer.source.value.resolve import resolver_of

_HALF_MAX = 65504.0
_ADDED, _ADDED_IN_HALF = "-1e9", "-1e4"  # the smallest float16 is -65504
_FINITE = -10000.0
_DEPTH = 4
_REFUSED = "without overflow"
_REFUSED_HERE = 4.0  # before every other way out of float16: the line itself is refused
_SOONER = 0.3
_ZEROS = "Mask with the smallest finite value, and give a row that is masked throughout no weights"
_CAUSAL = -1.3  # a position that sees itself leaves no row empty


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each mask of -inf that a softmax may read."""
    program = context.program
    if not context.has_failed:
        return
    if context.options.get("by_range"):
        if any(True for _ in find_halves(program)):
            yield from _out_of_range(context)
        return

    def puts(value: ast.expr, file: SourceFile) -> bool:
        return is_minus_infinity(value, file, program)

    yield from _in_files(context)
    fills = [one for one in find_fills(program, puts) if not _is_inverted(one, program)]
    logs = list(_logarithms(program)) if _is_infinity_traced(context) else []
    parts = softmax_parts(program) if (fills or logs) and not _is_asked_for(program) else {}
    flow = flow_of(program)
    is_multiplied = any(one.name == "traced_nan_of_mask" for one in context.incident.facts)
    multiplied = {statement for _, statement in traced_places(NOT_FINITE, context)} if is_multiplied else set()
    for fill in fills:
        reach = flow.reach_of(fill.into, fill.file) if fill.into is not None else Reach.NONE
        if fill.file.statement(fill.node) in multiplied:
            reach = Reach.SURE
        if reach and fill.into is not None:
            plain = _proposal(fill, reach, _least(fill.file, fill.into, program), context)
            yield from _with_zeros(plain, zeros_where_hidden(fill, program))
            yield plain
            continue
        reach = max((parts.get(node, Reach.NONE) for node in _behind(fill, program)), default=Reach.NONE)
        if reach:
            is_half = any(True for _ in find_halves(program))
            least = _ADDED_IN_HALF if is_half else _ADDED
            plain = _proposal(fill, reach, least, context)
            yield from _with_zeros(plain, zeros_where_added(fill, set(_behind(fill, program)), least, program))
            yield plain

    for file, call, weights in logs:
        if call in parts:
            least = _ADDED_IN_HALF if any(True for _ in find_halves(program)) else _ADDED
            why = f"is -inf where `{file.segment(weights)}` is 0, of which a whole row may consist"
            yield Proposal(
                edits=(put_method(file, call, f".clamp_min({least})"),),
                culprit=culprit_of(file, call, why),
                belief=1.5 + nearness(file, call, context),
            )


def _with_zeros(plain: Proposal, edit: Edit | None) -> Iterator[Proposal]:
    """The same mask, with nothing read by a row that it hides as a whole: a uniform one would give the mean of the padding."""
    if edit is not None:
        yield replace(
            plain, edits=(*plain.edits, edit), belief=plain.belief + _SOONER, title=_ZEROS,
            because="a row that is masked throughout then reads nothing; every other row is as before",
        )  # fmt: skip


def _in_files(context: Context) -> Iterator[Proposal]:
    """The -inf that a configuration file gives under the name of what a mask fills with."""
    infinite = {
        setting.name: setting
        for document in context.program.documents()
        for setting in document.settings
        if setting.value == -math.inf
    }
    if not infinite or _is_asked_for(context.program):
        return

    def said(value: ast.expr, file: SourceFile) -> str | None:
        return next((one for one in _names_of(Value(value, file), context.program) if one in infinite), None)

    for fill in find_fills(context.program, lambda value, file: said(value, file) is not None):
        setting = infinite[said(fill.value, fill.file) or ""]
        edit = set_value(setting, _FINITE)
        if isinstance(edit, Edit):
            span = (setting.key or setting.span)[0], setting.span[1]
            why = "fills what is masked with -inf, of which a whole row may consist"
            culprit = culprit_at(setting.file, span, why)
            yield Proposal(edits=(edit,), culprit=culprit, belief=1.5, is_origin=True)
            return


def _names_of(value: Value, program: Program, depth: int = 0) -> Iterator[str]:
    """The names that a value is handed on by: of `fill`, of what a call gives it, `self.mask_value`, `cfg["mask_value"]`."""
    node = value.node
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        yield str(node.slice.value)
    elif dotted_name(node) is not None:
        yield (dotted_name(node) or "").rpartition(".")[2]
        for one in resolver_of(program).behind(value) if depth < _DEPTH else ():
            yield from _names_of(one, program, depth + 1)


def _is_infinity_traced(context: Context) -> bool:
    return any(one.name == "traced_nan_of_infinity" for one in context.incident.facts)


def _logarithms(program: Program) -> Iterator[tuple[SourceFile, ast.Call, ast.expr]]:
    """The logarithms of weights by name: `adjacency.log()`, `torch.log(adjacency)`."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            is_function = names.is_call(node, "torch.log")
            subject = node.args[0] if is_function and node.args else getattr(node.func, "value", None)
            is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "log" and not node.args
            if (is_function or is_method) and isinstance(subject, (ast.Name, ast.Attribute)):
                yield file, node, subject


def _out_of_range(context: Context) -> Iterator[Proposal]:
    """An edit for each constant in scores that float16 has not."""
    flow = flow_of(context.program)
    is_refused = _REFUSED in message_of(context)
    for fill in find_fills(context.program, lambda value, file: _is_too_low(value, file, context.program)):
        reach = flow.reach_of(fill.into, fill.file) if fill.into is not None else Reach.NONE
        if reach and fill.into is not None:
            proposal = _proposal(fill, reach, _least(fill.file, fill.into, context.program), context)
            is_sure = is_refused and is_crash(fill.file, fill.node, context)
            why = f"masks with `{fill.file.segment(fill.value)}`, which float16 has not"
            culprit = culprit_of(fill.file, fill.node, why)
            yield replace(proposal, belief=_REFUSED_HERE, culprit=culprit) if is_sure else proposal


def _proposal(fill: Fill, reach: Reach, number: str, context: Context) -> Proposal:
    node_name = anomaly_node(context)
    belief = 0.8 if reach == Reach.SURE else 0.0
    belief += 1.5 if "Softmax" in node_name else -0.5 if node_name else 0.0
    hidden = fill.hidden
    if hidden is not None and is_never_whole(hidden, fill.file, context.program, shown=fill.shown):
        belief += _CAUSAL
    why = f"masks with `{fill.file.segment(fill.value)}`, of which a whole row may consist"
    return Proposal(
        edits=(edit_of(fill.file, fill.value, number),),
        culprit=culprit_of(fill.file, fill.node, why),
        belief=belief + nearness(fill.file, fill.node, context),
    )


def _behind(fill: Fill, program: Program) -> Iterator[ast.AST]:
    """The nodes by which a fill is part of a sum: itself, and what it is written into in place."""
    yield fill.node
    is_written = isinstance(fill.node, ast.Call) and getattr(fill.node.func, "attr", "") == "masked_fill_"
    if is_written and isinstance(fill.into, ast.Name):
        yield from (one.node for one in origins(Value(fill.into, fill.file), program))


def _is_inverted(fill: Fill, program: Program) -> bool:
    """Whether the mask is true on the tokens: rows that were finite then would be those of the padding."""
    sense = shows_tokens(Value(fill.hidden, fill.file), program) if fill.hidden is not None else None
    return sense is not None and sense != fill.shown


def _is_asked_for(program: Program) -> bool:
    """Whether a program looks for infinities, so that a mask must keep its own."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if any(is_minus_infinity(one, file, program) for one in sides):
                return True
            if names.is_call(node, "torch.isinf", "torch.isneginf", ".isinf", ".isneginf"):
                return True
    return False


def _least(file: SourceFile, scores: ast.expr, program: Program) -> str:
    return f"{spell(program.names(file), 'torch.finfo')}({operand(file, scores)}.dtype).min"


def _is_too_low(value: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a mask's value is a number that float16 has not, also by the name of a constant."""
    number = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else None
    if isinstance(number, ast.Constant):
        return isinstance(number.value, (int, float)) and number.value > _HALF_MAX
    found = list(resolver_of(program).behind(Value(value, file))) if dotted_name(value) is not None else []
    return bool(found) and all(
        isinstance(one.node, ast.UnaryOp) and one.pick is None and _is_too_low(one.node, one.file, program)
        for one in found
    )
