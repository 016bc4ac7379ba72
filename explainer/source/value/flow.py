"""Where gradients flow: which names and expressions of a program depend on parameters, followed through calls.

A value is differentiable where it comes from a module with parameters, from `nn.Parameter` or a tensor that requires grad,
and no `detach`, comparison, integer cast or `no_grad` lies between. Functions that nobody is seen to call may get anything:
what depends on their parameters only may be differentiable.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Function, bound_names, dotted_name, entry_name
from explainer.source.program import Program
from explainer.source.tree import children
from explainer.source.value.binding import Value
from explainer.source.value.construct import constructors, stepped_modules
from explainer.source.value.resolve import resolver_of

Scope = Function | ast.Module
_ROUNDS = 8
_CUTS = frozenset(
    {"detach", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "long", "int", "bool", "size", "dim", "numel", "parameters"}
    | {"isnan", "isfinite", "isinf", "eq", "ne", "gt", "lt", "ge", "le", "any", "all", "new_zeros", "new_ones", "multinomial"}
)  # fmt: skip
# What hands a value on: to a name, a parameter, a caller.
_CARRIERS = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.AsyncFor, ast.Return, ast.Call)
_ATTRIBUTES = frozenset({"shape", "dtype", "device", "data", "ndim", "training", "grad"})
_FUNCTIONS = frozenset({"len", "int", "bool", "range", "isinstance", "float", "print", "str"})
_LIKE = frozenset({"zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "argmax", "argmin"})
_PLAIN_LAYERS = frozenset(
    {"ReLU", "ReLU6", "GELU", "SiLU", "Tanh", "Sigmoid", "Softmax", "LogSoftmax", "Dropout", "Flatten", "Identity", "MaxPool2d"}
    | {"AvgPool2d", "AdaptiveAvgPool2d", "Softplus", "ELU", "LeakyReLU", "Unflatten", "Upsample", "ZeroPad2d", "LogSigmoid"}
)  # fmt: skip


class Reach(IntEnum):
    """How sure it is that a gradient passes through a value."""

    NONE = 0
    MAYBE = 1
    SURE = 2


class _Carrier:
    """A node that hands a value on, when it was last followed, and what its value was then read from."""

    __slots__ = ("file", "followed", "node", "reads")

    def __init__(self, file: SourceFile, node: ast.AST) -> None:
        self.file, self.node = file, node
        self.followed = -1
        self.reads: frozenset[object] | None = None


class Flow:
    """The differentiable names of a program. Built once a program; `reach_of` answers for one expression."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[tuple[ast.AST, str], Reach] = {}
        self._returns: dict[ast.AST, Reach] = {}
        self._called: set[ast.AST] = set()
        self._targets: dict[ast.Call, tuple[SourceFile, Function] | None] = {}
        self._made = {file.path: dict(constructors(file, program.names(file))) for file in program.parsed()}
        self._carriers: list[_Carrier] = []
        # When a name, by its last part, or what a function returns has last changed; the clock counts carriers.
        self._changed: dict[object, int] = {}
        self._clock = 0
        self._without_grad: dict[ast.AST, bool] = {}
        self.modules = {name for file in program.parsed() for name in stepped_modules(file)}
        self._is_followed = False

    def reach_of(self, node: ast.expr, file: SourceFile) -> Reach:
        """Whether a gradient passes through an expression."""
        if not self._is_followed:
            self._follow()
        return self._value(node, file)

    def _follow(self) -> None:
        """Follow every value of the program: costly, and for nothing where only the targets of calls are asked for."""
        self._is_followed = True
        self._carriers = [
            _Carrier(file, one) for file in self.program.parsed() for one in file.walk() if isinstance(one, _CARRIERS)
        ]
        self._settle()
        self._open_unseen()
        self._settle()

    def _settle(self) -> None:
        for _ in range(_ROUNDS):
            if not self._pass():
                break

    def _pass(self) -> bool:
        """Follow what was never followed, or reads what has changed since; whether there was any."""
        began = self._clock
        for one in self._carriers:
            if one.followed < 0 or self._is_stale(one):
                one.followed = self._clock
                self._visit(one.node, one.file)
                self._clock += 1
        return self._clock > began

    def _is_stale(self, one: _Carrier) -> bool:
        if one.reads is None:
            one.reads = frozenset(self._read_by(one.node))
        changed = self._changed
        return any(changed.get(name, -1) >= one.followed for name in one.reads)

    def _read_by(self, node: ast.AST) -> Iterator[object]:
        """The names, by their last parts, and the functions that a carrier's value comes from."""
        todo: list[ast.AST] = [node.iter] if isinstance(node, (ast.For, ast.AsyncFor)) else [node]
        for one in todo:
            todo += children(one)
            if isinstance(one, ast.Name):
                yield one.id
            elif isinstance(one, ast.Attribute):
                yield one.attr
            elif isinstance(one, ast.Call) and (target := self._targets.get(one)) is not None:
                yield target[1]

    def _learn(self, scope: ast.AST, name: str, reach: Reach) -> None:
        if reach > self._known.get((scope, name), Reach.NONE):
            self._known[scope, name] = reach
            self._changed[name.rpartition(".")[2]] = self._clock

    def _visit(self, node: ast.AST, file: SourceFile) -> None:
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            self._bind(node, self._value(node.value, file), file)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            self._bind(node, self._expression(node.iter, file), file)
        elif isinstance(node, ast.Return) and node.value is not None:
            function = self.program.names(file).function_of(node)
            if function is not None:
                reach = self._expression(node.value, file)
                if reach > self._returns.get(function, Reach.NONE):
                    self._returns[function] = reach
                    self._changed[function] = self._clock
        elif isinstance(node, ast.Call):
            self._pass_arguments(node, file)

    def _value(self, node: ast.expr, file: SourceFile) -> Reach:
        if node not in self._without_grad:
            self._without_grad[node] = is_without_grad(node, file, self.program)
        return Reach.NONE if self._without_grad[node] else self._expression(node, file)

    def _bind(self, node: ast.AST, reach: Reach, file: SourceFile) -> None:
        if not reach:
            return
        for name in bound_names(node):
            self._learn(self._scope(node, name, file), name, reach)

    def _scope(self, node: ast.AST, name: str, file: SourceFile) -> ast.AST:
        """What owns a name at a node: the class for `self.x`, the function, or the file."""
        names = self.program.names(file)
        if name.startswith("self."):
            return names.class_of(node) or file.tree or node
        return names.function_of(node) or file.tree or node

    def _pass_arguments(self, node: ast.Call, file: SourceFile) -> None:
        target = self.target_of(node, file)
        if target is None:
            return
        _, function = target
        self._called.add(function)
        for name, value in arguments_of(node, function):
            reach = self._value(value, file)
            self._learn(function, name, reach)

    def target_of(self, node: ast.Call, file: SourceFile) -> tuple[SourceFile, Function] | None:
        """The program's own function that a call runs: a function, a method of the same class, a module's `forward`."""
        if node not in self._targets:
            self._targets[node] = self._find_target(node, file)
        return self._targets[node]

    def _find_target(self, node: ast.Call, file: SourceFile) -> tuple[SourceFile, Function] | None:
        called = dotted_name(node.func)
        if called is None:
            return None
        owner, _, last = called.rpartition(".")
        names = self.program.names(file)
        own = names.class_of(node)
        if owner == "self" and own is not None:
            method = _method(own, last)
            if method is not None:
                return file, method
        made = self.constructor_of(node.func, file)
        if made is not None:
            found = self.program.find_class(names.qualified(made.func) or "")
            body = _method(found[1], "forward", "__call__") if found else None
            return (found[0], body) if found and body else None
        found_here = self.program.functions_named(last)
        if len(found_here) == 1 and "self" not in owner and "." not in owner:
            return found_here[0]
        if not owner or not any(isinstance(where.parents.get(one), ast.ClassDef) for where, one in found_here):
            return None
        return resolver_of(self.program).function_of(node, Value(node, file))

    def constructor_of(self, func: ast.expr, file: SourceFile) -> ast.Call | None:
        """The one call that made the module behind `name` or `self.name`; None where it is not one."""
        name = dotted_name(func)
        if name is None:
            return None
        owner = self.program.names(file).class_of(func) if name.startswith("self.") else None
        return self._made[file.path].get((owner, name))

    def _open_unseen(self) -> None:
        """Functions without a call in sight, and `forward`s of modules that are called through containers, may get anything."""
        for _, function in self.program.functions():
            if function in self._called or function.name == "__init__":
                continue
            for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                if argument.arg not in ("self", "cls"):
                    self._learn(function, argument.arg, Reach.MAYBE)

    def _expression(self, node: ast.expr | ast.AST, file: SourceFile) -> Reach:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._name(node, file)
        if isinstance(node, ast.Call):
            return self._call(node, file)
        if isinstance(node, (ast.Compare, ast.Constant, ast.Lambda, ast.JoinedStr)):
            return Reach.NONE
        if isinstance(node, ast.IfExp):
            return max(self._expression(node.body, file), self._expression(node.orelse, file))
        if isinstance(node, ast.Subscript):
            return self._expression(node.value, file)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)) and self._takes_out(node.elt, file):
            return Reach.NONE
        return max((self._expression(child, file) for child in children(node)), default=Reach.NONE)

    def _takes_out(self, node: ast.expr, file: SourceFile) -> bool:
        """Whether an expression takes values out of the graph, `loss.item()`, `float(loss)`."""
        if not isinstance(node, ast.Call):
            return False
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return method in _CUTS or self.program.names(file).qualified(node.func) in _FUNCTIONS

    def _name(self, node: ast.Name | ast.Attribute, file: SourceFile) -> Reach:
        name = dotted_name(node)
        if name is None:
            assert isinstance(node, ast.Attribute)
            return Reach.NONE if node.attr in _ATTRIBUTES else self._expression(node.value, file)
        if isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
            return Reach.NONE
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            prefix = ".".join(parts[:end])
            found = self._looked_up(node, prefix, file)
            if found:
                return found
        return Reach.NONE

    def _looked_up(self, node: ast.AST, name: str, file: SourceFile) -> Reach:
        """The reach of a name, looked for outwards through the functions around it."""
        scope: ast.AST | None = self._scope(node, name, file)
        while scope is not None:
            found = self._known.get((scope, name))
            if found:
                return found
            scope = file.enclosing(scope, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
        return Reach.NONE

    def _call(self, node: ast.Call, file: SourceFile) -> Reach:
        names = self.program.names(file)
        called = names.qualified(node.func) or ""
        last = called.rpartition(".")[2]
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method in _CUTS or called in _FUNCTIONS or last in _LIKE or called.startswith(("numpy.", "math.")):
            return Reach.NONE
        if called in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") or _requires_grad(node):
            return Reach.SURE
        if method == "requires_grad_" and not any(
            isinstance(one, ast.Constant) and one.value is False for one in node.args
        ):
            return Reach.SURE
        if called.startswith("torch.nn.") and last[:1].isupper():
            return Reach.NONE  # a module's constructor
        target = self.target_of(node, file)
        if target is not None:
            return self._returns.get(target[1], Reach.NONE)
        if self._is_module(node.func, file):
            return Reach.SURE
        parts = [*node.args, *(one.value for one in node.keywords)]
        if isinstance(node.func, ast.Attribute):
            parts.append(node.func.value)
        return max((self._expression(one, file) for one in parts), default=Reach.NONE)

    def _is_module(self, func: ast.expr, file: SourceFile) -> bool:
        """Whether calling `func` runs a module that has parameters."""
        name = entry_name(func.value if isinstance(func, ast.Subscript) else func)
        if name and name in self.modules:
            return True
        made = self.constructor_of(func, file)
        if made is None:
            return False
        called = self.program.names(file).qualified(made.func) or ""
        owner, _, last = called.rpartition(".")
        return owner == "torch.nn" and last not in _PLAIN_LAYERS and not last.endswith("Loss")


@lru_cache(maxsize=2)
def flow_of(program: Program) -> Flow:
    """The flow of a program, read once."""
    return Flow(program)


def _requires_grad(node: ast.Call) -> bool:
    return any(
        one.arg == "requires_grad" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in node.keywords
    )


def _method(owner: ast.ClassDef, *names: str) -> Function | None:
    for one in owner.body:
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and one.name in names:
            return one
    return None


def arguments_of(call: ast.Call, function: Function) -> Iterator[tuple[str, ast.expr]]:
    """Which parameter of a function gets which argument of a call, `self` left out; starred ones are not followed."""
    given = [*function.args.posonlyargs, *function.args.args]
    if given and given[0].arg in ("self", "cls"):
        given = given[1:]
    for parameter, value in zip(given, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        yield parameter.arg, value
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value
