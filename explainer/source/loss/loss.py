"""The losses of a program: which calls compute one, what they compare, what dtype their target has to have."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value, all_parameters
from explainer.source.value.flow import flow_of
from explainer.source.value.lineage import scope_of
from explainer.source.value.resolve import resolver_of

_FUNCTIONAL = "torch.nn.functional"
_DEPTH = 6
_FLATTENS = frozenset({"view", "reshape", "flatten"})
# Function and module names of each loss, and whether its target holds class indices.
_CLASSES = frozenset(
    {"cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss", "multi_margin_loss", "MultiMarginLoss"}
)
_VALUES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"}
    | {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "poisson_nll_loss"}
    | {"PoissonNLLLoss", "soft_margin_loss", "SoftMarginLoss", "multilabel_soft_margin_loss", "MultiLabelSoftMarginLoss"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A call of one of torch's losses; `takes_classes` where its target holds class indices.

    `made` is what says how it is computed, the function's call or the module's constructor, and `options` its keywords.
    """

    file: SourceFile
    call: ast.Call
    name: str
    prediction: ast.expr
    target: ast.expr
    takes_classes: bool
    made: ast.Call
    options: Mapping[str, ast.expr]

    @property
    def reduction(self) -> str | None:
        """How it makes one number of its elements: "mean" where nothing is said; None where it cannot be read."""
        given = self.options.get("reduction")
        if given is None:
            return None if {"reduce", "size_average"} & set(self.options) else "mean"
        return str(given.value) if isinstance(given, ast.Constant) else None


def find_losses(program: Program) -> Iterator[Loss]:
    """Every call of a loss of torch, as a function, a module, or a module's call in place."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call):
                found = loss_at(node, file, program)
                if found is not None:
                    yield found


def loss_at(node: ast.Call, file: SourceFile, program: Program) -> Loss | None:
    """The loss of torch that a call computes; None where it is none."""
    if len(node.args) + len(node.keywords) < 2:
        return None  # it asks for a prediction and a target; whose call it is costs more to tell
    named = _name(node, file, program)
    return loss_named(named[0], node, file, named[1]) if named is not None else None


def loss_named(name: str, node: ast.Call, file: SourceFile, made: ast.Call) -> Loss | None:
    """A call as a loss of torch by its name; None where it is not given a prediction and a target."""
    given = {one.arg: one.value for one in node.keywords}
    prediction = node.args[0] if node.args else given.get("input")
    target = node.args[1] if len(node.args) > 1 else given.get("target")
    if prediction is None or target is None or isinstance(prediction, ast.Starred):
        return None
    return Loss(
        file=file, call=node, name=name, prediction=prediction, target=target, takes_classes=name in _CLASSES,
        made=made, options={one.arg: one.value for one in made.keywords if one.arg},
    )  # fmt: skip


def is_loss(name: str) -> bool:
    """Whether a function or module of torch of this name computes a loss."""
    return name in _CLASSES | _VALUES


def unflattened(node: ast.expr) -> ast.expr:
    """What is laid out in rows for a loss: `ids` of `ids.view(-1)`, `logits` of `logits.reshape(-1, size)`; else the node itself."""
    is_flat = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _FLATTENS
    return node.func.value if is_flat else node  # type: ignore[attr-defined]


def _name(node: ast.Call, file: SourceFile, program: Program) -> tuple[str, ast.Call] | None:
    """The loss that a call computes, and the call that sets its options."""
    names = program.names(file)
    called = names.qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    if owner == _FUNCTIONAL and last in _CLASSES | _VALUES:
        return last, node
    made = node.func if isinstance(node.func, ast.Call) else flow_of(program).constructor_of(node.func, file)
    if made is None and isinstance(node.func, ast.Name):
        made = _elsewhere(node.func.id, program)
    if not isinstance(made, ast.Call):
        return _one_of(node, file, program)
    for one in program.parsed():
        owner, _, last = (program.names(one).qualified(made.func) or "").rpartition(".")
        if owner == "torch.nn" and last in _CLASSES | _VALUES:
            return last, made
    return _one_of(node, file, program)  # `criterion = make_loss(cfg)`


def _one_of(node: ast.Call, file: SourceFile, program: Program) -> tuple[str, ast.Call] | None:
    """One of the losses of a table, `LOSSES[kind](x, y)`, or of those that callers give a function or an object, `fit(nn.MSELoss())`.

    Where all of them take the same kind of target in the same way.
    """
    functions = _functions(Value(node.func, file), program)
    if functions and len({name in _CLASSES for name, _ in functions}) == 1:
        name, made = functions[0]
        return name, made or node
    is_given = isinstance(node.func, ast.Name) and _is_parameter(node.func, file, program)
    is_given = is_given or _is_kept(node.func, file, program) or _is_made(node.func, file, program)
    if not is_given and not isinstance(node.func, ast.Subscript):
        return None
    found: list[tuple[str, ast.Call]] = []
    for one in resolver_of(program).constructors_of(Value(node.func, file)):
        owner, _, last = (program.names(one.file).qualified(getattr(one.node, "func", one.node)) or "").rpartition(".")
        if owner != "torch.nn" or last not in _CLASSES | _VALUES or not isinstance(one.node, ast.Call):
            return None
        found.append((last, one.node))
    kinds = {(name in _CLASSES, _reduced(made)) for name, made in found}
    return found[0] if len(kinds) == 1 else None


def _reduced(made: ast.Call) -> tuple[str, ...]:
    """How a constructor says that one number is made of the elements."""
    return tuple(ast.dump(one) for one in made.keywords if one.arg in ("reduction", "reduce", "size_average"))


def _is_made(func: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a name stands for what a function of the program gives: one loss for each kind that a configuration may say."""
    made = flow_of(program).constructor_of(func, file)
    return made is not None and resolver_of(program).function_of(made, Value(made, file)) is not None


