"""What the source shows of a value: is it a number, can it be 0, can it be negative, is it bounded."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from explainer.source.file import SourceFile
from explainer.source.name import Names, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_SHIFT = 0.5
_DEPTH = 6
_KEEP = frozenset(
    {"sum", "mean", "float", "double", "half", "unsqueeze", "squeeze", "view", "reshape", "flatten", "expand", "expand_as", "to"}
    | {"contiguous", "clone", "detach", "max", "min", "amax", "amin", "transpose", "permute", "median", "t", "type", "type_as"}
)  # fmt: skip
_NOT_NEGATIVE = frozenset(
    {"relu", "sigmoid", "softmax", "abs", "norm", "vector_norm", "std", "var", "square", "mse_loss", "l1_loss", "cross_entropy"}
    | {"count_nonzero", "cdist", "pairwise_distance", "smooth_l1_loss", "sqrt", "exp", "softplus", "rand", "bincount", "cumprod"}
    | {"binary_cross_entropy", "nll_loss", "huber_loss", "one_hot", "dist"}
)  # fmt: skip
_COUNTS = frozenset(
    {"ne", "eq", "gt", "lt", "ge", "le", "isfinite", "logical_not", "logical_and", "logical_or", "bool", "eye"}
)
_FILLS = frozenset({"fill_diagonal_", "fill_diagonal", "masked_fill", "masked_fill_", "triu", "tril"})
_NUMBERS = frozenset(
    {
        "item",
        "size",
        "numel",
        "dim",
        "ones",
        "ones_like",
        "full",
        "tensor",
        "arange",
        "linspace",
        "as_tensor",
        "full_like",
    }
)
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_ONES = frozenset({"ones", "ones_like", "new_ones"})
_ADDS = frozenset({"index_add", "index_add_", "scatter_add", "scatter_add_"})
_BUILTINS = ("len", "int", "float", "max", "min", "sum", "round")
_BOUNDED = frozenset({"sigmoid", "tanh", "softmax", "log_softmax", "sin", "cos", "logsigmoid", "normalize"})


@dataclass(frozen=True, slots=True)
class Sign:
    """`positive`: above 0 by at least an epsilon. `not_negative`: 0 or more. `inside`: strictly between -1 and 1.

    `bounded`: not large. `counts`: a number of things, so that its smallest value but 0 is 1.
    """

    positive: bool = False
    not_negative: bool = False
    inside: bool = False
    bounded: bool = False
    counts: bool = False
    is_number: bool = False


UNKNOWN = Sign()


def is_positive(sign: Sign) -> bool:
    """Whether a value stays above 0, or is a plain number of the program, such as a size."""
    return sign.positive or sign.is_number


@dataclass(frozen=True, slots=True)
class _At:
    """Where an expression stands: its file, what the parameters round it stand for, how many names were followed to it."""

    file: SourceFile
    program: Program
    arguments: Mapping[str, Value] = field(default_factory=dict)
    depth: int = 0

    @property
    def names(self) -> Names:
        return self.program.names(self.file)

    def deeper(self, value: Value | None = None) -> _At:
        """One name further, in the file of what it stands for."""
        file, arguments = (self.file, self.arguments) if value is None else (value.file, value.arguments)
        return _At(file, self.program, arguments, self.depth + 1)


def value_of(node: ast.expr, file: SourceFile, program: Program) -> Sign:
    """What the source shows of an expression."""
    return _of(node, _At(file, program))


def _of(node: ast.expr, at: _At) -> Sign:
    names = at.names
    number = number_of(node, names)
    if number is not None:
        return Sign(
            positive=number > 0, not_negative=number >= 0, inside=abs(number) < 1, bounded=abs(number) < 80, is_number=True
        )  # fmt: skip
    if at.depth > _DEPTH:
        return UNKNOWN
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Invert, ast.Not))):
        return Sign(not_negative=True, bounded=True, counts=True)
    if isinstance(node, ast.BinOp):
        return _of_operator(node, at)
    if isinstance(node, ast.Call):
        return _of_call(node, at)
    if isinstance(node, ast.Subscript):
        return _of_subscript(node, at)
    return _of_name(node, at)


def _of_operator(node: ast.BinOp, at: _At) -> Sign:
    left, right = (_of(one, at.deeper()) for one in (node.left, node.right))
    numbers = left.is_number and right.is_number
    if isinstance(node.op, ast.Add):
        positive = any(
            (one.positive and not _is_shift(side, other, at.names)) or is_epsilon(side)
            for side, one, other in ((node.left, left, right), (node.right, right, left))
        )
        return Sign(
            positive=positive, not_negative=positive or (left.not_negative and right.not_negative), is_number=numbers
        )
    if isinstance(node.op, (ast.Mult, ast.Div)):
        positive, sign = left.positive and right.positive, left.not_negative and right.not_negative
        same = ast.dump(node.left) == ast.dump(node.right)
        counts = left.counts and right.counts and isinstance(node.op, ast.Mult)
        bounded = counts and left.bounded and right.bounded
        return Sign(positive=positive, not_negative=sign or same, counts=counts, bounded=bounded, is_number=numbers)
    if isinstance(node.op, ast.Pow):
        even = number_of(node.right, at.names) in {2.0, 4.0}
        return Sign(positive=left.positive, not_negative=even or left.not_negative, is_number=numbers)
    if isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return Sign(not_negative=True, bounded=True, counts=True)
    if isinstance(node.op, ast.Sub):
        one = number_of(node.left, at.names) == 1.0
        probability = one and _is_probability(node.right, at)
        if one and right.counts and right.bounded:  # the other half of a mask
            return right
        return Sign(not_negative=probability, bounded=left.bounded and right.bounded, is_number=numbers)
    return Sign(is_number=numbers)


def _is_shift(node: ast.expr, other: Sign, names: Names) -> bool:
    """Whether a number moves a value of unknown sign: `x + 1`. `x + 1e-6` is taken at its word, whatever the source shows of x."""
    number = number_of(node, names)
    return number is not None and number >= _SHIFT and not (other.not_negative or other.is_number)


def is_epsilon(node: ast.expr) -> bool:
    """Whether a name calls itself an epsilon: `eps`, `self.eps`, `EPSILON`."""
    name = (dotted_name(node) or "").rpartition(".")[2].lower().strip("_")
    return name in ("eps", "epsilon", "tiny", "delta") or name.endswith("_eps") or name.startswith("eps_")


def _is_probability(node: ast.expr, at: _At) -> bool:
    call = definition_of(node, at.file, at.program) if isinstance(node, ast.Name) else node
    if not isinstance(call, ast.Call):
        return False
    called = at.names.qualified(call.func) or ""
    return called.rpartition(".")[2] in ("sigmoid", "softmax") or getattr(call.func, "attr", "") in (
        "sigmoid",
        "softmax",
    )


def _of_call(node: ast.Call, at: _At) -> Sign:
    names = at.names
    called = names.qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in ("math", "numpy") or called in _BUILTINS:
        return Sign(is_number=called != "sum", not_negative=called == "len", bounded=True)
    is_method = isinstance(node.func, ast.Attribute) and not owner.startswith("torch")
    subject = next(iter(node.args), None)
    if is_method and isinstance(node.func, ast.Attribute):
        subject, last = node.func.value, node.func.attr
    if last in ("clamp", "clamp_min", "clip", "clamp_", "clamp_min_"):
        return _of_clamp(node, names, is_method=is_method)
    if last in _NUMBERS:
        return Sign(is_number=True, bounded=True)
    if last in _COUNTS:
        return Sign(not_negative=True, bounded=True, counts=True)
    if last in ("where", "maximum"):
        return _of_choice(node, at)
    if last in _ADDS and is_method and subject is not None:
        return _of_sum(node, at) if _is_zeros(subject) else UNKNOWN
    returned = _of_function(node, at) if not is_method and isinstance(node.func, ast.Name) else None
    if returned is not None:
        return returned
    inner = _of(subject, at.deeper()) if subject is not None else UNKNOWN
    return _of_method(last, node, inner, names)


def _of_function(node: ast.Call, at: _At) -> Sign | None:
    """What a function of the program returns, where that is one expression; None where the program has no such function."""
    resolver, value = resolver_of(at.program), Value(node, at.file, at.arguments)
    target = resolver.function_of(node, value)
    if target is None:
        return None
    made = resolver.returns_of(target, node, value)
    return _of(made[0].node, at.deeper(made[0])) if len(made) == 1 else UNKNOWN


def _of_choice(node: ast.Call, at: _At) -> Sign:
    """`maximum(x, low)` and `where(condition, x, safe)`, which is what a careful program writes."""
    signs = [_of(one, at.deeper()) for one in node.args[-2:]]
    if len(node.args) == 2:  # maximum
        return Sign(positive=any(one.positive for one in signs), not_negative=any(one.not_negative for one in signs))
    safe = any(one.is_number for one in signs)
    return Sign(
        positive=safe and any(one.positive for one in signs),
        not_negative=all(one.not_negative for one in signs),
        inside=safe,
        bounded=safe,
    )


def _of_method(last: str, node: ast.Call, inner: Sign, names: Names) -> Sign:
    """A function or method by its name, with what is known of what it is applied to."""
    if last in _KEEP:
        bounded = inner.bounded and last != "sum"
        return Sign(positive=inner.positive, not_negative=inner.not_negative, counts=inner.counts, bounded=bounded)
    if last in _FILLS and inner.counts:
        filled = number_of(node.args[-1] if node.args else None, names)
        return inner if filled in {0.0, 1.0} or last in ("triu", "tril") else UNKNOWN
    if last == "pow":
        even = number_of(node.args[-1] if node.args else None, names) in {2.0, 4.0}
        return Sign(positive=inner.positive, not_negative=even or inner.not_negative)
    if last == "add" and node.args:
        added = node.args[-1]
        number = number_of(added, names)
        return Sign(positive=is_epsilon(added) or (number is not None and number > 0))
    if last == "sqrt":
        return Sign(positive=inner.positive, not_negative=True)
    return Sign(not_negative=last in _NOT_NEGATIVE, bounded=last in _BOUNDED)


def _of_clamp(node: ast.Call, names: Names, *, is_method: bool) -> Sign:
    """A clamp's bounds: `clamp(x, low, high)`, `x.clamp_min(low)`, `clamp(min=..., max=...)`."""
    given: list[ast.expr] = list(node.args if is_method else node.args[1:])
    bounds = {one.arg: one.value for one in node.keywords}
    low = bounds.get("min", given[0] if given else None)
    high = bounds.get("max", given[1] if len(given) > 1 else None)
    least, most = number_of(low, names), number_of(high, names)
    named = low is not None and (is_epsilon(low) or (least is None and not isinstance(low, ast.Constant)))
    inside = (least is None or least > -1) and (most is None or most < 1) and high is not None
    return Sign(
        positive=named or (least is not None and least > 0),
        not_negative=named or (least is not None and least >= 0),
        inside=inside,
        bounded=high is not None,
    )


