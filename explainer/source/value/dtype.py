"""Where a floating-point dtype is born: NumPy's float64 by default, `.double()`, a promotion with such a value.

`float64_births` answers for one value with the expressions at which it became float64, the innermost promotion first.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.origin import KEEP, origins

PROMOTION, CREATION, CONVERSION = "promotion", "creation", "conversion"
FLOAT64, FLOAT32, INTEGER = "float64", "float32", "integer"
_DEPTH = 10
_COUNT_DEPTH = 4  # each step doubles with the operands of a product
_FLOAT64 = frozenset(
    {"zeros", "ones", "linspace", "logspace", "loadtxt", "genfromtxt", "random.rand", "random.randn", "random.normal"}
    | {"random.uniform", "eye", "full", "empty", "mean", "std"}
)  # fmt: skip
_DRAWS = frozenset(
    {"normal", "uniform", "standard_normal", "random", "exponential", "gamma", "beta", "laplace", "multivariate_normal"}
)
_SAME = frozenset({"coalesce", "to_dense", "to_sparse", "to_sparse_csr", "to_sparse_coo"})
_MIXES = frozenset({"stack", "concatenate", "hstack", "vstack", "column_stack", "where", "clip", "maximum", "minimum"})
_FUNCTIONS = frozenset(
    {"sin", "cos", "exp", "log", "log1p", "sqrt", "abs", "tanh", "power", "square", "cumsum", "sum", "mean", "std"}
)
_COUNTS = frozenset(
    {"bincount", "arange", "argsort", "nonzero", "flatnonzero", "digitize", "searchsorted"} | {"random.randint"}
)  # fmt: skip
_BOUNDS = ("numpy.maximum", "numpy.minimum", "numpy.clip")
_OF_COUNTS = frozenset({"sin", "cos", "exp", "log", "log1p", "sqrt", "tanh", "mean", "std"})
_TO_TENSOR = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")
# Functions of torch whose result has the dtype of one argument, by its place and name.
_HANDS_ON = {
    "torch.sparse_coo_tensor": (1, "values"), "torch.sparse_csr_tensor": (2, "values"), "torch.stack": (0, "tensors"),
    "torch.cat": (0, "tensors"), "torch.diag": (0, "input"), "torch.diagflat": (0, "input"), "torch.tile": (0, "input"),
    "torch.flip": (0, "input"), "torch.roll": (0, "input"),
}  # fmt: skip
_DTYPES = {
    "numpy.float64": FLOAT64, "numpy.double": FLOAT64, "torch.float64": FLOAT64, "torch.double": FLOAT64, "float": FLOAT64,
    "numpy.float32": FLOAT32, "torch.float32": FLOAT32, "torch.float": FLOAT32, "torch.float16": "float16", "torch.half": "float16",
    "torch.bfloat16": "bfloat16", "numpy.float16": "float16", "torch.long": INTEGER, "torch.int64": INTEGER, "numpy.int64": INTEGER,
    "int": INTEGER, "torch.int": INTEGER, "torch.int32": INTEGER, "numpy.int32": INTEGER,
}  # fmt: skip
_CASTS = {
    "double": FLOAT64,
    "float": FLOAT32,
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": INTEGER,
    "int": INTEGER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """An expression whose value is float64 for a reason that stands in it; `is_array` where it is NumPy's, not a tensor."""

    kind: str
    value: Value
    is_array: bool


def float64_births(value: Value, program: Program, depth: int = 0) -> list[Birth]:
    """Where a value became float64; empty where it did not, or where that does not show."""
    if depth > _DEPTH:
        return []
    found: list[Birth] = []
    for one in origins(value, program):
        found += _born(one, program, depth) if one.pick is None else []
    return found


def conversions(value: Value, program: Program) -> list[Birth]:
    """The conversions from NumPy that a value comes from, of which nothing says that they are of another dtype.

    For a value that is known to be float64: torch makes none by itself.
    """
    found: list[Birth] = []
    for one in origins(value, program):
        node = one.node
        while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and _keeps(node, one, program)):
            node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
        if isinstance(node, ast.Name):
            found += conversions(replace(one, node=node), program) if node is not one.node else []
        elif isinstance(node, ast.Call) and _is_of_array(node, one, program):
            found.append(Birth(kind=CONVERSION, value=replace(one, node=node), is_array=False))
    return found


