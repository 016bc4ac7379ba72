"""The calls of a program that run a backward or step an optimizer, and which modules an optimizer owns."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.flow import arguments_of
from explainer.source.value.lineage import reads

_DEPTH = 4
_NO_FORWARD = ("parameters", "zero_grad", "train", "eval", "state_dict", "requires_grad_", "clip_grad_norm_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backward:
    """One call that runs a backward. `loss` is what is differentiated: the operand of `scale(...)` where a scaler is used."""

    file: SourceFile
    call: ast.Call
    loss: ast.expr

    @property
    def statement(self) -> ast.stmt:
        """The statement that makes the call."""
        return self.file.statement(self.call)

    @property
    def is_plain(self) -> bool:
        """Whether the statement does nothing else, and gives `backward` no gradient and no inputs."""
        keywords = {one.arg for one in self.call.keywords} <= {"retain_graph"}
        own = dotted_name(self.loss) is None or self.call.func is not self.loss
        positional = [one for one in self.call.args if one is not self.loss]
        return isinstance(self.statement, ast.Expr) and keywords and own and not positional

    @property
    def retains(self) -> ast.keyword | None:
        """The `retain_graph=True` of the call."""
        return next((one for one in self.call.keywords if one.arg == "retain_graph" and _is_true(one.value)), None)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def find_backwards(program: Program) -> tuple[Backward, ...]:
    """Every backward call of the program, file by file, in the order of the text."""
    return program.once(_backwards)


def _backwards(program: Program) -> Iterator[Backward]:
    for file in program.parsed():
        calls = [node for node in file.walk() if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
        for call in sorted(calls, key=lambda one: (one.end_lineno or 0, one.end_col_offset or 0)):
            loss = loss_of(call, file, program)
            if loss is not None:
                yield Backward(file=file, call=call, loss=loss)


def loss_of(call: ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """What a call differentiates: `l` of `l.backward()`, `scaler.scale(l).backward()`, `accelerator.backward(l)`; None for others."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("backward", "manual_backward"):
        return None
    names = program.names(file)
    function = names.function_of(call)
    if function is not None and function.name == "backward" and [one.arg for one in function.args.args[:1]] != ["self"]:
        return None  # an autograd.Function's own
    called = names.qualified(func) or ""
    if called == "torch.autograd.backward":
        return call.args[0] if call.args and not isinstance(call.args[0], (ast.List, ast.Tuple)) else None
    if call.args and not _is_gradient(call.args[0]):
        return call.args[0]  # an accelerator, engine, fabric or manager is given the loss
    value = func.value
    if (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr == "scale"
        and value.args
    ):
        return value.args[0]
    return value


def _is_gradient(node: ast.expr) -> bool:
    """Whether the argument of `x.backward(...)` is a gradient rather than a loss."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "attr", "") in (
            "ones_like",
            "tensor",
            "ones",
            "full_like",
            "to",
            "Tensor",
            "FloatTensor",
        )
    return "one" in (dotted_name(node) or "").rpartition(".")[2] or (dotted_name(node) or "").startswith("grad")


def stepped(statement: ast.stmt) -> str | None:
    """The optimizer that a statement steps, by its dotted name: `opt.step()`, `scaler.step(opt)`."""
    call = _own_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    if call.args and dotted_name(call.args[0]) and not isinstance(call.args[0], ast.Constant):
        return dotted_name(call.args[0])
    return dotted_name(call.func.value)


def cleared(statement: ast.stmt) -> str | None:
    """What a statement calls `zero_grad` of."""
    call = _own_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
        return None
    return dotted_name(call.func.value)


def _own_call(statement: ast.stmt) -> ast.Call | None:
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return value if isinstance(value, ast.Call) else None


def owned_by(optimizer: str, at: ast.AST, file: SourceFile, program: Program, depth: int = 0) -> frozenset[str]:
    """The modules, as named where `at` stands, whose parameters an optimizer was made of; empty where that is not known."""
    names = program.names(file)
    function = names.function_of(at)
    parameter = _parameter(optimizer, function)
    if function is not None and parameter and depth < _DEPTH:
        return _through_callers(optimizer, function, program, depth)
    scope: ast.AST | None = names.class_of(at) if optimizer.startswith("self.") else function
    for place in (scope, file.tree):
        value = _made(optimizer, place) if place is not None else None
        owner = names.class_of(at)
        if value is not None and owner is not None and _is_asked_for(value[0]):
            return _configured(value[1] or 0, owner, file, program)
        if value is not None:
            return _modules(value, program)
    return frozenset()


def tensors_of(optimizer: str, at: ast.AST, file: SourceFile, program: Program) -> frozenset[str]:
    """The tensors by name that an optimizer was made of, and nothing else: `Adam([log_alpha])`; empty where it owns modules."""
    names = program.names(file)
    scope: ast.AST | None = names.class_of(at) if optimizer.startswith("self.") else names.function_of(at)
    for place in (scope, file.tree):
        made = _made(optimizer, place) if place is not None else None
        if made is not None:
            given = made[0].args[0] if isinstance(made[0], ast.Call) and made[0].args else None
            parts = given.elts if isinstance(given, (ast.List, ast.Tuple)) else []
            found = [dotted_name(one) for one in parts]
            return frozenset(one for one in found if one) if all(found) else frozenset()
    return frozenset()


def _is_asked_for(value: ast.expr) -> bool:
    """`self.optimizers()` of Lightning, which are those of `configure_optimizers`, in their order."""
    return isinstance(value, ast.Call) and dotted_name(value.func) == "self.optimizers"


def _configured(place: int, owner: ast.ClassDef, file: SourceFile, program: Program) -> frozenset[str]:
    """The modules of the optimizer at a place of what `configure_optimizers` returns: optimizers, or lists of them and of schedulers."""
    methods = [one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "configure_optimizers"]
    for node in (each for one in methods for each in walk(one)):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        given = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
        given = given[0].elts if given and isinstance(given[0], (ast.Tuple, ast.List)) else given
        if place < len(given):
            name = dotted_name(given[place])
            return owned_by(name, node, file, program) if name else _modules((given[place], None), program)
    return frozenset()


def _parameter(name: str, function: Function | None) -> bool:
    if function is None:
        return False
    return name in {one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}


def _through_callers(optimizer: str, function: Function, program: Program, depth: int) -> frozenset[str]:
    """The owned modules by the names that the function's parameters give them, read where it is called."""
    for where in program.parsed():
        for call in where.walk():
            if not isinstance(call, ast.Call) or (dotted_name(call.func) or "").rpartition(".")[2] != function.name:
                continue
            given = {name: dotted_name(value) for name, value in arguments_of(call, function)}
            outer = given.get(optimizer)
            modules = owned_by(outer, call, where, program, depth + 1) if outer else frozenset()
            found = {name for name, value in given.items() if value in modules}
            if found:
                return frozenset(found)
            if modules:  # a module-level name that the function reads as it is
                return modules & frozenset(reads(function, graph=False))
    return frozenset()


