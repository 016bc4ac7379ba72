"""Parameters and modules that a method of a module makes each time it runs, and whether `__init__` could make them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.resolve import resolver_of

PARAMETER = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_RUN_BY_OTHERS = ("forward", "training_step")
_DEPTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew:
    """What a method makes: a call, or the list of some."""

    file: SourceFile
    node: ast.expr
    method: Function
    owner: ast.ClassDef

    @property
    def statement(self) -> ast.stmt:
        """The statement that makes it."""
        return self.file.statement(self.node)

    @property
    def is_list(self) -> bool:
        """Whether it is a list of what is made."""
        return isinstance(self.node, (ast.List, ast.ListComp))


def made_at(file: SourceFile, line: int, program: Program) -> Anew | None:
    """The outermost call on a line that makes a parameter or a module, or the list around it; None where it is in no module's method."""
    calls = [
        one
        for one in file.walk()
        if isinstance(one, ast.Call)
        and one.lineno <= line <= (one.end_lineno or 0)
        and _makes(one, file, program)
        and not _within_another(one, file, program)
    ]
    return _anew(calls[0], file, program) if len(calls) == 1 else None


def made_in_forwards(program: Program) -> Iterator[Anew]:
    """Everything that methods of modules make so, but for `__init__`, where no part of the class is made before."""
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and _makes(node, file, program) and not _within_another(node, file, program):
                found = _anew(node, file, program)
                if found is not None and not any(
                    isinstance(one, ast.Call) and _makes(one, file, program)
                    for one in walk(init_of(found.owner) or ast.Pass())
                ):
                    yield found


def init_of(owner: ast.ClassDef) -> ast.FunctionDef | None:
    """The `__init__` that a class defines."""
    return next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)


def _anew(call: ast.Call, file: SourceFile, program: Program) -> Anew | None:
    names = program.names(file)
    method, owner = names.function_of(call), names.class_of(call)
    if method is None or owner is None or method.name == "__init__" or method not in owner.body:
        return None
    if not inherits_module(owner, file, program):
        return None
    above = file.parents.get(call)
    is_listed = isinstance(above, (ast.List, ast.ListComp)) and all(
        isinstance(one, ast.Call) and _makes(one, file, program)
        for one in ([above.elt] if isinstance(above, ast.ListComp) else above.elts)
    )
    node = above if is_listed and isinstance(above, (ast.List, ast.ListComp)) else call
    return Anew(file=file, node=node, method=method, owner=owner)


def _makes(call: ast.Call, file: SourceFile, program: Program) -> bool:
    called = program.names(file).qualified(call.func) or ""
    if called in PARAMETER:
        return True
    if called.startswith("torch.nn.") and not called.startswith(
        ("torch.nn.functional.", "torch.nn.utils.", "torch.nn.init.")
    ):
        return called.rpartition(".")[2][:1].isupper()
    found = resolver_of(program).find_class(call.func, file)
    return found is not None and inherits_module(found[1], found[0], program)


def _within_another(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether what a call makes is a part of what another one makes."""
    above = file.parents.get(call)
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Call) and call is not above.func and _makes(above, file, program):
            return True
        above = file.parents.get(above)
    return False


def runs_once(anew: Anew, program: Program) -> bool:
    """Whether a forward runs the place once: not in a branch or a loop, in a method that one place alone calls."""
    file, node, function = anew.file, anew.node, anew.method
    for _ in range(_DEPTH):
        if not _is_straight(node, function, file):
            return False
        calls = resolver_of(program).calls_of(function, file)
        if function.name in _RUN_BY_OTHERS:
            return True
        if len(calls) != 1:
            return False
        file, node = calls[0]
        around = program.names(file).function_of(node)
        if around is None or program.names(file).class_of(node) is not anew.owner:
            return False
        function = around
    return False


def _is_straight(node: ast.AST, function: Function, file: SourceFile) -> bool:
    above = file.parents.get(node)
    while above is not None and above is not function:
        if not isinstance(
            above, (ast.expr, ast.keyword, ast.With, ast.Expr, ast.Assign, ast.Return, ast.AnnAssign, ast.AugAssign)
        ):
            return False
        if isinstance(above, (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return False
        above = file.parents.get(above)
    return above is function


def is_taken(name: str, owner: ast.ClassDef) -> bool:
    """Whether a class has an attribute or a method of a name, or any module has."""
    if name in _OF_MODULES or hasattr(builtins, name) or not name.isidentifier():
        return True
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name) or getattr(one, "name", None) == name
        for one in walk(owner)
    )


_OF_MODULES = frozenset(
    {"training", "parameters", "buffers", "modules", "children", "forward", "train", "apply", "to", "half", "double", "cuda", "cpu"}
    | {"device", "dtype", "name", "hparams", "logger", "trainer", "log", "config"}
)  # fmt: skip
