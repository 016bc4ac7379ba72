"""`torch.sqrt(x)` becomes `torch.sqrt(x.clamp_min(1e-12))`: the argument stays away from where the derivative is infinite.

Logarithms, roots, negative powers of data that a trace has seen, denominators that cannot be negative, powers below 1,
inverse cosines; the norm where the program differentiates twice. `kinds` in the rule's options says which. A quotient with
a denominator of unknown sign is left alone: a clamp would change its value.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from explainer.fix.clue.blame import blame
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after
from explainer.fix.loss.log_space import LogSpace, argument_of
from explainer.fix.loss.written_out import softmax_written_out
from explainer.fix.text.rewrite import operand, put_method, spell
from explainer.model.patch import Edit
from explainer.model.trace import NOT_FINITE
from explainer.source.graph.hazard import (
    ARC,
    DEVIATION,
    INVERSE,
    LOG,
    NORM,
    POWER,
    QUOTIENT,
    ROOT,
    Hazard,
    find_deviations,
    find_hazards,
    find_inverses,
)
from explainer.source.graph.selection import selection_of
from explainer.source.name import Names, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.origin import origins
from explainer.source.value.sign import definition_of, is_positive

_GUARDS = {
    LOG: ".clamp_min(1e-8)",
    ROOT: ".clamp_min(1e-12)",
    POWER: ".clamp_min(1e-6)",
    ARC: ".clamp(-1 + 1e-6, 1 - 1e-6)",
}
_WHY = {
    LOG: "takes the logarithm of {x}, which can be 0",
    ROOT: "takes the root of {x}, which can be 0, where a root has an infinite slope",
    POWER: "raises {x} to a power whose slope at 0 is infinite",
    ARC: "takes the inverse of {x}, whose slope at 1 and -1 is infinite",
    DEVIATION: "divides by {x}, which is 0 for a constant column",
    QUOTIENT: "divides by {x}, which can be 0",
    INVERSE: "raises {x}, which is 0 somewhere, to a negative power: infinity, which times 0 is NaN",
    NORM: "takes the norm of {x}, whose second derivative at 0 is NaN",
}
_COUNTS = frozenset({"bincount"})
_BY_NONE_NEGATIVE = "traced_quotient_by_none_negative"
_AVERAGES = frozenset({"mean", "nanmean"})
_CASTS = frozenset({"to", "float", "double", "half", "type_as", "type", "bfloat16"})
_REDUCTIONS = ("mean", "sum", "avg_pool2d", "adaptive_avg_pool2d")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each statement with a hazard of the rule's kinds."""
    kinds = context.options.get("kinds", ())
    if not context.has_failed or not isinstance(kinds, Sequence):
        return
    # A traced line had a gradient, whatever the source lets one see of it.
    known = frozenset(statement for line, _, statement in traced_statements(NOT_FINITE, context) if line.node)
    is_nan_of_finite = any(one.name == "traced_nan_of_finite" for one in context.incident.facts)
    traced = [one for _, _, one in traced_statements(NOT_FINITE, context)]
    of_data = (
        frozenset(traced[:1]) if any(one.name == _BY_NONE_NEGATIVE for one in context.incident.facts) else frozenset()
    )
    hazards = list(find_hazards(context.program, known | of_data))
    if DEVIATION in kinds:
        hazards = list(find_deviations(context.program))
    if INVERSE in kinds:
        hazards += find_inverses(context.program, frozenset(traced) - known)
    data = _logs_of_data(hazards, context)
    groups: dict[tuple[str, ast.AST | None, str], list[Hazard]] = {}
    for hazard in hazards:
        if hazard.kind == LOG and _place_of(hazard, context.program) in data:
            continue
        is_proved = hazard.file.statement(hazard.node) in known and (
            _is_by_count(hazard, context) or (is_nan_of_finite and _is_weighted_mean(hazard, context))
        )
        is_proved = is_proved or _is_share(hazard, context)
        if _has_another_form(hazard, traced, context.program):
            continue
        if hazard.kind in (LOG, ROOT) and is_nan_of_finite and _is_of_negative(hazard, traced):
            continue
        if hazard.kind in kinds and (is_proved or not _is_left_alone(hazard, hazards, known, context.program)):
            function = context.program.names(hazard.file).function_of(hazard.node)
            groups.setdefault((hazard.file.path, function, hazard.kind), []).append(hazard)
    for group in groups.values():
        group += [one for one in hazards if one.kind == QUOTIENT and one not in group and _is_shared(one, group)]
        edits = {edit.start: edit for one in group for edit in _edits(one, context)}
        quotients = [one for one in group if one.kind == QUOTIENT]
        if any(_is_averaged(one, context.program) or _is_of_something(one, context) for one in quotients):
            yield _proposal(group, (), context)
        elif edits:
            yield _proposal(group, tuple(edits.values()), context)


