"""A linear layer gets the width of what reaches it: `nn.Linear(256, 10)` becomes `nn.Linear(196, 10)`, by the shapes in the message.

Only where exactly one linear layer of the program has the width that the message names, or where the failing line runs the one
whose width is a product with numbers in it: `nn.Linear(width * 4 * 4, 10)` becomes `nn.Linear(width * 6 * 6, 10)`. A width
by name is doubled behind a recurrent layer of both directions, and grows by what is joined to its features: `nn.Linear(latent + 4, 32)`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.shape.layer_input import is_input_at_fault, leaked_column
from explainer.fix.text.rewrite import operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.recurrent import RECURRENT
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_SHAPES = re.compile(r"\((\d+)x(\d+) and (\d+)x(\d+)\)")
_BECAUSE = "changes the number of parameters, so that older state dicts no longer fit; right only where the input is as it was meant"
_Layer = tuple[SourceFile, ast.Call]


def propose(context: Context) -> Iterator[Proposal]:
    """The edit of the one layer that was built for another width."""
    shapes = next((found for one in context.incident.exceptions if (found := _SHAPES.search(one.message))), None)
    # A value for each sample, as a layer of one feature gets it, or a sample that is no row yet or has its axes in another order.
    if shapes is None or shapes.group(1) == shapes.group(3) == "1" or is_input_at_fault(context):
        return
    got, wanted, out = int(shapes.group(2)), int(shapes.group(3)), int(shapes.group(4))
    # With the label among the features a wider layer would learn to read it off.
    edited = [*_by_setting(got, wanted, out, context), *_by_layer(got, wanted, out, context)]
    edited = edited if leaked_column(context) is None else []
    yield from edited
    called = _run_by_failure(_fitting(out, context), context)
    if not edited and len(called) == 1:  # which of the two widths is right the author says
        file, call = called[0]
        yield Proposal(
            edits=(), culprit=culprit_of(file, call, f"is built for {wanted} features and gets {got}"), belief=0.5
        )


def _fitting(out: int, context: Context) -> list[_Layer]:
    """The linear layers that give as many features as the message says, as far as they say a number."""
    return [one for one in _linears(context) if _number(one, 1, context) in {None, out}]


def _by_layer(got: int, wanted: int, out: int, context: Context) -> Iterator[Proposal]:
    """The one layer that has the width that the message names, or that the failing line runs."""
    fit = _fitting(out, context)
    exact = [one for one in fit if _number(one, 0, context) == wanted]
    called = _run_by_failure(fit, context)
    run = [one for one in called if one in exact or _number(one, 0, context) is None]
    meant = run if called else exact
    if len(meant) > 1:  # of several by name, the one whose width is counted out
        meant = [one for one in meant if one not in exact and _refactored(one[1], one[0], got, wanted)]
    if len(meant) != 1:
        return
    file, call = meant[0]
    node: ast.expr = call
    edits = [edit_of(file, call.args[0], str(got))] if meant[0] in exact else _refactored(call, file, got, wanted)
    both = _both_directions(context) if got == 2 * wanted and meant[0] not in exact else []
    if both:
        told = _property_of(call.args[0], context)
        edits = _doubled_property(*told) if told is not None else _doubled(call, file, both[0])
        file, node = told if told is not None else (file, node)
    if not edits and meant[0] not in exact and got > wanted and _gets_joined(call, context):
        edits = [edit_of(file, call.args[0], f"{operand(file, call.args[0])} + {got - wanted}")]
    if edits:
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit_of(file, node, f"is built for {wanted} features and gets {got}"),
            belief=1.0,
            applicability="unsafe",
            because=_BECAUSE,
        )


def _gets_joined(layer: ast.Call, context: Context) -> bool:
    """Whether the layer, whose width has a name, runs on features that are joined for it: `self.dec(torch.cat([z, code], -1))`."""
    if not isinstance(layer.args[0], (ast.Name, ast.Attribute)):
        return False
    for file, statement in list(raised_at(context))[:1]:
        names, resolver = context.program.names(file), resolver_of(context.program)
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and one.args):
            made = resolver.constructors_of(Value(call.func, file))
            if any(layer in set(walk(one.node)) for one in made):
                given = Value(call.args[0], file)
                behind = [one.node for one in (given, *resolver.behind(given))]
                return any(
                    isinstance(one, ast.Call) and names.is_call(one, "torch.cat", "torch.concat") for one in behind
                )
    return False


def _by_setting(got: int, wanted: int, out: int, context: Context) -> Iterator[Proposal]:
    """A width that a configuration gives: `nn.Linear(cfg["flat_features"], 10)`, where no layer says another number."""
    found = {}
    for file, call in _linears(context):
        if _number((file, call), 0, context) is None and _number((file, call), 1, context) in {None, out}:
            for one in settings_behind(call.args[0], file, context.program):
                if one.value == wanted:
                    found[one.file.path, one.span] = one
    if len(found) != 1 or any(_number(one, 0, context) == wanted for one in _linears(context)):
        return
    (setting,) = found.values()
    if _sizes_another(setting, context):
        return
    edit = set_value(setting, got)
    if isinstance(edit, Edit):
        yield Proposal(
            edits=(edit,),
            culprit=culprit_at(setting.file, setting.span, f"asks for {wanted} features where {got} come"),
            belief=1.0,
            applicability="unsafe",
            because=_BECAUSE,
        )


def _sizes_another(setting: Setting, context: Context) -> bool:
    """Whether a setting sizes more than one argument of a layer: another value would build more than the one anew."""
    found = 0
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call) and (names.qualified(node.func) or "").startswith("torch.nn."):
                for one in (*node.args, *(word.value for word in node.keywords)):
                    behind = settings_behind(one, file, context.program)
                    found += any(each.span == setting.span and each.file.path == setting.file.path for each in behind)
                    if found > 1:
                        return True
    return False


def _linears(context: Context) -> list[_Layer]:
    return [
        (file, node)
        for file in context.program.parsed()
        for node in file.walk()
        if isinstance(node, ast.Call)
        and context.program.names(file).is_call(node, "torch.nn.Linear")
        and len(node.args) > 1
    ]


def _number(layer: _Layer, position: int, context: Context) -> float | None:
    return number_of(layer[1].args[position], context.program.names(layer[0]))


def _run_by_failure(layers: list[_Layer], context: Context) -> list[_Layer]:
    """The layers that the line which raised calls, by themselves or in a container."""
    resolver = resolver_of(context.program)
    for file, statement in list(raised_at(context))[:1]:
        made = {
            inner
            for node in walk(statement)
            if isinstance(node, ast.Call)
            for one in resolver.constructors_of(Value(node.func, file))
            for inner in walk(one.node)
        }
        return [one for one in layers if one[1] in made]
    return []


def _refactored(call: ast.Call, file: SourceFile, got: int, wanted: int) -> list[Edit]:
    """The numbers of a product such that it is `got`: sides of a square stay equal, a lone number takes all; else nothing."""
    numbers, has_name = _factors(call.args[0])
    product = math.prod(value for _, value in numbers)
    if not numbers or not has_name or product < 1 or wanted % product or got % (wanted // product):
        return []
    left = got // (wanted // product)
    if len(numbers) == 1:
        return [edit_of(file, numbers[0][0], str(left))]
    # The sides of a square are equal; a factor beside them stays: `2 * width * 7 * 7`.
    pair = next(
        ((one, other) for at, (one, size) in enumerate(numbers) for other, same in numbers[at + 1 :] if size == same),
        None,
    )
    others = math.prod(size for one, size in numbers if pair is None or one not in pair)
    side = math.isqrt(left // others) if others and not left % others else 0
    return (
        [edit_of(file, one, str(side)) for one in pair]
        if pair is not None and side and side**2 * others == left
        else []
    )


def _factors(node: ast.expr) -> tuple[list[tuple[ast.expr, int]], bool]:
    """The whole numbers of a product, and whether something else is multiplied with them; none where it is no product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left, right = _factors(node.left), _factors(node.right)
        return left[0] + right[0], left[1] or right[1]
    if isinstance(node, ast.Constant):
        is_whole = isinstance(node.value, int) and not isinstance(node.value, bool)
        return ([(node, node.value)] if is_whole else []), not is_whole  # type: ignore[list-item]
    return [], True


