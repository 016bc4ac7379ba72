"""The hooks that a program registers: the functions behind `layer.register_forward_hook(partial(self.collect, name))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.callee import Callee, callees_of

FORWARD = frozenset({"register_forward_hook", "register_module_forward_hook"})
FORWARD_PRE = frozenset({"register_forward_pre_hook", "register_module_forward_pre_hook"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """A function of the program that one call registers; `method` is the name of what registers it."""

    callee: Callee
    method: str
    call: ast.Call
    file: SourceFile

    @property
    def output(self) -> str | None:
        """The parameter that a forward hook gets the module's output by; None where there is none, or for other hooks."""
        return self.callee.parameter(3 if _takes_keywords(self.call) else 2) if self.method in FORWARD else None

    @property
    def inputs(self) -> str | None:
        """The parameter that a forward hook, or one before it, gets the module's inputs by."""
        return self.callee.parameter(1) if self.method in FORWARD | FORWARD_PRE else None


def find_hooks(program: Program) -> tuple[Hook, ...]:
    """Every function that a program registers as a hook, once for each call that does."""
    return program.once(_hooks)


def _hooks(program: Program) -> Iterator[Hook]:
    for file in program.parsed():
        for node in file.walk():
            method = method_of(node)
            if not isinstance(node, ast.Call) or not method.startswith("register_") or not method.endswith("_hook"):
                continue
            given = next((one.value for one in node.keywords if one.arg == "hook"), node.args[0] if node.args else None)
            for callee in callees_of(given, file, program) if given is not None else ():
                yield Hook(callee=callee, method=method, call=node, file=file)


def method_of(node: ast.AST) -> str:
    """The last part of the name that a call calls; empty for anything else."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _takes_keywords(node: ast.Call) -> bool:
    return any(
        one.arg == "with_kwargs" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in node.keywords
    )
