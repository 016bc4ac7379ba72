"""Puts a differentiable form in place of `argmax`: cross-entropy for a count of hits, softmax for one-hot decisions.

Where all of a loss is made of decisions that are no hits (a Dice of the mask, the distance of two classes), the form is only shown: a
straight-through estimate, a soft count of another kind and another loss beside it are as usual, and train otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.failure import dead_ends
from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.model.trace import DEAD_TERM
from explainer.source.file import SourceFile
from explainer.source.graph.cut import INTEGER
from explainer.source.name import Function, Names, dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of, reaching, scope_of
from explainer.source.value.resolve import resolver_of

_BECAUSE = "another function is optimized: counts and decisions have no gradient"
_YOURS = "a softmax, a straight-through estimate or another loss are all usual, and train otherwise: which is meant only you know"
_CASTS = frozenset({"float", "double", "long", "to", "type"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each `argmax` between the parameters and the failing loss."""
    if not context.has_failed:
        return
    for root, decision, file in _decisions(context):
        scores = _scores(decision, context, file)
        found = _one_hot(decision, scores, file, context)
        is_hit = found is None and isinstance(file.enclosing(decision, ast.Compare), ast.Compare)
        if found is None and root is not None:
            found = _entropy(decision, scores, file, root, context)
        if found is not None:
            node, new = found
            where = file if root is None or node in file.parents else root.file
            yield Proposal(
                edits=(edit_of(where, node, new),),
                culprit=culprit_of(file, decision, "has no derivative: the graph ends at this decision"),
                belief=1.5,
                applicability="unsafe" if is_hit or root is None else "display",
                because=_BECAUSE if is_hit or root is None else _YOURS,
            )


def _decisions(context: Context) -> Iterator[tuple[Value | None, ast.Call, SourceFile]]:
    """Each `argmax` that ends the graph of the failing loss, and each that a trace saw leave a term of it without one."""
    for root, cut in dead_ends(context):
        if cut.kind == INTEGER and isinstance(cut.node, ast.Call) and _is_argmax(cut.node):
            yield root, cut.node, cut.file
    for file, statement in traced_places(DEAD_TERM, context):
        yield from ((None, one, file) for one in walk(statement) if isinstance(one, ast.Call) and _is_argmax(one))


