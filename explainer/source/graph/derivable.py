"""Whether autograd can derive what some statements compute: plain differentiable operations on the arguments of their function.

No write into a tensor, no draw, nothing that cuts the graph or whose derivative is zero or none by definition.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import all_parameters

_SPACES = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.If, ast.For, ast.Assert, ast.Raise, ast.Pass)
_UNREAD = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_BUILTINS = frozenset(
    ("len", "range", "zip", "enumerate", "tuple", "list", "reversed", "sum", "abs", "isinstance", "ValueError", "TypeError")
)  # fmt: skip
_NUMBERS = frozenset({"int", "float", "bool", "min", "max"})
# What cuts the graph, has a derivative of zero or none, or draws: autograd derives another formula of it.
_REFUSED = frozenset(
    ("numpy", "detach", "item", "tolist", "apply", "from_numpy", "round", "sign", "sgn", "signbit", "floor", "ceil", "trunc", "fix",
     "frac", "heaviside", "floor_divide", "argmax", "argmin", "argsort", "bucketize", "searchsorted", "histc", "bincount", "one_hot",
     "nonzero", "unique", "unique_consecutive", "count_nonzero", "int", "long", "short", "char", "byte", "bool", "rand", "randn",
     "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "multinomial", "normal", "poisson", "empty",
     "empty_like", "new_empty", "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
     "gumbel_softmax", "rrelu", "quantize_per_tensor", "fake_quantize_per_tensor_affine")
)  # fmt: skip
_CUTS = frozenset({"tensor", "as_tensor", "asarray", "scalar_tensor", "new_tensor"})
_HIDDEN = frozenset({"data", "grad", "grad_fn", "requires_grad", "is_leaf"})
_INTEGERS = frozenset({"int", "int8", "int16", "int32", "int64", "long", "short", "uint8", "bool"})
_NO_VALUE = frozenset({"shape", "dtype", "device", "ndim", "layout"})
# Results that say something of a tensor, and pass no gradient.
_READINGS = frozenset(
    ("size", "dim", "numel", "len", "range", "eq", "ne", "gt", "ge", "lt", "le", "isnan", "isinf", "isfinite", "isclose",
     "logical_and", "logical_or", "logical_not", "logical_xor", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
     "new_full", "isinstance", "finfo")
)  # fmt: skip
_COPIES = frozenset({"view", "view_as", "clone", "contiguous", "alias", "reshape", "expand_as"})
_ZEROS = frozenset({"zeros", "zeros_like", "new_zeros"})
_DEPTH = 4


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, or another constant."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def loads(statements: Sequence[ast.AST]) -> list[str]:
    """The names that statements read, each as often as they do."""
    names = [node for one in statements for node in walk(one) if isinstance(node, ast.Name)]
    return [node.id for node in names if isinstance(node.ctx, ast.Load)]


def is_derivable(given: set[str], body: Sequence[ast.stmt], file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether statements are plain differentiable operations on the arguments of their function, and give a result of these."""
    nodes = [node for one in body for node in walk(one)]
    local = given | {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    carriers = carriers_of(body, given)
    returns = [node.value for node in nodes if isinstance(node, ast.Return)]
    results = [one for value in returns for one in (value.elts if isinstance(value, ast.Tuple) else [value])]
    reader = _Reader(file=file, program=program, local=local, carriers=carriers, depth=depth)
    return (
        bool(results)
        and all(one is not None and carries(one, carriers) for one in results)
        and not any(one is not None and _is_copy(one, given, body) for one in results)
        and all(_is_plain_statement(one, body) for one in nodes if isinstance(one, ast.stmt))
        and all(reader.is_plain(node) for node in nodes)
    )


def _is_copy(value: ast.expr, given: set[str], body: Sequence[ast.stmt]) -> bool:
    """Whether a result is an argument itself: a Function that computes nothing is there for its backward, as a reversed gradient."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _COPIES:
        value = value.args[0] if dotted_name(value.func.value) == "torch" and value.args else value.func.value
    made = [
        one.value for one in body if isinstance(one, ast.Assign) and dotted_name(one.targets[0]) == dotted_name(value)
    ]
    if isinstance(value, ast.Name) and len(made) == 1 and made[0] is not value:
        return _is_copy(made[0], given, [one for one in body if getattr(one, "value", None) is not made[0]])
    return isinstance(value, ast.Name) and value.id in given and not made


def _is_plain_statement(statement: ast.stmt, body: Sequence[ast.stmt]) -> bool:
    """No write into a tensor, no context, no call for its effect; a sum that grows from zero may be written in place."""
    if is_text(statement):
        return True
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, (ast.Add, ast.Sub)) and _is_sum(statement.target, body)
    if isinstance(statement, ast.Assign) and not all(_is_name(one) for one in statement.targets):
        return False
    if isinstance(statement, (ast.AnnAssign, ast.For)) and not _is_name(statement.target):
        return False
    return isinstance(statement, _STATEMENTS)


def _is_name(target: ast.expr) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return all(isinstance(one, ast.Name) for one in parts)


def _is_sum(target: ast.expr, body: Sequence[ast.stmt]) -> bool:
    """Whether a name begins as zeros and is read by `return` alone: no operation has saved what is overwritten."""
    name = dotted_name(target) or ""
    nodes = [node for one in body for node in walk(one)]
    made = [one.value for one in nodes if isinstance(one, ast.Assign) and name in bound_names(one)]
    returned = loads([one for one in nodes if isinstance(one, ast.Return)])
    is_zero = [isinstance(one, ast.Constant) or _method(one) in _ZEROS for one in made]
    return isinstance(target, ast.Name) and is_zero == [True] and loads(body).count(name) == returned.count(name)


def _method(node: ast.AST) -> str | None:
    """The last part of what a call calls."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None


def carriers_of(body: Sequence[ast.stmt], given: set[str]) -> set[str]:
    """The names that a gradient of some arguments passes through."""
    found, before = set(given), -1
    while len(found) > before:
        before = len(found)
        for node in (node for one in body for node in walk(one)):
            value = node.iter if isinstance(node, (ast.For, ast.comprehension)) else getattr(node, "value", None)
            if isinstance(node, ast.comprehension) and carries(value, found):
                found |= {one.id for one in walk(node.target) if isinstance(one, ast.Name)}
            elif isinstance(node, ast.stmt) and isinstance(value, ast.expr) and carries(value, found):
                found |= set(bound_names(node))
    return found


def carries(node: ast.AST | None, names: set[str]) -> bool:
    """Whether a gradient can pass through an expression to one of some names."""
    if isinstance(node, ast.Name):
        return node.id in names
    if node is None or isinstance(node, (ast.Compare, ast.Constant)):
        return False
    if isinstance(node, ast.Attribute):
        return node.attr not in _NO_VALUE and carries(node.value, names)
    if isinstance(node, ast.Subscript):
        return carries(node.value, names)
    if isinstance(node, ast.IfExp):
        return carries(node.body, names) or carries(node.orelse, names)
    if isinstance(node, ast.Call):
        if _method(node) in _READINGS:
            return False
        of = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        given = node.args[1:] if _method(node) == "where" else node.args
        return any(carries(one, names) for one in (*of, *given, *(one.value for one in node.keywords)))
    return any(carries(one, names) for one in children(node))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Reads the expressions of a forward: the names it binds, and those of them that carry a gradient."""

    file: SourceFile
    program: Program
    local: set[str]
    carriers: set[str]
    depth: int

    def is_plain(self, node: ast.AST) -> bool:
        """Whether a node is an operation that autograd derives, or has nothing to do with the gradient."""
        if isinstance(node, _UNREAD):
            return False
        if isinstance(node, ast.Call):
            return self._is_plain_call(node)
        if isinstance(node, ast.Attribute):
            return node.attr not in _HIDDEN and not node.attr.startswith("_")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            return not carries(node, self.carriers)
        return not isinstance(node, ast.Name) or node.id in self.local or self._is_constant(node)

    def _is_constant(self, node: ast.Name) -> bool:
        """Whether a name of the file is torch, math, what is called (judged there), a number, or a built-in type."""
        names, above = self.program.names(self.file), self.file.parents.get(node)
        if isinstance(above, ast.Call) and above.func is node:
            return True
        if node.id in names.imports:
            return names.imports[node.id].partition(".")[0] in ("torch", "math")
        tree = self.file.tree
        made = [one.value for one in names.assignments(node.id, tree)] if tree is not None else []
        return all(self._is_number(one) for one in made) if made else node.id in _BUILTINS | _NUMBERS

    def _is_number(self, value: ast.expr | None) -> bool:
        """Whether a value is made of constants and of math alone."""
        names = self.program.names(self.file)
        return value is not None and all(
            not isinstance(node, (ast.Call, ast.Name))
            or (names.qualified(getattr(node, "func", node)) or "").startswith("math")
            for node in walk(value)
        )

    def _is_plain_call(self, node: ast.Call) -> bool:
        method, called = _method(node), self.program.names(self.file).qualified(node.func) or ""
        given = [*node.args, *(one.value for one in node.keywords)]
        if method is None or method.endswith("_") or self._writes(node, called):
            return False
        if method in _CUTS or called.startswith("math.") or (called in _NUMBERS and called == method):
            return not any(carries(one, self.carriers) for one in given)
        if method in _REFUSED or (
            method in ("to", "type") and any(getattr(one, "attr", "") in _INTEGERS for one in given)
        ):
            return False
        if called.startswith("torch."):
            return called.rpartition(".")[0] in _SPACES
        if isinstance(node.func, ast.Attribute):
            root = (dotted_name(node.func) or "").partition(".")[0]
            return not root or root in self.local
        return method in _BUILTINS if self._is_builtin(node.func) else self._is_helper(node)

    def _is_builtin(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Name) and self.program.find_function(func.id) is None and func.id not in self.local

    def _writes(self, node: ast.Call, called: str) -> bool:
        """`out=x`, `inplace=True`, and a bare True among the arguments of a functional form."""
        is_given = any(one.arg in ("out", "inplace", None) for one in node.keywords)
        flags = [one for one in node.args if isinstance(one, ast.Constant) and one.value is True]
        return is_given or (called.startswith("torch.nn.functional.") and bool(flags))

    def _is_helper(self, node: ast.Call) -> bool:
        """Whether a function of the program, by its one name, is derivable too."""
        name = self.program.names(self.file).qualified(node.func) or ""
        found = self.program.find_function(name)
        if found is None or self.depth >= _DEPTH or dotted_name(node.func) in self.local or found[1].decorator_list:
            return False
        file, function = found
        plain = not isinstance(file.parents.get(function), ast.ClassDef) and not function.args.vararg
        return plain and is_derivable(all_parameters(function), function.body, file, self.program, self.depth + 1)