def _logs_of_data(hazards: Sequence[Hazard], context: Context) -> frozenset[tuple[ast.AST | None, str]]:
    """The logarithms that a trace saw take data, by function and argument: where a floor stands instead, it decides the loss."""
    plain = {statement for line, _, statement in traced_statements(NOT_FINITE, context) if not line.node}
    logs = [one for one in hazards if one.kind == LOG and one.file.statement(one.node) in plain]
    alone = [
        one for one in logs if sum(one.file.statement(one.node) is each.file.statement(each.node) for each in logs) == 1
    ]
    return frozenset(_place_of(one, context.program) for one in alone)


def _place_of(hazard: Hazard, program: Program) -> tuple[ast.AST | None, str]:
    return program.names(hazard.file).function_of(hazard.node), ast.dump(hazard.argument)


def _has_another_form(hazard: Hazard, traced: Sequence[ast.stmt], program: Program) -> bool:
    """Whether a logarithm or a quotient is computed from the scores of its exponentials, with no floor."""
    if hazard.kind == QUOTIENT:
        return _is_softmax(hazard, program)
    is_zero = hazard.file.statement(hazard.node) in traced
    return hazard.kind == LOG and _is_of_exponentials(hazard, program, is_zero=is_zero)


def _is_of_exponentials(hazard: Hazard, program: Program, *, is_zero: bool) -> bool:
    """Whether a logarithm is of exponentials that round to 0: a floor would leave no gradient, and their scores have one.

    Of a softmax or a sigmoid where a trace saw that `is_zero`.
    """
    names = program.names(hazard.file)
    found = LogSpace(hazard.node, hazard.file, program).log(hazard.argument)
    return found is not None and (is_zero or any(argument_of(one, names, "exp") is not None for one in found.scores))


def _is_softmax(hazard: Hazard, program: Program) -> bool:
    """Whether exponentials are divided by their sum: a floor would make nothing of what a softmax makes one."""
    nodes = (hazard.node, *hazard.file.around(hazard.node))
    quotients = (one for one in nodes if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div))
    return any(softmax_written_out(one, hazard.file, program) is not None for one in quotients)


def _is_of_negative(hazard: Hazard, traced: Sequence[ast.stmt]) -> bool:
    """Whether the logarithm or root that a trace saw make NaN is of what the source lets be negative: a floor would hide that.

    A difference may be so by rounding only, `E[x ** 2] - E[x] ** 2`.
    """
    is_rounded = isinstance(hazard.argument, ast.BinOp) and isinstance(hazard.argument.op, ast.Sub)
    is_seen = hazard.file.statement(hazard.node) in traced[:1]
    return is_seen and not hazard.sign.not_negative and not is_rounded


def _proposal(group: Sequence[Hazard], edits: tuple[Edit, ...], context: Context) -> Proposal:
    first = max(group, key=lambda one: blame(one, context))
    text = first.file.segment(first.argument)
    name = f"`{text}`" if len(text) <= 40 and "\n" not in text else "a value"
    selected = selection_of(first.node, first.file, context.program) is not None
    return Proposal(
        edits=edits,
        culprit=culprit_of(first.file, first.node, _WHY[first.kind].format(x=name)),
        belief=blame(first, context) - (0.6 if selected else 0.0),
    )