def _of_subscript(node: ast.Subscript, at: _At) -> Sign:
    """`x[x > 0]` is what the mask lets through; `x.shape[1]` is a number; another part of a value is as the value."""
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return Sign(is_number=True, not_negative=True, bounded=True)
    index = node.slice
    if (
        isinstance(index, ast.Compare)
        and ast.dump(index.left) == ast.dump(node.value)
        and isinstance(index.ops[0], ast.Gt)
    ):
        return Sign(positive=True, not_negative=True)
    return _of(node.value, at.deeper())


def _of_name(node: ast.expr, at: _At) -> Sign:
    name = dotted_name(node)
    if name is None:
        return UNKNOWN
    value = definition_of(node, at.file, at.program)
    # What a difference is called is no small number: `delta = a - b`.
    if is_epsilon(node) and not isinstance(value, (ast.BinOp, ast.Subscript)):
        return Sign(positive=True, not_negative=True, is_number=True)
    if value is None:
        given = at.arguments.get(name)
        return _of(given.node, at.deeper(given)) if given is not None else UNKNOWN
    filled = _filled(name, node, at) if _is_zeros(value) else None
    return filled if filled is not None else _of(value, at.deeper())


def _is_zeros(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] in _ZEROS


def _filled(name: str, node: ast.expr, at: _At) -> Sign | None:
    """What `degree.index_add_(0, target, ones)` has made of zeros before a place, where nothing else writes them."""
    scope = at.names.function_of(node) or at.file.tree
    nodes = [one for one in (walk(scope) if scope is not None else ()) if start_of(one) < start_of(node)]
    methods = [
        (one, one.func.attr)
        for one in nodes
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and dotted_name(one.func.value) == name
    ]
    writes = [(call, method) for call, method in methods if method.endswith("_")]
    stores = [
        one
        for one in nodes
        if (isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and dotted_name(one.value) == name)
        or (isinstance(one, ast.AugAssign) and dotted_name(one.target) == name)
    ]
    if stores:
        return UNKNOWN
    return _of_sum(writes[0][0], at) if len(writes) == 1 and writes[0][1] in _ADDS else None