def _is_argmax(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "argmax"


def _scores(node: ast.Call, context: Context, file: SourceFile) -> ast.expr:
    """What an `argmax` decides on."""
    assert isinstance(node.func, ast.Attribute)
    is_function = context.program.names(file).qualified(node.func) == "torch.argmax"
    return node.args[0] if is_function and node.args else node.func.value


def _functional(names: Names) -> str | None:
    """How the file spells `torch.nn.functional`."""
    for alias, target in names.imports.items():
        if target == "torch.nn.functional":
            return alias
    known = {target: alias for alias, target in names.imports.items()}
    if "torch.nn" in known:
        return f"{known['torch.nn']}.functional"
    return f"{known['torch']}.nn.functional" if "torch" in known else None


def _one_hot(node: ast.Call, scores: ast.expr, file: SourceFile, context: Context) -> tuple[ast.expr, str] | None:
    """`F.one_hot(scores.argmax(-1), n).float()` becomes `torch.softmax(scores, dim=-1)`, also where a function writes it so."""
    above = file.parents.get(node)
    torch = next((alias for alias, target in context.program.names(file).imports.items() if target == "torch"), None)
    if not isinstance(above, ast.Call) or above.args[:1] != [node]:
        return None
    written, where = (above, file) if _is_one_hot(above, file, context) else _helper(above, file, context)
    if written is None:
        return None
    outer, place = _laid_out(written, where)
    whole = outer if written is above else above
    if place is None or (written is not above and not isinstance(where.parents.get(outer), ast.Return)):
        return None
    dim = _dimension(node)
    if dim is None or ((dim == -1) != (place == -1) and not (place == -1 and dim == 1)):
        return None
    soft = f"{torch}.softmax({file.segment(scores)}, dim={dim})" if torch else f"{operand(file, scores)}.softmax({dim})"
    return whole, soft


def _is_one_hot(node: ast.AST | None, file: SourceFile, context: Context) -> bool:
    return isinstance(node, ast.Call) and context.program.names(file).is_call(node, "torch.nn.functional.one_hot")


def _helper(call: ast.Call, file: SourceFile, context: Context) -> tuple[ast.Call | None, SourceFile]:
    """The `one_hot` of its first parameter that is all that a function of the program does."""
    found = _helper_of(call, file, context)
    if found is None:
        return None, file
    where, function = found
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    first = next(iter(parameters_of(function)), None)
    calls = [one for one in walk(function) if _is_one_hot(one, where, context)]
    is_plain = len(body) == len(calls) == 1 and isinstance(body[0], ast.Return)
    made = calls[0] if is_plain else None
    return (made if isinstance(made, ast.Call) and dotted_name(made.args[0]) == first else None), where


def _helper_of(call: ast.Call, file: SourceFile, context: Context) -> tuple[SourceFile, Function] | None:
    return resolver_of(context.program).function_of(call, Value(call.func, file))


_CHANNELS_SECOND = {"permute": ((0, 3, 1, 2), (0, 2, 1), (0, 4, 1, 2, 3)), "movedim": ((-1, 1),), "moveaxis": ((-1, 1),), "transpose": ((1, 2),)}  # fmt: skip


def _laid_out(node: ast.expr, file: SourceFile) -> tuple[ast.expr, int | None]:
    """A one-hot code with the casts and the change of layout behind it, and its dimension of classes: -1, 1, or not known."""
    place: int | None = -1
    while True:
        method = file.parents.get(node)
        call = file.parents.get(method) if isinstance(method, ast.Attribute) else None
        if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not method:
            return node, place
        if method.attr in _CHANNELS_SECOND:
            given = tuple(_whole(one) for one in call.args)
            place = 1 if place == -1 and given in _CHANNELS_SECOND[method.attr] else None
        elif method.attr not in _CASTS | {"contiguous"}:
            return node, place
        node = call


def _dimension(node: ast.Call) -> int | None:
    """Along which dimension an `argmax` decides, where that is written and dropped."""
    assert isinstance(node.func, ast.Attribute)
    if any(one.arg == "keepdim" for one in node.keywords):
        return None
    named = [one.value for one in node.keywords if one.arg in ("dim", "axis")]
    return next((found for one in (*named, *node.args) if (found := _whole(one)) is not None), None)


def _whole(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None


def _entropy(
    node: ast.Call, scores: ast.expr, file: SourceFile, root: Value, context: Context
) -> tuple[ast.expr, str] | None:
    """The loss that counts hits becomes the cross-entropy of the scores."""
    functional = _functional(context.program.names(root.file))
    target = _compared(node, file, context)
    bound = [one for one in reaching(dotted_name(root.node) or "", root.node, root.file) if not one.fills]
    if functional is None or target is None or len(bound) != 1 or file is not root.file:
        return None
    if scope_of(scores, file) is not scope_of(root.node, file):
        return None
    return bound[0].node, f"{functional}.cross_entropy({file.segment(scores)}, {file.segment(target)})"


def _compared(node: ast.Call, file: SourceFile, context: Context) -> ast.expr | None:
    """What the decision is compared with, or passed beside to a criterion."""
    above: ast.AST | None = node
    below: ast.AST = node
    while above is not None and not isinstance(above, ast.stmt):
        below, above = above, file.parents.get(above)
        if isinstance(above, ast.Compare) and len(above.comparators) == 1:
            return _bare(above.comparators[0] if below is above.left else above.left)
        if isinstance(above, ast.Call) and len(above.args) == 2 and below in above.args:
            if _is_one_hot(above, file, context) or _helper_of(above, file, context) is not None:
                return None  # what a function of the program does with both is not known
            return _bare(above.args[1] if below is above.args[0] else above.args[0])
    return None


def _bare(node: ast.expr) -> ast.expr:
    """A target without its cast to float."""
    is_cast = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "double")
    )
    return node.func.value if is_cast else node  # type: ignore[attr-defined]
