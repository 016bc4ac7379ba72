"""`torch.clamp(snr, max=gamma) / snr` is 1 up to the cap, at 0 as well: `torch.where(snr > gamma, gamma / snr, 1)`.

0 / 0 stands there for a limit that the formula has from both sides. Only of what varies without steps (a ratio, a power, a norm):
of a count, or of a share of one, 0 means that there is nothing, and what it is to weigh is the author's to say. Only of what has no
gradient, which the branch that is not taken would make NaN.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.blame import nearness
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import replace_whole, spell
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_RATIO = re.compile(r"(?:^|_)snrs?(?:_|$)|signal_to_noise", re.IGNORECASE)
_SMOOTH = frozenset(
    {"exp", "sqrt", "rsqrt", "square", "pow", "norm", "cumprod", "sigmoid", "cos", "softplus", "vector_norm"}
)
_COUNTS = frozenset(
    {"sum", "mean", "bincount", "numel", "len", "count", "count_nonzero", "histc", "unique", "cumsum", "nansum"}
    | {"size", "shape", "long", "int", "randint", "argmax", "scatter_add", "scatter_add_", "index_add", "index_add_"}
)
_DIVIDES = ("torch.div", "torch.divide", "torch.true_divide")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each quotient of a capped value by the value."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            parts = _quotient(node, names)
            if parts is None or not isinstance(node, ast.expr):
                continue
            share, divisor = parts
            cap = _cap(_meant(share, file), divisor, names)
            if cap is None or _is_tensor(Value(cap, file), context.program):
                continue
            if not _has_a_limit(Value(divisor, file), context.program):
                continue
            most, of = file.segment(cap), file.segment(divisor)
            new = f"{spell(names, 'torch.where')}({of} > {most}, {most} / {of}, 1)"
            yield Proposal(
                edits=(replace_whole(file, node, new),),
                culprit=culprit_of(file, node, f"is 0 / 0 where `{of}` is 0, and 1 up to there"),
                belief=1.5 + nearness(file, node, context),
            )


def _quotient(node: ast.AST, names: Names) -> tuple[ast.expr, ast.expr] | None:
    """What is divided and by what, where that is a name, an attribute or an element."""
    parts: tuple[ast.expr, ast.expr] | None = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        parts = node.left, node.right
    elif isinstance(node, ast.Call) and names.is_call(node, *_DIVIDES) and len(node.args) == 2 and not node.keywords:
        parts = node.args[0], node.args[1]
    return parts if parts is not None and isinstance(parts[1], (ast.Name, ast.Attribute, ast.Subscript)) else None


def _meant(node: ast.expr, file: SourceFile) -> ast.expr:
    """An expression, or what its name is bound to once, above it."""
    if not isinstance(node, ast.Name):
        return node
    found = [one for one in bounds_of(scope_of(node, file)) if one.name == node.id]
    is_above = len(found) == 1 and isinstance(found[0].statement, ast.Assign) and found[0].pick is None
    return found[0].node if is_above and start_of(found[0].statement) < start_of(node) else node


def _cap(share: ast.expr, divisor: ast.expr, names: Names) -> ast.expr | None:
    """The number at which a share caps the divisor: `clamp(d, max=g)`, `torch.minimum(d, torch.full_like(d, g))`."""
    if isinstance(share, ast.Subscript) and _is_number(share.slice, 0):
        return _least(share.value, divisor, names)  # `.min(dim=1)[0]`
    if isinstance(share, ast.Attribute) and share.attr == "values":
        return _least(share.value, divisor, names)
    if not isinstance(share, ast.Call):
        return None
    given = [*share.args]
    called = (names.qualified(share.func) or "").removeprefix("torch.")
    if isinstance(share.func, ast.Attribute) and not names.is_call(share, f"torch.{called}"):
        given, called = [share.func.value, *given], share.func.attr
    if not given or not _is_same(given[0], divisor):
        return None
    named = {one.arg: one.value for one in share.keywords}
    if called == "clamp_max" or (called in ("clamp", "clip") and len(given) == 1 and list(named) == ["max"]):
        cap = given[1] if called == "clamp_max" and len(given) == 2 else named.get("max")
        return cap if cap is not None and _is_scalar(cap) else None
    is_least = called in ("minimum", "min", "fmin") and len(given) == 2 and not named
    return _constant(given[1], names) if is_least else None


def _least(node: ast.expr, divisor: ast.expr, names: Names) -> ast.expr | None:
    """`torch.stack([d, g * torch.ones_like(d)], dim=1).min(dim=1)`, as Min-SNR is often written."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "min":
        return None
    stack = node.func.value
    if not names.is_call(stack, "torch.stack") or not isinstance(stack, ast.Call) or not stack.args:
        return None
    row = stack.args[0]
    along = {one.arg: ast.dump(one.value) for one in (*stack.keywords, *node.keywords) if one.arg == "dim"}
    is_same_axis = [ast.dump(one.value) for one in (*stack.keywords, *node.keywords)] == [along.get("dim")] * 2
    if not isinstance(row, (ast.List, ast.Tuple)) or len(row.elts) != 2 or not is_same_axis:
        return None
    return _constant(row.elts[1], names) if _is_same(row.elts[0], divisor) else None