def _made(name: str, within: ast.AST) -> tuple[ast.expr, int | None] | None:
    """What `name` is assigned, and at which place of a tuple."""
    for node in walk(within):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if dotted_name(target) == name:
                return node.value, None
            parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
            for place, one in enumerate(parts):
                if dotted_name(one) == name:
                    value = node.value
                    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(parts):
                        return value.elts[place], None
                    return value, place
    return None


def _modules(made: tuple[ast.expr, int | None], program: Program) -> frozenset[str]:
    """The modules whose `.parameters()` stand in an expression, or in what the function that it calls returns."""
    value, place = made
    found = {name for node in walk(value) if (name := _listed(node))}
    if found or not isinstance(value, ast.Call):
        return frozenset(found)
    target = program.find_function(dotted_name(value.func) or "")
    if target is None:
        return frozenset()
    where, function = target
    given = {name: dotted_name(one) for name, one in arguments_of(value, function)}
    inner: set[str] = set()
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            one = node.value.elts[place] if isinstance(node.value, ast.Tuple) and place is not None else node.value
            name = dotted_name(one)
            inner |= _modules((one, None), program) if name is None else owned_by(name, one, where, program, _DEPTH)
    return frozenset(outer for name in inner if (outer := given.get(name)))


def _listed(node: ast.AST) -> str | None:
    """`net` of `net.parameters()`, `net.fc` of `net.fc.weight` in a list is not followed."""
    func = node.func if isinstance(node, ast.Call) else None
    is_list = isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters")
    return dotted_name(func.value) if is_list and isinstance(func, ast.Attribute) else None


def calls_of(
    modules: frozenset[str], node: ast.AST, file: SourceFile, program: Program, depth: int = 0
) -> list[ast.Call]:
    """The calls in a node that run one of the modules: itself, a part or method or whole of it, a function that is given or runs it."""
    return [
        one
        for one in walk(node)
        if isinstance(one, ast.Call) and (_runs(modules, one) or _runs_inside(modules, one, file, program, depth))
    ]


def _runs(modules: frozenset[str], call: ast.Call) -> bool:
    name = dotted_name(call.func) or ""
    if name.rpartition(".")[2] in _NO_FORWARD:
        return False
    runs = any(f"{name}.".startswith(f"{module}.") or f"{module}.".startswith(f"{name}.") for module in modules if name)
    return runs or any(dotted_name(argument) in modules for argument in call.args)


def _runs_inside(modules: frozenset[str], call: ast.Call, file: SourceFile, program: Program, depth: int) -> bool:
    """Whether a function of the same file, or a method of the same object, runs a module by the name that it has here."""
    owner, _, last = (dotted_name(call.func) or "").rpartition(".")
    around = program.names(file).class_of(call) if owner == "self" else file.tree if not owner else None
    body = getattr(around, "body", [])
    function = next((one for one in body if isinstance(one, ast.FunctionDef) and one.name == last), None)
    if function is None or depth > 1:
        return False
    own = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)} - {"self"}
    return bool(calls_of(frozenset(modules - own), function, file, program, depth + 1))