def _keeps(node: ast.Call, value: Value, program: Program) -> bool:
    """Whether a call is of a method that hands its tensor on in the dtype it has."""
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in KEEP
    return is_method and stated_dtype(node, program.names(value.file)) is None


def _is_of_array(node: ast.Call, value: Value, program: Program) -> bool:
    names = program.names(value.file)
    if (names.qualified(node.func) or "") not in _TO_TENSOR or not node.args or stated_dtype(node, names) is not None:
        return False
    given = list(origins(replace(value, node=node.args[0]), program))
    written = (ast.List, ast.Tuple, ast.ListComp, ast.Constant)
    return not any(
        isinstance(one.node, written)
        or (isinstance(one.node, ast.Call) and stated_dtype(one.node, program.names(one.file)) not in (None, FLOAT64))
        for one in given
    )


def _born(value: Value, program: Program, depth: int) -> list[Birth]:
    node = value.node
    if isinstance(node, ast.BinOp):
        parts = [float64_births(replace(value, node=one), program, depth + 1) for one in (node.left, node.right)]
        inner = [*parts[0], *parts[1]]
        if not inner and isinstance(node.op, ast.Div) and _is_share(node, value, program):
            return [Birth(kind=CREATION, value=value, is_array=True)]
        if not inner:
            return []
        is_promotion = not (parts[0] and parts[1])
        here = Birth(kind=PROMOTION, value=value, is_array=all(one.is_array for one in inner))
        # The outermost operation of one expression is where a cast belongs; what it was made of comes after.
        return [here, *(one for one in inner if one.kind == CONVERSION)] if is_promotion or depth == 0 else [here]
    if isinstance(node, ast.UnaryOp):
        return float64_births(replace(value, node=node.operand), program, depth + 1)
    if isinstance(node, ast.Subscript):
        return float64_births(replace(value, node=node.value), program, depth + 1)
    return _of_call(node, value, program, depth) if isinstance(node, ast.Call) else []


def _of_call(node: ast.Call, value: Value, program: Program, depth: int) -> list[Birth]:
    names = program.names(value.file)
    name = names.qualified(node.func) or ""
    stated = stated_dtype(node, names)
    if stated is not None:
        is_array = name.startswith("numpy.") or getattr(node.func, "attr", "") == "astype"
        return [Birth(kind=CREATION, value=value, is_array=is_array)] if stated == FLOAT64 else []
    if name in _TO_TENSOR and node.args:
        inner = float64_births(replace(value, node=node.args[0]), program, depth + 1)
        arrays = [one for one in inner if one.is_array]
        return (
            [*(one for one in inner if one.kind == PROMOTION), Birth(kind=CONVERSION, value=value, is_array=False)]
            if arrays
            else []
        )
    if name in _HANDS_ON:
        place, keyword = _HANDS_ON[name]
        given = next((one.value for one in node.keywords if one.arg == keyword), None)
        part = given or (node.args[place] if place < len(node.args) else None)
        parts = _elements(part) if part is not None else []
        return [birth for one in parts for birth in float64_births(replace(value, node=one), program, depth + 1)]
    if name.startswith("numpy."):
        return _of_numpy(node, name.removeprefix("numpy."), value, program, depth)
    if isinstance(node.func, ast.Attribute):
        method = node.func.attr
        if method in _DRAWS and _is_generator(node.func.value, names, value):
            return [Birth(kind=CREATION, value=value, is_array=True)]
        if method in KEEP or method in _SAME or method in ("mean", "std", "sum", "min", "max", "dot"):
            return float64_births(replace(value, node=node.func.value), program, depth + 1)
        if method == "to_numpy":
            return [Birth(kind=CREATION, value=value, is_array=True)]
    return []


def _of_numpy(node: ast.Call, function: str, value: Value, program: Program, depth: int) -> list[Birth]:
    here = Birth(kind=CREATION, value=value, is_array=True)
    if function in _FLOAT64 and not (function in ("mean", "std") and node.args):
        return [here]
    if function in ("array", "asarray", "asfarray") and node.args:
        inner = float64_births(replace(value, node=node.args[0]), program, depth + 1)
        return [here] if inner or _is_list_of_floats(node.args[0]) else []
    if function in _MIXES or function in _FUNCTIONS:
        parts = [one for arg in node.args for one in _elements(arg)]
        is_float = any(float64_births(replace(value, node=one), program, depth + 1) for one in parts)
        is_count = function in _OF_COUNTS and any(_is_count(one, value, program, 0) for one in parts)
        return [here] if is_float or is_count else []
    return []


