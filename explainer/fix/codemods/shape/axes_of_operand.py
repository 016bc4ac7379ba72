"""What holds one value for each sample gets the axes of what it is combined with: `keep[:, None, None, None] * images`.

A mask of `[batch, length]` beside `[batch, length, features]`, a scale for each channel beside an image, a code of `[batch,
features]` beside a sequence. Broadcasting goes from the last axis and refuses them, or fits them to the wrong axis where the
sizes happen to agree. Only where the shapes leave one way; a mask of -inf hides keys, which are the last axis of scores. Two rows
make a table where the result meets one: `(k[:, None] * angles) + turn`, with a turn for each sample.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.clue.seen_shape import REFUSED, SPATIAL, Shape, are_one, is_row_of_layer, seen_shape
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.graph.operation import broadcast_sides
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.lineage import definitions, scope_of
from explainer.source.value.log_prob import are_of_numbers, is_of_log_prob
from explainer.source.value.resolve import resolver_of

# A number that is added, or taken away, to hide: `-1e9`, `-10000.0`, `torch.finfo(x.dtype).min`.
_ADDED = re.compile(
    r"-\s*(?:1e\+?\d+|\d{4,}(?:\.0)?)\b|\.min\b|float\('-inf'\)|-\s*(?:math|torch|np)\.inf|-\s*float\('inf'\)"
)
_TAKEN = re.compile(r"(?:1e\+?\d+|\d{4,}(?:\.0)?)\b|\.max\b")
_FILLS = frozenset(("masked_fill", "masked_fill_"))
_ELEMENTWISE = frozenset(
    ("sqrt", "rsqrt", "exp", "log", "log1p", "abs", "neg", "square", "pow", "float", "double", "half", "bool", "to", "clamp",
     "clamp_min", "detach", "reciprocal", "sigmoid", "tanh")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Clash:
    """Two operands that do not fit: the one of fewer axes, its axes among those of the other, and how many those are."""

    part: ast.expr
    kept: tuple[int, ...]
    rank: int

    @property
    def index(self) -> str:
        """What is put behind the smaller operand: `[:, None, None]`."""
        return f"[{', '.join(':' if at in self.kept else 'None' for at in range(self.kept[0], self.rank))}]"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the operands on the line that raised, or of the one name that they are made of."""
    refused = REFUSED.search(message_of(context))
    if refused is None:
        return
    sizes, dimension = (int(refused[1]), int(refused[2])), int(refused[3])
    for file, statement in list(raised_at(context))[:1]:
        pairs = [(node, *pair) for node in walk(statement) if (pair := broadcast_sides(node)) is not None]
        found = [
            clash
            for node, left, right in pairs
            if (clash := _clash(node, (left, right), (sizes, dimension), file, context)) is not None
        ]
        found = found or _table(pairs, sizes, file, context)
        is_of_action = are_of_numbers(context.program) and is_of_log_prob(statement, statement, file, context.program)
        if not found or is_of_action:  # several numbers of one action: `sum_log_probs`
            return
        found += _behind(found[0], pairs, file, context)
        name = _root(found[0].part)
        made = _made(name, found, statement, file, context.program)
        why = f"has {len(found[0].kept)} of the {found[0].rank} axes of what it is combined with"
        if made is not None:
            yield Proposal(
                edits=(put_method(file, made, found[0].index),),
                culprit=culprit_of(file, made, f"{why} at line {statement.lineno}"),
                belief=2.5,
            )
            return
        edits = tuple(put_method(file, one.part, one.index) for one in found)
        yield Proposal(edits=edits, culprit=culprit_of(file, found[0].part, why), belief=2.5)


def _table(
    pairs: list[tuple[ast.AST, ast.expr, ast.expr]], sizes: tuple[int, int], file: SourceFile, context: Context
) -> list[_Clash]:
    """Of two rows that were refused, the one whose values go by the rows of what their result meets: a table or a column."""
    for node, left, right in pairs:
        if (seen_shape(left, file, context), seen_shape(right, file, context)) != ((sizes[0],), (sizes[1],)):
            continue
        meets = [other for _, *both in pairs for one, other in (both, both[::-1]) if one is node]
        rows = {shape[0] for one in meets if (shape := seen_shape(one, file, context)) is not None and len(shape) == 2}
        if len(rows & set(sizes)) == 1:
            return [_Clash(left if sizes[0] in rows else right, (0,), 2)]
    return []


def _behind(
    first: _Clash, pairs: list[tuple[ast.AST, ast.expr, ast.expr]], file: SourceFile, context: Context
) -> list[_Clash]:
    """What the result of a clash would meet next with the same fault: `std` of `(image - mean) / std`."""
    shape = seen_shape(first.part, file, context)
    return [
        _Clash(part, first.kept, first.rank)
        for _, left, right in pairs
        for part, other in ((left, right), (right, left))
        if part is not first.part
        and any(one is first.part for one in walk(other))
        and seen_shape(part, file, context) == shape
    ]