def _functions(value: Value, program: Program, depth: int = 0) -> list[tuple[str, ast.Call | None]]:
    """The functions of torch that a name, or an entry of a table, stands for, with the `partial` around it; [] where one is none."""
    node, names = value.node, program.names(value.file)
    owner, _, last = (names.qualified(node) or "").rpartition(".")
    if owner == _FUNCTIONAL:
        return [(last, None)] if last in _CLASSES | _VALUES else []
    if names.is_call(node, "functools.partial"):
        given = node.args[:1] if isinstance(node, ast.Call) else []
        return [(name, node) for one in given for name, _ in _functions(replace(value, node=one), program, depth + 1)]  # type: ignore[misc]
    behind: list[Value] = []
    if isinstance(node, ast.Call):
        owner, _, last = (names.qualified(node.func) or "").rpartition(".")
        if owner == "torch.nn" and last in _CLASSES | _VALUES:
            return [(last, node)]
        target = resolver_of(program).function_of(node, value)
        behind = resolver_of(program).returns_of(target, node, value) if target is not None else []
    elif isinstance(node, (ast.Name, ast.Attribute)):
        behind = list(resolver_of(program).behind(value))
    elif isinstance(node, ast.Subscript):
        behind = [
            replace(one, pick=str(getattr(node.slice, "value", ""))) for one in _tables(node.value, value, program)
        ]
        behind = [entry for one in behind for entry in _entries(one)]
    elif isinstance(node, ast.IfExp):
        behind = [replace(value, node=one) for one in (node.body, node.orelse)]
    found = [_functions(one, program, depth + 1) for one in behind] if depth < _DEPTH else []
    return [one for each in found for one in each] if all(found) else []


def _tables(node: ast.expr, value: Value, program: Program) -> list[Value]:
    """The dictionaries that a subscript looks up in."""
    whole = replace(value, node=node)
    return [whole] if isinstance(node, ast.Dict) else list(resolver_of(program).behind(whole))


def _entries(table: Value) -> list[Value]:
    """The entry of a dictionary under the key that is picked; all where that is none of its own."""
    if not isinstance(table.node, ast.Dict):
        return [replace(table, pick=None)]
    pairs = list(zip(table.node.keys, table.node.values, strict=True))
    picked = [one for key, one in pairs if getattr(key, "value", None) == table.pick]
    return [replace(table, node=one, pick=None) for one in picked or (one for _, one in pairs)]


def _is_parameter(name: ast.Name, file: SourceFile, program: Program) -> bool:
    scope = scope_of(name, file, program)
    return isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and name.id in all_parameters(scope)


def _is_kept(func: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether `self.criterion` is what the object was given: not what its class makes itself, as most layers."""
    if not isinstance(func, ast.Attribute) or dotted_name(func) != f"self.{func.attr}":
        return False
    owner = program.names(file).class_of(func)
    if owner is None or any(getattr(one, "name", None) == func.attr for one in owner.body):
        return False
    value = program.names(file).attribute_value(owner, func.attr)
    return value is None or isinstance(value, ast.Name)


def _elsewhere(name: str, program: Program) -> ast.Call | None:
    """The loss that a parameter is given: `criterion` where one `criterion = nn.CrossEntropyLoss()` is in the program."""
    found = _assigned_calls(program).get(name, [])
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=2)
def _assigned_calls(program: Program) -> dict[str, list[ast.Call]]:
    """The calls that are given to each name of a program."""
    found: dict[str, list[ast.Call]] = {}
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                found.setdefault(dotted_name(node.targets[0]) or "", []).append(node.value)
    return found
