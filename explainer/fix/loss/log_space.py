"""The logarithm of an expression as text that forms neither what is exponentiated nor what rounds to 0.

`log(exp(s)[i] / exp(s).sum(d))` is `s[i] - s.logsumexp(d)`: products become sums, sums and means become `logsumexp`, and what picks,
moves or masks elements picks, moves or masks them of the logarithm.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field

from explainer.fix.text.rewrite import free_name, operand, spell
from explainer.source.file import SourceFile
from explainer.source.name import Names, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import flow_of
from explainer.source.value.number import number_of
from explainer.source.value.sign import definition_of

FUNCTIONAL = "torch.nn.functional"
MAX_EPSILON = 1e-5
_DEPTH = 12
# What takes elements of a tensor, or puts them elsewhere, and computes nothing.
_MOVES = frozenset(
    ("diag", "diagonal", "gather", "index_select", "masked_select", "unsqueeze", "squeeze", "view", "reshape", "flatten", "t",
     "transpose", "permute", "narrow", "select", "expand", "expand_as", "contiguous", "take_along_dim", "float", "to", "clone", "repeat")
)  # fmt: skip
_SUMS = frozenset(("dim", "axis", "keepdim"))
# What may be computed again: functions of values, cheap beside a model and without chance.
_REPEATABLE = _MOVES | {
    "softmax", "sigmoid", "exp", "sum", "mean", "masked_fill", "size", "numel", "dim", "long", "int", "bool", "double", "half", "mm",
    "matmul", "mul", "div", "add", "sub", "neg", "abs", "pow", "sqrt", "clamp", "clamp_min", "argmax", "log",
}  # fmt: skip


@dataclass(slots=True)
class Log:
    """The text of a logarithm.

    `scores` are the exponentials that it does without, `names` those that it sees through. `bound` are exponentials, or a softmax,
    with a name whose scores have none: the text reads these by the name that is given here.
    """

    text: str
    is_atom: bool
    scores: list[ast.Call] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    bound: dict[str, ast.Call] = field(default_factory=dict)

    @property
    def operand(self) -> str:
        """The text as an operand of what binds tighter."""
        return self.text if self.is_atom else f"({self.text})"

    def as_(self, text: str, *others: Log, is_atom: bool = True) -> Log:
        """Another text of what this and other logarithms do without."""
        scores = [*self.scores, *(one for other in others for one in other.scores)]
        bound = dict(self.bound)
        for other in others:
            bound |= other.bound
        return Log(text, is_atom, scores, self.names.union(*(one.names for one in others)), bound)


class LogSpace:
    """Writes logarithms for one place of a program: `use`, where all names must still mean what they meant."""

    def __init__(self, use: ast.expr, file: SourceFile, program: Program) -> None:
        self._use, self._file, self._program = use, file, program
        self._names = program.names(file)

    def log(self, node: ast.expr, depth: int = 0) -> Log | None:
        """The logarithm of an expression that is made of exponentials; None where there is no such form."""
        if depth > _DEPTH:
            return None
        if isinstance(node, ast.Name):
            return self._of_name(node, depth + 1)
        if isinstance(node, ast.BinOp):
            return self._of_operator(node, depth + 1)
        if isinstance(node, ast.Subscript):
            inner = self.log(node.value, depth + 1)
            return inner.as_(f"{inner.operand}[{self._file.segment(node.slice)}]") if inner is not None else None
        return self._of_call(node, depth + 1) if isinstance(node, ast.Call) else None

    def _of_name(self, node: ast.Name, depth: int) -> Log | None:
        value = followed(node, self._use, self._file, self._program)
        if value is not node:
            found = self.log(value, depth)
            if found is not None and (found.is_atom or not isinstance(value, ast.Call) or found.scores != [value]):
                found.names.add(node.id)
                return found
        made = definition_of(node, self._file, self._program)
        scope = self._names.function_of(node) or self._file.tree
        if not isinstance(made, ast.Call) or scope is None:
            return None
        if argument_of(made, self._names, "exp") is not None:
            name = free_name(f"log_{node.id}", scope)
            return Log(name, True, [made], {node.id}, {name: made})  # noqa: FBT003
        inner = argument_of(made, self._names, "softmax")
        rest = self._dimensions(made, inner) if inner is not None else None
        name = free_name(f"{node.id}_scores", scope)
        text = f"{spell(self._names, 'torch.log_softmax')}({name}, {rest})"
        return Log(text, True, [made], {node.id}, {name: made}) if rest else None  # noqa: FBT003

    def _of_operator(self, node: ast.BinOp, depth: int) -> Log | None:
        if isinstance(node.op, ast.Pow):
            power, inner = number_of(node.right, self._names), self.log(node.left, depth)
            text = f"{self._file.segment(node.right)} * {inner.operand}" if inner is not None else ""
            return inner.as_(text, is_atom=False) if inner is not None and power is not None else None
        if isinstance(node.op, ast.Sub):
            return self._without_diagonal(node, depth)
        left, right = self.log(node.left, depth), self.log(node.right, depth)
        if isinstance(node.op, ast.Add):
            return self._of_sum(node, left, right)
        if not isinstance(node.op, (ast.Mult, ast.Div)) or (left is None and right is None):
            return None
        left, right = left or self._of_data(node.left), right or self._of_data(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left.as_(f"{left.text} + {right.text}", right, is_atom=False)
        return left.as_(f"{left.text} - {right.operand}", right, is_atom=False)

    def _of_sum(self, node: ast.BinOp, left: Log | None, right: Log | None) -> Log | None:
        if left is not None and right is not None:
            text = f"{spell(self._names, 'torch.logaddexp')}({left.text}, {right.text})"
            return left.as_(text, right)
        other, inner = number_of(node.right if left is not None else node.left, self._names), left or right
        # Behind a softmax of torch an epsilon is guard enough; no epsilon guards an exponential.
        is_by_hand = inner is not None and any(argument_of(one, self._names, "exp") is not None for one in inner.scores)
        return inner if is_by_hand and other is not None and 0 < other <= MAX_EPSILON else None

    def _of_data(self, node: ast.expr) -> Log | None:
        """A weight or a mask: its logarithm as it is, -inf where it is 0; not of what has a gradient there."""
        number = number_of(node, self._names)
        if number is not None or flow_of(self._program).reach_of(node, self._file):
            return None
        return Log(f"{operand(self._file, node)}.log()", is_atom=True)

    def _without_diagonal(self, node: ast.BinOp, depth: int) -> Log | None:
        """`e.sum(1) - e.diag()`: the sum over all others of a row."""
        whole, part = self._seen(node.left), self._seen(node.right)
        summed = argument_of(whole, self._names, "sum") if isinstance(whole, ast.Call) else None
        taken = next(
            (one for name in ("diag", "diagonal") if (one := called_with(part, self._names, name)) is not None), None
        )
        inner = self.log(summed, depth) if summed is not None else None
        if inner is None or taken is None or summed is None or ast.dump(taken) != ast.dump(summed):
            return None
        text = inner.operand
        eye = f"{spell(self._names, 'torch.eye')}(len({inner.text}), dtype={spell(self._names, 'torch.bool')}, device={text}.device)"
        rest = self._dimensions(whole, summed)
        return inner.as_(f'{text}.masked_fill({eye}, float("-inf")).logsumexp({rest})') if rest else None

    def _seen(self, node: ast.expr) -> ast.expr:
        return followed(node, self._use, self._file, self._program)

    def _of_call(self, node: ast.Call, depth: int) -> Log | None:
        names, file = self._names, self._file
        score = argument_of(node, names, "exp")
        if score is not None:
            is_name = dotted_name(score) is not None
            return Log(file.segment(score), is_name or isinstance(score, (ast.Call, ast.Subscript)), [node])
        for name in ("softmax", "sigmoid"):
            inner = argument_of(node, names, name)
            if inner is not None:
                return self._of_probability(node, name, inner)
        summed = argument_of(node, names, "sum")
        if summed is not None:
            found, rest = self.log(summed, depth), self._dimensions(node, summed)
            return found.as_(f"{found.operand}.logsumexp({rest})") if found is not None and rest else None
        averaged = argument_of(node, names, "mean")
        return self._of_mean(node, averaged, depth) if averaged is not None else self._moved(node, depth)

    def _of_mean(self, node: ast.Call, averaged: ast.expr, depth: int) -> Log | None:
        """`log(mean(exp(s), d))`: the sum's, less the logarithm of how many there are along one dimension."""
        found, rest = self.log(averaged, depth), self._dimensions(node, averaged)
        dimension = (rest or "").removeprefix("dim=")
        if found is None or not dimension.lstrip("-").isdigit() or not found.text.replace(".", "").isidentifier():
            return None
        count = f"{found.text}.shape[{dimension}]"
        is_math = self._names.imports.get("math") == "math"
        less = f"math.log({count})" if is_math else f"{found.text}.new_tensor({count}).log()"
        return found.as_(f"{found.text}.logsumexp({rest}) - {less}", is_atom=False)

    def _of_probability(self, node: ast.Call, name: str, inner: ast.expr) -> Log | None:
        text = self._file.segment(inner)
        if name == "sigmoid":
            return Log(f"{spell(self._names, f'{FUNCTIONAL}.logsigmoid')}({text})", is_atom=True, scores=[node])
        rest = self._dimensions(node, inner)
        return Log(f"{spell(self._names, 'torch.log_softmax')}({text}, {rest})", True, [node]) if rest else None  # noqa: FBT003

    def _dimensions(self, node: ast.expr, subject: ast.expr) -> str | None:
        """The arguments of a reduction over some dimensions, as text; None for other ones."""
        if not isinstance(node, ast.Call) or {one.arg for one in node.keywords} - _SUMS:
            return None
        rest = [self._file.segment(one) for one in node.args if one is not subject]
        return ", ".join([*rest, *(f"{one.arg}={self._file.segment(one.value)}" for one in node.keywords)]) or None

    def _moved(self, node: ast.Call, depth: int) -> Log | None:
        called, file = self._names.qualified(node.func) or "", self._file
        owner, _, last = called.rpartition(".")
        is_function = owner == "torch" and bool(node.args)
        if not isinstance(node.func, ast.Attribute) or (not is_function and owner.startswith("torch")):
            return None
        subject = node.args[0] if is_function else node.func.value
        method = last if is_function else node.func.attr
        inner = self.log(subject, depth) if method in _MOVES or method == "masked_fill" else None
        if inner is None:
            return None
        given = [one for one in node.args if one is not subject]
        parts = [file.segment(one) for one in given]
        if method == "masked_fill":
            if len(given) != 2 or number_of(given[1], self._names) != 0:
                return None
            parts[1] = 'float("-inf")'
        parts += [f"{one.arg}={file.segment(one.value)}" for one in node.keywords]
        return inner.as_(f"{inner.operand}.{method}({', '.join(parts)})")


