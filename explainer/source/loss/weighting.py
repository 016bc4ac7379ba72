"""What weights add up to: `w / w.sum()` is 1 in all, `w / w.mean()` one for each element; and what is one number, no weight.

Of a draw by priority, `(n * p) ** -beta`, they correct the draw: their mean stands for that of an even one.

Read from the flow of values, through names, attributes, helpers and callables of the program. What is not seen is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, default_of
from explainer.source.value.callee import callees_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

ONE = "one"
COUNT = "count"
DRAW = "draw"
_DEPTH = 8
_SAME = frozenset(
    {"detach", "to", "float", "double", "half", "clone", "view", "reshape", "squeeze", "unsqueeze", "flatten", "cpu", "cuda"}
    | {"contiguous", "type_as", "requires_grad_", "astype", "numpy"}
)  # fmt: skip
_WRAPS = frozenset({"tensor", "as_tensor", "from_numpy", "Parameter", "FloatTensor", "asarray", "array"})
_KEEP_NUMBER = _SAME | {"exp", "abs", "clamp", "sqrt", "log", "neg", "softplus", "sigmoid"}
_OF_DRAW = re.compile(r"(?:^|[._])(?:is_weights?|isw)$", re.IGNORECASE)
_NUMBERS = frozenset({"float", "int", "len", "round", "min", "max", "abs"})
_COUNTS = frozenset({"size", "numel", "dim"})
_REDUCE = frozenset({"sum", "mean", "max", "min", "item", "norm", "std", "var", "numel", "nelement", "size", "dim"})
# What programs call the settings that they are started with: `args.weight` is a number.
SETTINGS = frozenset(
    {"args", "arg", "cfg", "config", "conf", "opt", "opts", "options", "hp", "hparams", "settings", "flags", "FLAGS"}
)  # fmt: skip


def is_scalar(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether an expression is surely one number, so that what it multiplies is scaled as a whole."""
    node = value.node
    if value.is_element:
        called = node.func if isinstance(node, ast.Call) else None
        return isinstance(called, ast.Name) and called.id in ("range", "enumerate")
    if number_of(node, program.names(value.file)) is not None:
        return True
    parts = _operands(node)
    if parts:
        return depth <= _DEPTH and all(is_scalar(replace(value, node=one), program, depth + 1) for one in parts)
    if isinstance(node, ast.Call):
        return depth <= _DEPTH and _is_scalar_call(node, value, program, depth)
    if isinstance(node, ast.Subscript):
        return _is_setting(node.value) or (isinstance(node.value, ast.Attribute) and node.value.attr == "shape")
    return _is_number_name(value, program) or _is_bound_to_number(value, program, depth)