def _is_shared(quotient: Hazard, group: Sequence[Hazard]) -> bool:
    """Whether a statement divides by what it also takes the logarithm or root of: `log(v) + e / v`."""
    statement = quotient.file.statement(quotient.node)
    return any(
        one.kind in (LOG, ROOT)
        and one.file.statement(one.node) is statement
        and ast.dump(one.argument) == ast.dump(quotient.argument)
        for one in group
    )


def _is_left_alone(hazard: Hazard, hazards: Sequence[Hazard], known: frozenset[ast.stmt], program: Program) -> bool:
    """Whether a guard would be wrong or useless: an unknown sign, a root below that stays at fault, no second derivative.

    The logarithm of data that is 0 is no matter of slopes: how much such a sample weighs is a choice of the objective.
    """
    if hazard.kind == LOG:
        statement = hazard.file.statement(hazard.node)
        beside = [one for one in hazards if one.kind == LOG and one.file.statement(one.node) is statement]
        is_alone = not any(_is_reached(one, program) for one in beside)
        return not _is_reached(hazard, program) and not (statement in known and is_alone)
    if hazard.kind == DEVIATION:
        return is_positive(hazard.sign)
    if hazard.kind == NORM:
        return not _has_second_derivative(program)
    if hazard.kind != QUOTIENT:
        return False
    if not hazard.sign.not_negative:
        return True
    roots = {one.node for one in hazards if one.kind == ROOT}
    value = definition_of(hazard.argument, hazard.file, program) or hazard.argument
    return value not in roots and any(node in roots for node in walk(value))


def _is_reached(hazard: Hazard, program: Program) -> bool:
    return flow_of(program).reach_of(hazard.argument, hazard.file) != Reach.NONE


def _is_averaged(hazard: Hazard, program: Program) -> bool:
    """Whether quotients by the sizes of groups are averaged: an empty group would count as 0, and leaving it out is another mean."""
    file = hazard.file
    value = definition_of(hazard.argument, file, program) or hazard.argument
    made = value.func.attr if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else ""
    given = [*value.args, *(one.value for one in value.keywords)] if isinstance(value, ast.Call) else []
    by_column = made == "sum" and any(isinstance(one, ast.Constant) and one.value == 0 for one in given)
    if not by_column and made not in _COUNTS:
        return False  # one number for all, one for each sample, or no count at all
    above = file.parents.get(hazard.node)
    if isinstance(above, ast.Attribute) and above.attr in _AVERAGES:
        return True
    statement = file.statement(hazard.node)
    bound = set(bound_names(statement)) if getattr(statement, "value", None) is hazard.node else set()
    function = program.names(file).function_of(hazard.node) or file.tree
    return bool(bound) and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _AVERAGES
        and bound & {dotted_name(node.func.value) or "", *(dotted_name(one) or "" for one in node.args)}
        for node in walk(function or file.tree or statement)
    )


def _has_second_derivative(program: Program) -> bool:
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "create_graph"
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        for file in program.parsed()
        for node in file.walk()
    )


def _weights_of(hazard: Hazard, context: Context) -> ast.expr | None:
    """`m` where a mean weighted by it is divided by its sum, `(x * m).sum() / m.sum()`: where that is 0, the numerator is."""
    file, program, node = hazard.file, context.program, hazard.node
    total = definition_of(hazard.argument, file, program) or hazard.argument
    if not isinstance(node, ast.BinOp) or not isinstance(total, ast.Call) or not isinstance(total.func, ast.Attribute):
        return None
    weights = total.func.value
    summed = definition_of(node.left, file, program) or node.left
    products = [one for one in walk(summed) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Mult)]
    sides = [ast.dump(side) for one in products for side in (one.left, one.right)]
    return weights if total.func.attr == "sum" and ast.dump(weights) in sides else None