def _both_directions(context: Context) -> list[ast.expr]:
    """What says so of the one recurrent layer of the program that reads both ways."""
    flags = [
        word.value
        for each in context.program.parsed()
        for node in each.walk()
        if isinstance(node, ast.Call) and context.program.names(each).is_call(node, *RECURRENT)
        for word in node.keywords
        if word.arg == "bidirectional" and not (isinstance(word.value, ast.Constant) and not word.value.value)
    ]
    return flags if len(flags) == 1 else []


def _doubled(call: ast.Call, file: SourceFile, both: ast.expr) -> list[Edit]:
    """Twice the width where it has a name, by the recurrent layer's own flag where that is in reach."""
    width = call.args[0]
    if not isinstance(width, (ast.Name, ast.Attribute, ast.Subscript)):
        return []
    flag = _flag_beside(width, both, file)
    factor = f"(2 if {flag} else 1)" if flag is not None else "2"
    return [edit_of(file, width, f"{file.segment(width)} * {factor}")]


def _property_of(width: ast.expr, context: Context) -> tuple[SourceFile, ast.expr] | None:
    """What the one property of that name in the program gives: `return self.rnn.hidden_size` for `encoder.out_features`."""
    name = width.attr if isinstance(width, ast.Attribute) else ""
    found = [
        (file, one.value)
        for file, function in context.program.functions()
        if function.name == name and any(dotted_name(mark) == "property" for mark in function.decorator_list)
        for one in walk(function)
        if isinstance(one, ast.Return) and one.value is not None
    ]
    return found[0] if len(found) == 1 else None


def _doubled_property(file: SourceFile, value: ast.expr) -> list[Edit]:
    """Twice what a property gives, by the recurrent layer's own flag where it reads that layer's size."""
    if isinstance(value, ast.BinOp):
        return []
    is_size = isinstance(value, ast.Attribute) and value.attr == "hidden_size"
    factor = f"(2 if {file.segment(value.value)}.bidirectional else 1)" if is_size else "2"  # type: ignore[attr-defined]
    return [edit_of(file, value, f"{operand(file, value)} * {factor}")]


def _flag_beside(width: ast.expr, flag: ast.expr, file: SourceFile) -> str | None:
    """The flag as it is called where a width is read: `config.bidirectional` for `config.hidden`; None of a constant."""
    name = (dotted_name(flag) or "").rpartition(".")[2]
    if not name:
        return None
    if isinstance(width, ast.Attribute):
        beside = f"{file.segment(width.value)}.{name}"
        return beside if beside in file.text else None
    if isinstance(width, ast.Subscript):
        return None  # whether a mapping has the key is not seen
    function = file.enclosing(width, ast.FunctionDef, ast.AsyncFunctionDef)
    is_there = isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and name in all_parameters(function)
    return name if is_there else None