def _of_sum(node: ast.Call, at: _At) -> Sign:
    """What is added by index into zeros: of ones it counts, of what is not negative it is not either."""
    value = next(
        (one.value for one in node.keywords if one.arg in ("source", "src")), node.args[-1] if node.args else None
    )
    if value is None:
        return UNKNOWN
    while isinstance(value, ast.Name) and value.id in at.arguments:
        given = at.arguments[value.id]
        value, at = given.node, at.deeper(given)
    made = definition_of(value, at.file, at.program) if isinstance(value, ast.Name) else value
    if isinstance(made, ast.Call) and (dotted_name(made.func) or "").rpartition(".")[2] in _ONES:
        return Sign(not_negative=True, counts=True)
    sign = _of(value, at.deeper())
    return Sign(not_negative=sign.not_negative, counts=sign.counts)


def definition_of(node: ast.expr, file: SourceFile, program: Program) -> ast.expr | None:
    """The one value that a name has at a place: its last assignment before it, or the attribute's in its class."""
    name = dotted_name(node)
    names = program.names(file)
    if name is None:
        return None
    if name.startswith("self."):
        owner = names.class_of(node)
        return names.attribute_value(owner, name.removeprefix("self.")) if owner else None
    scope = names.function_of(node) or file.tree
    if scope is None:
        return None
    place = (node.lineno, node.col_offset)
    before = [one for one in names.assignments(name, scope) if (one.end_lineno or 0, one.end_col_offset or 0) < place]
    last = before[-1] if before else None
    if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Tuple) and isinstance(last.value, ast.Tuple):
        pairs = zip(last.targets[0].elts, last.value.elts, strict=False)
        return next((value for target, value in pairs if dotted_name(target) == name), None)
    if not isinstance(last, ast.Assign) or dotted_name(last.targets[0]) != name:
        return None
    loops = [one for one in walk(scope) if isinstance(one, (ast.For, ast.AsyncFor)) and name in set(bound_names(one))]
    return None if loops else last.value