def _is_weighted_mean(hazard: Hazard, context: Context) -> bool:
    """Whether the weights of such a mean are data, or were cast."""
    weights = _weights_of(hazard, context)
    is_data = weights is not None and flow_of(context.program).reach_of(weights, hazard.file) == Reach.NONE
    return is_data or _is_mean_of_cast(hazard, context)


def _is_mean_of_cast(hazard: Hazard, context: Context) -> bool:
    """Whether the weights of such a mean were cast, from what is true or false."""
    weights = _weights_of(hazard, context)
    cast = (definition_of(weights, hazard.file, context.program) or weights) if weights is not None else None
    return isinstance(cast, ast.Call) and isinstance(cast.func, ast.Attribute) and cast.func.attr in _CASTS


def _is_by_count(hazard: Hazard, context: Context) -> bool:
    """Whether the quotient that a trace saw fail divides by whole numbers."""
    is_one = hazard.kind == QUOTIENT and any(one.name == "traced_quotient_by_count" for one in context.incident.facts)
    traced = [one for _, _, one in traced_statements(NOT_FINITE, context)]
    return is_one and hazard.file.statement(hazard.node) in traced[:1]


def _is_of_something(hazard: Hazard, context: Context) -> bool:
    """Whether a trace saw infinity made of a quotient: something by 0, which a floor of 1e-8 makes outweigh all the rest."""
    is_infinite = any(one.name == "traced_infinity_of_finite" for one in context.incident.facts)
    traced = [one for _, _, one in traced_statements(NOT_FINITE, context)]
    is_count = hazard.sign.counts or _is_by_count(hazard, context) or _is_mean_of_cast(hazard, context)
    return is_infinite and not is_count and hazard.file.statement(hazard.node) in traced[:1]


def _is_share(hazard: Hazard, context: Context) -> bool:
    """Whether a trace saw data divided by its own sum, `rows / rows.sum(-1, keepdim=True)`, where none was negative: a row of nothing."""
    if hazard.kind != QUOTIENT or all(one.name != _BY_NONE_NEGATIVE for one in context.incident.facts):
        return False
    traced = [one for _, _, one in traced_statements(NOT_FINITE, context)]
    if hazard.file.statement(hazard.node) not in traced[:1] or not isinstance(hazard.node, ast.BinOp):
        return False
    total = definition_of(hazard.argument, hazard.file, context.program) or hazard.argument
    is_sum = isinstance(total, ast.Call) and isinstance(total.func, ast.Attribute) and total.func.attr == "sum"
    summed = None
    if isinstance(total, ast.Call) and is_sum and isinstance(total.func, ast.Attribute):
        is_function = dotted_name(total.func.value) == "torch" and total.args
        summed = total.args[0] if is_function else total.func.value
    return summed is not None and ast.dump(summed) == ast.dump(hazard.node.left)


def _edits(hazard: Hazard, context: Context) -> Iterator[Edit]:
    program = context.program
    if hazard.kind == NORM:
        new = _norm(hazard, program.names(hazard.file))
        if new:
            yield edit_of(hazard.file, hazard.node, new)
    elif hazard.kind == DEVIATION and _is_array(hazard, program):
        spelled = spell(program.names(hazard.file), "numpy.maximum")
        yield edit_of(hazard.file, hazard.argument, f"{spelled}({hazard.file.segment(hazard.argument)}, 1e-8)")
    elif hazard.kind == INVERSE:
        # A large number in the place of infinity would go on into what has no zero to meet it.
        statement = hazard.file.statement(hazard.node)
        is_whole = isinstance(statement, ast.Assign) and statement.value is hazard.node
        targets = list(bound_names(statement)) if is_whole else []
        if dotted_name(hazard.argument) is None and len(targets) == 1:
            (name,) = targets
            yield insert_after(hazard.file, statement, f"{name} = {name}.masked_fill({name}.isinf(), 0)")
        elif dotted_name(hazard.argument) is not None or _is_sum(hazard.argument):
            yield put_method(hazard.file, hazard.node, f".masked_fill({hazard.file.segment(hazard.argument)} == 0, 0)")
    elif hazard.kind == QUOTIENT and (rooted := _rooted(hazard, context)) is not None:
        yield put_method(hazard.file, rooted, _GUARDS[ROOT])
    elif hazard.kind in (QUOTIENT, DEVIATION):
        is_cast = not hazard.sign.not_negative and _is_mean_of_cast(hazard, context)
        is_count = hazard.sign.counts or is_cast or _is_by_count(hazard, context)
        yield put_method(hazard.file, hazard.argument, ".clamp_min(1)" if is_count else ".clamp_min(1e-8)")
    else:
        argument = _inner_base(hazard.argument) if hazard.kind == POWER else hazard.argument
        yield put_method(hazard.file, argument, _GUARDS[hazard.kind])