def _operands(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else []


def _is_number_name(value: Value, program: Program) -> bool:
    """Whether a name is declared as a number, or read from the settings of a run."""
    node = value.node
    if isinstance(node, ast.Attribute):
        return _is_setting(node.value) or node.attr in program.once(_number_fields)
    return isinstance(node, ast.Name) and _is_number_parameter(node, value, program)


def _is_bound_to_number(value: Value, program: Program, depth: int) -> bool:
    behind = list(resolver_of(program).behind(value)) if depth <= _DEPTH else []
    return bool(behind) and all(is_scalar(one, program, depth + 1) for one in behind if one.node is not value.node)


def _is_setting(node: ast.expr) -> bool:
    """`args` of `args.alpha`, `self.cfg` of `self.cfg["alpha"]`: what holds the settings of a run."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return bool(set((dotted_name(node) or "").split(".")) & SETTINGS)


def _number_fields(program: Program) -> Iterator[str]:
    """The fields that classes declare as numbers: `alpha: float = 0.1`."""
    for file in program.parsed():
        for node in file.walk():
            is_field = isinstance(node, ast.AnnAssign) and isinstance(file.parents.get(node), ast.ClassDef)
            if is_field and isinstance(node.target, ast.Name) and _says_number(node.annotation):  # type: ignore[attr-defined]
                yield node.target.id  # type: ignore[attr-defined]


def _is_number_parameter(node: ast.Name, value: Value, program: Program) -> bool:
    """Whether a parameter is declared as a number, or has one for its default."""
    function = program.names(value.file).function_of(node)
    default = default_of(function, node.id) if function is not None else None
    if number_of(default, program.names(value.file)) is not None:
        return True
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function is not None else []
    return any(one.arg == node.id and one.annotation is not None and _says_number(one.annotation) for one in every)


def _says_number(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("float", "int")


def _is_scalar_call(node: ast.Call, value: Value, program: Program, depth: int) -> bool:
    called = program.names(value.file).qualified(node.func) or ""
    last = node.func.attr if isinstance(node.func, ast.Attribute) else called
    if called in _NUMBERS or called.startswith("math."):
        return called != "abs" or all(is_scalar(replace(value, node=one), program, depth + 1) for one in node.args)
    first = replace(value, node=node.args[0]) if node.args else None
    if called.startswith("torch.") and last in ("zeros", "ones", "full", "rand", "randn"):
        return _is_single(node.args)
    if called.rpartition(".")[2] in _WRAPS:
        return first is not None and is_scalar(first, program, depth + 1)
    if not isinstance(node.func, ast.Attribute):
        return False
    if last in _REDUCE and not called.startswith("torch.nn."):
        plain = not any(one.arg in ("dim", "axis", "keepdim") for one in node.keywords)
        return plain and (not node.args or last in _COUNTS or (called.startswith("torch.") and len(node.args) == 1))
    inner = first if called.startswith("torch.") else replace(value, node=node.func.value)
    return last in _KEEP_NUMBER and inner is not None and is_scalar(inner, program, depth + 1)


def _is_single(args: list[ast.expr]) -> bool:
    """`torch.zeros(1)`, `torch.zeros(())`, `torch.full((), 2.0)`."""
    first = args[0] if args else None
    if isinstance(first, (ast.Tuple, ast.List)):
        return all(isinstance(one, ast.Constant) and one.value == 1 for one in first.elts)
    return isinstance(first, ast.Constant) and first.value == 1 and len(args) == 1


def total_of(value: Value, program: Program, depth: int = 0) -> str | None:
    """What weights add up to: `ONE`, or `COUNT` where their mean is 1; `DRAW` of a draw by priority; None where that is not known."""
    node = value.node
    if depth > _DEPTH or value.is_element:
        return None
    if _is_of_draw(node) or (isinstance(node, (ast.Name, ast.Attribute)) and _OF_DRAW.search(dotted_name(node) or "")):
        return DRAW
    if isinstance(node, ast.BinOp):
        return _of_quotient(value, program, depth)
    if isinstance(node, ast.Call):
        return _of_call(node, value, program, depth)
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.pick, int) and value.pick < len(node.elts):
        return total_of(replace(value, node=node.elts[value.pick], pick=None), program, depth + 1)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    behind = list(resolver_of(program).behind(value))
    if behind and isinstance(behind[0].statement, ast.AugAssign):
        return _of_update(behind[0].statement, behind[0], program)
    return _same(total_of(one, program, depth + 1) for one in behind)


def _is_of_draw(node: ast.expr) -> bool:
    """`(n * p) ** -beta`, of which the largest is made 1 or not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and isinstance(node.right, ast.UnaryOp):
        power = dotted_name(node.right.operand) or ""
        return isinstance(node.right.op, ast.USub) and "beta" in power.rpartition(".")[2]
    return False


def _same(found: Iterator[str | None]) -> str | None:
    every = set(found)
    return every.pop() if len(every) == 1 else None


def _of_update(statement: ast.AugAssign, value: Value, program: Program) -> str | None:
    """`w /= w.sum()`."""
    if not isinstance(statement.op, ast.Div):
        return None
    return _divided([statement.target], [replace(value, node=statement.value)], value, program)


def _of_quotient(value: Value, program: Program, depth: int) -> str | None:
    above, below = factors_of(value.node)
    if len(above) == len(below) == 1 and getattr(getattr(below[0], "func", None), "attr", "") in ("max", "amax"):
        is_draw = total_of(replace(value, node=above[0]), program, depth + 1) == DRAW
        return DRAW if is_draw else None  # of others the mean is not what it was
    return _divided(above, [replace(value, node=one) for one in below], value, program)


def factors_of(node: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """What a product multiplies, and what it divides by: `w`, `n` and `s` of `w * (n / s)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        left, right = factors_of(node.left), factors_of(node.right)
        if isinstance(node.op, ast.Div):
            right = right[1], right[0]
        return [*left[0], *right[0]], [*left[1], *right[1]]
    return [node], []


def _divided(above: list[ast.expr], below: list[Value], value: Value, program: Program) -> str | None:
    """What `w * n / w.sum()` adds up to."""
    if len(below) != 1:
        return None
    for reduction, total in (("sum", ONE), ("mean", COUNT)):
        reduced = reduced_by(reduction, below[0], program)
        for one in above:
            if reduced is None or _text(one) != _text(reduced):
                continue
            others = [each for each in above if each is not one]
            if all(number_of(each, program.names(value.file)) is not None for each in others):
                return total
            return COUNT if total == ONE and len(others) == 1 and is_length(others[0]) else None
    return None


def _text(node: ast.expr) -> str:
    """An expression as it can be compared: a value that is stored to and one that is read are the same."""
    return ast.unparse(node)


def is_length(node: ast.expr) -> bool:
    """`len(w)`, `w.numel()`, `w.size(0)`, `w.shape[0]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "id", "") == "len" or getattr(node.func, "attr", "") in ("numel", "size", "nelement")


def reduced_by(reduction: str, value: Value, program: Program, depth: int = 0) -> ast.expr | None:
    """`w` of `w.sum()`, `torch.sum(w)`, `w.sum().clamp(min=1)`, `w.sum() + eps`, or of a name for one of these."""
    node = value.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return reduced_by(reduction, replace(value, node=node.left), program, depth)
    if isinstance(node, ast.Name) and depth < _DEPTH:
        behind = list(resolver_of(program).behind(value))
        return reduced_by(reduction, behind[0], program, depth + 1) if len(behind) == 1 else None
    if not isinstance(node, ast.Call):
        return None
    called = program.names(value.file).qualified(node.func) or ""
    if isinstance(node.func, ast.Name):
        return (
            reduced_by(reduction, replace(value, node=node.args[0]), program) if called == "max" and node.args else None
        )
    if not isinstance(node.func, ast.Attribute):
        return None
    if called == f"torch.{reduction}":
        return node.args[0] if len(node.args) == 1 and not node.keywords else None
    if node.func.attr == reduction:
        return node.func.value if not node.args and not node.keywords else None
    kept = node.func.attr in ("clamp", "clamp_min", "detach", "item", "float")
    return reduced_by(reduction, replace(value, node=node.func.value), program, depth) if kept else None


def _of_call(node: ast.Call, value: Value, program: Program, depth: int) -> str | None:
    called = program.names(value.file).qualified(node.func) or ""
    last = node.func.attr if isinstance(node.func, ast.Attribute) else called
    if last in ("softmax", "normalize"):
        return ONE if _is_over_batch(node, last, is_function=called.startswith("torch.")) else None
    if called.startswith(("torch.", "numpy.")):
        first = replace(value, node=node.args[0]) if node.args else None
        return total_of(first, program, depth + 1) if first is not None and last in _WRAPS else None
    if isinstance(node.func, ast.Attribute) and last in _SAME and _is_flat(last, node):
        return total_of(replace(value, node=node.func.value), program, depth + 1)
    return _same(total_of(one, program, depth + 1) for one in results_of(value, program))


def _is_flat(method: str, node: ast.Call) -> bool:
    """Whether a method leaves a weight one factor of one element: a column would be spread over a row of losses."""
    is_one = [isinstance(one, ast.UnaryOp) and ast.unparse(one) == "-1" for one in node.args] == [True]
    return is_one if method in ("view", "reshape") else method != "unsqueeze"


def _is_over_batch(node: ast.Call, last: str, *, is_function: bool) -> bool:
    """`softmax(scores, dim=0)`, `F.normalize(w, p=1, dim=0)`: over the elements, not along a row."""
    given = {one.arg: one.value for one in node.keywords}
    places = node.args[1:] if is_function else node.args
    dim = given.get("dim") or (places[-1] if places else None)
    norm = given.get("p") or (places[0] if len(places) > 1 else None)
    is_first = isinstance(dim, ast.Constant) and dim.value == 0
    return is_first and (last == "softmax" or (isinstance(norm, ast.Constant) and norm.value == 1))


def results_of(value: Value, program: Program) -> list[Value]:
    """What a call of the program's own function, callable object or module gives back, its parameters bound."""
    node, resolver = value.node, resolver_of(program)
    assert isinstance(node, ast.Call)
    target = resolver.function_of(node, value)
    targets = [target] if target is not None else [
        (one.file, one.function) for one in callees_of(node.func, value.file, program) if isinstance(one.function, ast.FunctionDef)
    ]  # fmt: skip
    if not targets:
        for file, owner in resolver.classes_of(replace(value, node=node.func)):
            method = resolver.method(owner, "forward", file) or resolver.method(owner, "__call__", file)
            targets += [method] if method is not None else []
    found = [one for each in targets for one in resolver.returns_of(each, node, value)]
    return [replace(one, pick=value.pick) if one.pick is None else one for one in found]
