"""The calls of a program that run a backward, step an optimizer, or run a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name, entry_name
from explainer.source.program import Program
from explainer.source.tree import walk

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
    """The optimizer that a statement steps, by its name: `opt.step()`, `scaler.step(opt)`, `opts["d"].step()`."""
    call = _own_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return None
    given = entry_name(call.args[0]) if call.args else None
    return given or entry_name(call.func.value)


def cleared(statement: ast.stmt) -> str | None:
    """What a statement calls `zero_grad` of."""
    call = _own_call(statement)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
        return None
    return entry_name(call.func.value)


def _own_call(statement: ast.stmt) -> ast.Call | None:
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return value if isinstance(value, ast.Call) else None


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
    name = entry_name(call.func) or ""
    if name.rpartition(".")[2] in _NO_FORWARD:
        return False
    runs = any(_is_within(name, module) or _is_within(module, name) for module in modules if name)
    return runs or any(entry_name(argument) in modules for argument in call.args)


def _is_within(name: str, owner: str) -> bool:
    """Whether a name is another one, an attribute of it or an entry."""
    return name == owner or name.startswith((f"{owner}.", f"{owner}["))


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
