"""What a round adds to a running sum, differentiated by itself: `part.backward()` for `total.backward()`.

    loss = loss + share * criterion(net(x), y)        part = share * criterion(net(x), y)
    loss.backward()                                   loss = loss + part.detach()
                                                      part.backward()

The gradients add up to those of one backward behind the loop. Only where each round sends back what it has added, no more and no
less: not a sum that began with a graph, nor one whose graph is kept on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import edit_of, insert_before
from explainer.fix.text.rewrite import bracketed, free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import is_leaf
from explainer.source.loop.backward import Backward
from explainer.source.loop.carried import Carried
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.entry import has_graph
from explainer.source.value.flow import Reach, flow_of
from explainer.source.value.lineage import definitions, reads, scope_of, value_of

_PART = "part"


def summed_in(loss: ast.expr, one: Carried, program: Program) -> ast.expr | None:
    """The sum where a loss is the sum itself or that times something without a graph; None for any other loss."""
    if dotted_name(loss) == one.name:
        return loss
    return next((side for side, factor in _scaled(loss) if dotted_name(side) == one.name
                 and not has_graph(factor, one.step, one.file, program)), None)  # fmt: skip


def is_scaled_alike(loss: ast.expr, one: Carried, program: Program) -> bool:
    """Whether a sum is scaled alike in each round: of a mean over the rounds so far no part is one round's."""
    scope = scope_of(one.loop, one.file, program)
    names = {
        name for side, factor in _scaled(loss) if dotted_name(side) == one.name for name in reads(factor, graph=False)
    }
    made = [each for name in names for each in definitions(name, one.step, scope)] if scope is not None else []
    return not any(one.loop.lineno <= each.lineno <= (one.loop.end_lineno or 0) for each in made)


def _scaled(loss: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What may be the sum in `sum / n` and `n * sum`, with the factor."""
    if isinstance(loss, ast.BinOp) and isinstance(loss.op, (ast.Mult, ast.Div)):
        yield loss.left, loss.right
        if isinstance(loss.op, ast.Mult):
            yield loss.right, loss.left


def begins_with_graph(one: Carried, program: Program) -> bool:
    """Whether a sum has a graph before the loop, which a part alone would leave out."""
    scope = scope_of(one.loop, one.file, program)
    made = definitions(one.name, one.loop, scope) if scope is not None else []
    values = [value for each in made if (value := value_of(each, one.name)) is not None]
    return any(
        flow_of(program).reach_of(each, one.file) != Reach.NONE and not is_leaf(each, one.file, program)
        for each in values
    )


def part_by_itself(
    one: Carried, found: Sequence[tuple[Backward, ast.expr]], program: Program
) -> tuple[Edit, ...] | None:
    """The edits that name what a round adds, add it without its graph and send it back: each backward with the sum in its loss.

    None where that is another gradient.
    """
    file, binding = one.file, one.bindings[0]
    span = _added(binding, one.name, file) if len(one.bindings) == 1 else None
    scope = scope_of(one.loop, file, program)
    if span is None or one.start is None or scope is None:
        return None
    if any(each.retains or each.statement.lineno <= binding.lineno for each, _ in found):
        return None
    (start, end), text = span
    name = free_name(_PART, scope)
    return (
        insert_before(file, binding, f"{name} = ({text})" if "\n" in text else f"{name} = {text}"),
        Edit(file=file.path, start=start, end=end, new=f"{name}.detach()"),
        *(edit_of(file, summed, name) for _, summed in found),
    )


def _added(binding: ast.stmt, name: str, file: SourceFile) -> tuple[tuple[int, int], str] | None:
    """What a statement adds to a sum, and where it stands: all but the sum itself, which is its first or last operand."""
    value = binding.value if isinstance(binding, (ast.Assign, ast.AugAssign)) else None
    if value is None or (isinstance(binding, ast.Assign) and len(binding.targets) != 1):
        return None
    first, last = (value, value) if isinstance(binding, ast.AugAssign) else _terms(value, name)
    if first is None or (isinstance(binding, ast.AugAssign) and not isinstance(binding.op, ast.Add)):
        return None
    span = bracketed(file, first)[0], bracketed(file, last)[1]
    text = file.segment(first) if first is last else file.text[slice(*span)]
    try:
        part = ast.parse(f"({text})", mode="eval").body
    except SyntaxError:  # brackets in between
        return None
    return (span, text) if name not in reads(part, graph=False) else None


def _terms(value: ast.expr, name: str) -> tuple[ast.expr | None, ast.expr]:
    """The first and the last of the terms that stand beside a sum."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and dotted_name(value.right) == name:
        return value.left, value.left
    first = _first_sum(value)
    if first is None or not isinstance(first.op, ast.Add) or dotted_name(first.left) != name:
        return None, value
    return first.right, value.right if isinstance(value, ast.BinOp) else value


def _first_sum(value: ast.expr) -> ast.BinOp | None:
    """`a + b` of `a + b - c`."""
    first = None
    while isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)):
        first, value = value, value.left
    return first