def _clash(
    node: ast.AST,
    pair: tuple[ast.expr, ast.expr],
    refused: tuple[tuple[int, int], int],
    file: SourceFile,
    context: Context,
) -> _Clash | None:
    """Two operands that the message may speak of, where the smaller one fits the other's axes in one way."""
    left, right = (seen_shape(one, file, context) for one in pair)
    sizes, dimension = refused
    if left is None and right is not None and is_row_of_layer(pair[0], file, context):
        left = _row_beside(right, sizes[0])
    elif right is None and left is not None and is_row_of_layer(pair[1], file, context):
        right = _row_beside(left, sizes[1])
    if left is None or right is None or len(left) == len(right):
        return None
    rank = max(len(left), len(right))
    orders = (sizes, sizes[::-1]) if isinstance(node, ast.Call) else (sizes,)  # `masked_fill` names the mask first
    at = dimension - rank
    if not any(_says(left, first, at) and _says(right, second, at) for first, second in orders):
        return None
    part, small, large = (pair[0], left, right) if len(left) < len(right) else (pair[1], right, left)
    if at == -1 and small and small[-1] is None:
        small = (*small[:-1], sizes[0] if small is left else sizes[1])
    if part is pair[0] and isinstance(node, ast.AugAssign):
        return None  # what is written in place keeps its shape
    ways = [kept for kept in itertools.combinations(range(rank), len(small)) if _fits(small, large, kept)]
    if len(ways) > 1 and _hides_keys(node):
        ways = [kept for kept in ways if kept[-1] == rank - 1 and kept[0] == 0]
    if len(ways) > 1 and rank > 3 and is_row_of_layer(part, file, context):
        ways = [kept for kept in ways if kept == (0, 1)]  # the features of a sample are channels, not rows of pixels
    return _Clash(part, ways[0], rank) if small and len(ways) == 1 else None


def _row_beside(images: Shape, size: int) -> Shape | None:
    """The shape of a row of features for each sample, beside what a convolution made of the samples."""
    return (images[0], size) if SPATIAL in images else None


def _says(shape: Shape, size: int, at: int) -> bool:
    """Whether a shape has a size, or one that is not known, at an axis that is counted from the end."""
    return -at > len(shape) or (are_one(shape[at], size) and (shape[at] != 1 or size == 1))


def _fits(small: Shape, large: Shape, kept: tuple[int, ...]) -> bool:
    """Whether the sizes of a smaller operand are those of the axes that it would be laid on."""
    return all(one is not None and one != 1 and large[at] in (one, None) for one, at in zip(small, kept, strict=True))


def _hides_keys(node: ast.AST) -> bool:
    """Whether scores get what a softmax makes 0: `masked_fill(mask, -inf)`, `scores + (1 - mask) * -1e9`."""
    if isinstance(node, ast.BinOp):
        low = _ADDED if isinstance(node.op, ast.Add) else _TAKEN if isinstance(node.op, ast.Sub) else None
        return low is not None and low.search(ast.unparse(node)) is not None
    if not isinstance(node, ast.Call) or getattr(node.func, "attr", "") not in _FILLS or len(node.args) != 2:
        return False
    text = ast.unparse(node.args[1])
    return (
        "inf" in text or ".min" in text or re.fullmatch(r"-\s*1e\+?\d+|-\d+(\.0)?e\d+|-\d{4,}(\.0)?", text) is not None
    )


def _root(node: ast.expr) -> str | None:
    """The one name that an operand is made of, element by element: `keep` of `(1 - keep).sqrt()`."""
    names = {one.id for one in walk(node) if isinstance(one, ast.Name)}
    is_plain = all(
        isinstance(one, (ast.Name, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop, ast.expr_context))
        or (isinstance(one, (ast.Call, ast.Attribute)) and _is_elementwise(one))
        for one in walk(node)
    )
    return names.pop() if len(names) == 1 and is_plain else None


def _is_elementwise(node: ast.Call | ast.Attribute) -> bool:
    func = node.func if isinstance(node, ast.Call) else node
    return isinstance(func, ast.Attribute) and func.attr in _ELEMENTWISE


def _made(name: str | None, found: list[_Clash], at: ast.stmt, file: SourceFile, program: Program) -> ast.expr | None:
    """The value that a local name is bound to, where all that reads it are operands that lack the same axes."""
    scope = scope_of(at, file, program)
    made = definitions(name, at, scope) if name is not None and scope is not None else []
    if (
        len(made) != 1
        or not isinstance(made[0], ast.Assign)
        or dotted_name(made[0].targets[0]) != name
        or scope is None
    ):
        return None
    parts = {one for clash in found if clash.index == found[0].index for one in walk(clash.part)}
    reads = [
        one for one in walk(scope) if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)
    ]
    others = list(resolver_of(program).behind(Value(reads[0], file))) if reads else []
    is_only = bool(reads) and all(one in parts for one in reads) and len(others) == 1
    return made[0].value if is_only else None