def _elements(node: ast.expr) -> list[ast.expr]:
    """What a list holds, written out or by a comprehension; what is no list stands for itself."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return [node.elt]
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]


def _is_share(node: ast.BinOp, value: Value, program: Program) -> bool:
    """Whether a quotient is one of counts and numbers alone: beside a tensor it is no array of NumPy's."""
    names = program.names(value.file)
    sides = [
        one for one in (node.left, node.right) if not isinstance(one, ast.Constant) and not names.is_call(one, "len")
    ]
    return bool(sides) and all(_is_count(one, value, program, 0) for one in sides)


def _is_count(node: ast.expr, value: Value, program: Program, depth: int) -> bool:
    """Whether an expression is computed from NumPy's counts or indices, which a division or a root makes float64."""
    if isinstance(node, ast.BinOp):
        return any(_is_count(one, value, program, depth) for one in (node.left, node.right))
    if depth > _COUNT_DEPTH or isinstance(node, ast.Constant):
        return False
    return any(
        (_is_count(one.node.value, one, program, depth + 1) if isinstance(one.node, ast.Subscript) else False)
        or (isinstance(one.node, ast.BinOp) and _is_count(one.node, one, program, depth + 1))
        or _counts(one, program, depth)
        for one in origins(replace(value, node=node), program)
        if one.pick is None
    )


def _counts(value: Value, program: Program, depth: int) -> bool:
    """A call of NumPy that counts or numbers: `np.bincount(x)`, `np.arange(n)`; nothing that is told a dtype or weights."""
    node = value.node
    if not isinstance(node, ast.Call) or stated_dtype(node, program.names(value.file)) is not None:
        return False
    called = program.names(value.file).qualified(node.func) or ""
    if called in _BOUNDS and node.args:
        return _is_count(node.args[0], value, program, depth + 1)
    is_weighted = any(one.arg == "weights" for one in node.keywords)
    fractions = any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in node.args)
    return (
        called.removeprefix("numpy.") in _COUNTS and called.startswith("numpy.") and not is_weighted and not fractions
    )


def _is_list_of_floats(node: ast.expr) -> bool:
    """What NumPy makes float64 of: a list with a float in it, or what was read from a file."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(isinstance(one, ast.Constant) and isinstance(one.value, float) for one in walk(node))
    return (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    )


def _is_generator(node: ast.expr, names: Names, value: Value) -> bool:
    """Whether methods of an expression draw NumPy's random numbers: `rng`, `np.random`, `np.random.default_rng(0)`."""
    name = names.qualified(node) or ""
    if name == "numpy.random":
        return True
    scope = names.function_of(node) or value.file.tree
    bound = names.assignments(dotted_name(node) or "", scope) if scope is not None else []
    calls = [one.value for one in bound if isinstance(one, ast.Assign)]
    if any(names.is_call(one, "numpy.random.default_rng", "numpy.random.RandomState") for one in calls):
        return True
    return (dotted_name(node) or "").rpartition(".")[2] == "rng" or names.is_call(node, "numpy.random.default_rng")


def stated_dtype(node: ast.Call, names: Names) -> str | None:
    """The dtype that a call says in so many words: `dtype=`, `.astype(...)`, `.to(torch.float32)`, `.double()`."""
    for keyword in node.keywords:
        if keyword.arg == "dtype":
            return _dtype(keyword.value, names) or "other"
    if not isinstance(node.func, ast.Attribute):
        return None
    method = node.func.attr
    if method in _CASTS and not node.args:
        return _CASTS[method]
    if method in ("astype", "to", "type") and node.args:
        found = [_dtype(one, names) for one in node.args]
        return next((one for one in found if one), "other" if method == "astype" else None)
    return None


def _dtype(node: ast.expr, names: Names) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value if node.value in (FLOAT64, FLOAT32, "float16") else None
    return _DTYPES.get(names.qualified(node) or "")


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    """The arguments of a call, starred ones left out."""
    yield from (one for one in call.args if not isinstance(one, ast.Starred))
    yield from (one.value for one in call.keywords if one.arg is not None)
