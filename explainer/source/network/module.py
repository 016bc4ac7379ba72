"""The modules of a program as its classes write them: their parts, which of them is the head, whose parameters are trained."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import owner_of
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.resolve import resolver_of

HEAD = re.compile(
    r"head|^fc\d*$|classif|^out(put)?(_|$)|readout|score|^cls$|^lm_head$|predict|regress|logits|final", re.IGNORECASE
)
_PLAIN = frozenset(
    {"ReLU", "GELU", "Tanh", "Sigmoid", "Dropout", "Softmax", "Flatten", "Identity", "SiLU", "MaxPool2d", "LeakyReLU"}
)
_MODULES = ("torch.nn.", "lightning.", "pytorch_lightning.")
_NO_MODULES = ("DataModule", "Callback", "Trainer")  # of Lightning too
_LIBRARIES = ("transformers.", "torchvision.models.", "timm.", "diffusers.", "sentence_transformers.")
_CONTAINERS = ("torch.nn.ModuleDict", "torch.nn.ModuleList", "torch.nn.Sequential")
_MAX_BASES = 8


def parts_of(owner: ast.ClassDef, file: SourceFile, program: Program) -> list[str]:
    """The attributes of a class that hold modules or parameters, in the order in which `__init__` makes them."""
    return list(dict.fromkeys(_parts(owner, file, program)))


def _parts(owner: ast.ClassDef, file: SourceFile, program: Program) -> Iterator[str]:
    made = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    for bound in bounds_of(made) if made is not None else ():
        # `nn.Linear(8, 8) if pooled else None` holds a layer where it holds anything.
        choice = (bound.node.body, bound.node.orelse) if isinstance(bound.node, ast.IfExp) else (bound.node,)
        call = next((one for one in choice if isinstance(one, ast.Call)), None)
        if bound.fills or not bound.name.startswith("self.") or call is None:
            continue
        called = program.names(file).qualified(call.func) or ""
        is_layer = called.startswith(("torch.nn.", "torchvision.", "transformers.", "timm.")) and not called.startswith(
            "torch.nn.init"
        )
        is_plain = called.rpartition(".")[2] in _PLAIN or called.endswith("Loss")
        if (is_layer and not is_plain) or resolver_of(program).find_class(call.func, file) is not None:
            yield bound.name.removeprefix("self.")


def head_of(parts: list[str]) -> str | None:
    """The part that gives the output: the one named like a head, else the last."""
    named = [one for one in parts if HEAD.search(one)]
    return named[-1] if named else parts[-1] if parts else None


def is_module(value: Value, program: Program) -> bool:
    """Whether an expression makes a module or stands for one: of torch's layers, or of a class that has a `forward` or inherits it."""
    resolver = resolver_of(program)
    made = [(one, one.node) for one in resolver.constructors_of(value) if isinstance(one.node, ast.Call)]
    called = [program.names(one.file).qualified(node.func) or "" for one, node in made if isinstance(node, ast.Call)]
    layers = [
        one for one in called if one.startswith(("torch.nn.", "torchvision.models.")) and not one.endswith("Parameter")
    ]
    if layers or any(one.endswith(".from_pretrained") for one in called):
        return True
    return any(
        any(getattr(one, "name", "") == "forward" for one in owner.body) or inherits_module(owner, file, program)
        for file, owner in resolver.classes_of(value)
    )


def is_of_library(value: Value, program: Program) -> bool:
    """Whether libraries of whole models alone make what an expression stands for, also several in a container."""
    made = resolver_of(program).constructors_of(value)
    calls = [(one.file, call) for one in made for call in walk(one.node) if isinstance(call, ast.Call)]
    called = [program.names(file).qualified(call.func) or "" for file, call in calls]
    own = [one for one in called if one.startswith("torch.nn.") and one not in _CONTAINERS]
    return (
        any(one.startswith(_LIBRARIES) for one in called)
        and not own
        and not any(program.find_class(one) for one in called)
    )


def inherits_module(owner: ast.ClassDef, file: SourceFile, program: Program, depth: int = 0) -> bool:
    """Whether a class is a module by its bases, as far as the program shows them: torch's, Lightning's, or one of its own."""
    for base in owner.bases if depth <= _MAX_BASES else ():
        called = program.names(file).qualified(base) or ""
        if called.startswith(_MODULES) and not called.endswith(_NO_MODULES):
            return True
        above = resolver_of(program).find_class(base, file)
        if above is not None and inherits_module(above[1], above[0], program, depth + 1):
            return True
    return False


@lru_cache(maxsize=4)
def trained_constructors(program: Program) -> frozenset[ast.AST]:
    """The calls that make the modules whose parameters an optimizer of the program gets."""
    resolver = resolver_of(program)
    found: set[ast.AST] = set()
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, ast.Call) and (names.qualified(node.func) or "").startswith("torch.optim."):
                for owner, where in _listed(node, file, program):
                    found |= {one.node for one in resolver.constructors_of(Value(owner, where))}
    return frozenset(found)


def _listed(node: ast.Call, file: SourceFile, program: Program) -> Iterator[tuple[ast.expr, SourceFile]]:
    """The modules whose parameters an optimizer's first argument lists, through one name."""
    first = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "params"), None)
    if first is None:
        return
    values = [Value(first, file)]
    if dotted_name(first) is not None:
        values += list(resolver_of(program).behind(values[0]))
    for value in values:
        for one in walk(value.node):
            if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and owner_of(one) is not None:
                yield one.func.value, value.file