def argument_of(node: ast.Call, names: Names, function: str) -> ast.expr | None:
    """What `torch.<function>(x, ...)` or `x.<function>(...)` is applied to."""
    called = names.qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner in ("torch", FUNCTIONAL, "torch.special") and last == function and node.args:
        return node.args[0]
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == function
        and not owner.startswith(("torch", "numpy", "math"))
    ):
        return node.func.value
    return None


def called_with(node: ast.AST | None, names: Names, function: str) -> ast.expr | None:
    """What a function is applied to, where an expression is a call of it."""
    return argument_of(node, names, function) if isinstance(node, ast.Call) else None


def followed(node: ast.expr, use: ast.expr, file: SourceFile, program: Program) -> ast.expr:
    """What a name was computed as, where what it was computed from still means the same at `use`."""
    names = program.names(file)
    value = definition_of(node, file, program) if isinstance(node, ast.Name) else None
    scope = names.function_of(use) or file.tree
    if value is None or scope is None:
        return node
    wanted = {one.id for one in walk(value) if isinstance(one, ast.Name)}
    between = (one for one in walk(scope) if isinstance(one, ast.stmt) and value.lineno < one.lineno < use.lineno)
    rebound = {name for one in between for name in bound_names(one)}
    runs = any(_is_model_call(one, names) for one in walk(value) if isinstance(one, ast.Call))
    return node if wanted & rebound or runs else value


def _is_model_call(node: ast.Call, names: Names) -> bool:
    """Whether computing the value again would run a module a second time, which costs and may draw other random numbers."""
    called = names.qualified(node.func) or ""
    if isinstance(node.func, ast.Name):
        return not called.startswith("torch.") and not hasattr(builtins, node.func.id)
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    is_own = called.startswith("self.") and called.count(".") == 1
    return not called.startswith("torch.") and (is_own or method not in _REPEATABLE)