def _rooted(hazard: Hazard, context: Context) -> ast.expr | None:
    """`m` of `x / m.sqrt()`: a floor below the root guards the quotient, and the root's own slope as well."""
    root = definition_of(hazard.argument, hazard.file, context.program) or hazard.argument
    roots = find_hazards(context.program, frozenset({hazard.file.statement(root)}))
    found = [one.argument for one in roots if one.kind == ROOT and one.node is root]
    return found[0] if found else None


def _is_sum(node: ast.expr) -> bool:
    """Whether an expression adds up a tensor that has a name, `adj.sum(1)`: it can be written twice."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "sum" and dotted_name(func.value) is not None


def _is_array(hazard: Hazard, program: Program) -> bool:
    """Whether a file works with NumPy and not with torch where it divides: `a.std(0)` says `axis`, or torch is not there."""
    imported = program.names(hazard.file).imports.values()
    value = definition_of(hazard.argument, hazard.file, program) or hazard.argument
    options = {one.arg for one in value.keywords} if isinstance(value, ast.Call) else set()
    is_numpy = any(one.partition(".")[0] == "numpy" for one in imported)
    return (
        is_numpy
        and not options & {"dim", "keepdim", "unbiased", "correction"}
        and not _meets_tensor(value, hazard, program)
    )


def _meets_tensor(value: ast.expr, hazard: Hazard, program: Program) -> bool:
    """Whether what the deviation is taken of is made by torch."""
    subject = value.func.value if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else value
    found = list(origins(Value(node=subject, file=hazard.file), program))
    made = [program.names(one.file).qualified(one.node.func) or "" for one in found if isinstance(one.node, ast.Call)]
    return any(name.startswith("torch.") for name in made)


def _inner_base(argument: ast.expr) -> ast.expr:
    """What a generalised mean raises to its power first: `x` in `x.pow(p).mean(-1)`; else the argument itself."""
    node = argument
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCTIONS:
        is_function = isinstance(node.func.value, ast.Name) and node.func.value.id in ("F", "torch")
        if is_function and not node.args:
            return argument
        node = node.args[0] if is_function else node.func.value
    if node is argument:
        return argument
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pow":
        return node.func.value
    return node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) else argument


def _norm(hazard: Hazard, names: Names) -> str | None:
    """The 2-norm as a root with an epsilon, of which the second derivative is finite; None for other norms."""
    node = hazard.node
    assert isinstance(node, ast.Call)
    settings: Mapping[str | None, ast.expr] = {one.arg: one.value for one in node.keywords}
    rest = [one for one in node.args if one is not hazard.argument]
    plain = {"p", "ord", "dim", "axis", "keepdim"} >= set(settings) and len(rest) <= 1
    power = settings.get("p", settings.get("ord", rest[0] if rest else None))
    is_euclidean = power is None or (isinstance(power, ast.Constant) and power.value in (2, 2.0, None, "fro"))
    if not plain or not is_euclidean or names.qualified(node.func) == "torch.linalg.norm":
        return None
    file = hazard.file
    parts = [file.segment(one) for one in (settings.get("dim", settings.get("axis")),) if one is not None]
    if "keepdim" in settings:
        parts.append(f"keepdim={file.segment(settings['keepdim'])}")
    return f"({operand(file, hazard.argument)}.pow(2).sum({', '.join(parts)}) + 1e-12).sqrt()"