def _constant(node: ast.expr, names: Names) -> ast.expr | None:
    """The number of a tensor that is the same everywhere: `torch.full_like(d, g)`, `g * torch.ones_like(d)`, `torch.tensor(g)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if names.is_call(one, "torch.ones_like") and _is_scalar(other):
                return other
    if not isinstance(node, ast.Call):
        return None
    is_full = names.is_call(node, "torch.full_like") and len(node.args) == 2
    is_made = names.is_call(node, "torch.tensor", "torch.as_tensor") and len(node.args) == 1
    return node.args[-1] if (is_full or is_made) and _is_scalar(node.args[-1]) else None


def _is_scalar(node: ast.expr) -> bool:
    """Whether an expression may be a cap: a positive number, or the name of a setting."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and node.value > 0
    return isinstance(node, (ast.Name, ast.Attribute)) or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _is_tensor(cap: Value, program: Program) -> bool:
    """Whether a cap is computed by torch: it may be 0 for some elements."""
    return any(
        isinstance(one.node, ast.Call)
        and (program.names(one.file).qualified(one.node.func) or "").startswith("torch.")
        for one in resolver_of(program).behind(cap)
    )  # fmt: skip


def _is_number(node: ast.expr, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number


def _is_same(one: ast.expr, other: ast.expr) -> bool:
    return ast.unparse(one) == ast.unparse(other)


def _has_a_limit(divisor: Value, program: Program) -> bool:
    """Whether a divisor varies without steps, and has no gradient."""
    if provenance_of(program).trace(divisor).live:
        return False
    behind = list(_behind(divisor, program, 0))
    words = {word for one in behind for word in _words(one)}
    if words & _COUNTS:
        return False
    name = dotted_name(divisor.node.value if isinstance(divisor.node, ast.Subscript) else divisor.node) or ""
    is_power = any(
        isinstance(one, ast.BinOp) and isinstance(one.op, (ast.Div, ast.Pow)) for each in behind for one in walk(each)
    )
    return _RATIO.search(name.rpartition(".")[2]) is not None or is_power or bool(words & _SMOOTH)


def _behind(value: Value, program: Program, depth: int) -> Iterator[ast.expr]:
    """The expressions that a divisor is computed by, through names and elements."""
    if depth > _DEPTH:
        return
    resolver = resolver_of(program)
    for node in _computed(value.node):
        if isinstance(node, (ast.Name, ast.Attribute)):
            for one in resolver.behind(Value(node, value.file, value.arguments)):
                if one.node is not value.node:
                    yield one.node
                    yield from _behind(one, program, depth + 1)


def _computed(node: ast.expr) -> Iterator[ast.AST]:
    """The nodes of an expression without those that only say which elements are meant."""
    picks = {part for one in walk(node) if isinstance(one, ast.Subscript) for part in walk(one.slice)}
    yield from (one for one in walk(node) if one not in picks)


def _words(node: ast.expr) -> Iterator[str]:
    for one in _computed(node):
        if isinstance(one, ast.Call):
            yield getattr(one.func, "attr", getattr(one.func, "id", ""))
        elif isinstance(one, ast.Attribute):
            yield one.attr
