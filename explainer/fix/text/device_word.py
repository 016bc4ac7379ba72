"""How a program names its accelerator at a place: a variable that is set by then, or what it says elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import bounds_of, dominates, find_calls, scope_of

HOST = frozenset({"cpu", "meta"})
_NAMES = ("device", "dev")
_MOVES = ("to", "cuda")


def device_word(at: ast.AST, file: SourceFile, context: Context) -> str | None:
    """What names the accelerator before a node; None where nothing does."""
    given = [one for one in _arguments(at, file) if one == "device"]
    for word in (*given, *_words(file, context), *_held(at, file, context)):
        name = word.partition(".")[0]
        if not name.isidentifier() or _is_set(name, at, file, context):
            return word
    return None


def _words(file: SourceFile, context: Context) -> Iterator[str]:
    """How the program names its accelerator: what it gives to `.to(...)` and `device=`, most often first; `"cuda"` for `.cuda()`."""
    said: dict[str, int] = {}
    for one in (file, *(each for each in context.program.parsed() if each is not file)):
        for node in one.walk():
            word = _named(node, one)
            if word is not None and (one is file or not word.isidentifier()):
                said[word] = said.get(word, 0) + 1
    yield from sorted(said, key=lambda word: (not word.isidentifier(), -said[word]))
    names = context.program.names(file)
    for bound in bounds_of(file.tree):
        if isinstance(bound.node, ast.Call) and names.is_call(bound.node, "accelerate.Accelerator"):
            yield f"{bound.name}.device"


def _held(at: ast.AST, file: SourceFile, context: Context) -> Iterator[str]:
    """The names of a device that a place can read: made by `torch.device`, or imported under such a name."""
    names = context.program.names(file)
    for scope in dict.fromkeys((scope_of(at, file), file.tree)):
        for bound in bounds_of(scope) if scope is not None else ():
            is_device = bound.name.isidentifier() and isinstance(bound.node, ast.Call)
            if is_device and names.is_call(bound.node, "torch.device"):
                yield bound.name
    yield from (name for name in names.imports if name.lower() in _NAMES)
    if has_default_device(context.program):
        yield "torch.get_default_device()"


def has_default_device(program: Program) -> bool:
    """Whether a program says on which device tensors are made that name none."""
    return any(program.names(file).is_call(call, "torch.set_default_device") for file, call in find_calls(program))


def _named(node: ast.AST, file: SourceFile) -> str | None:
    given: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
        if node.func.attr == "cuda":
            return file.segment(node.args[0]) if node.args else '"cuda"'
        given = next(iter(node.args), None)
    elif isinstance(node, ast.keyword) and node.arg == "device":
        given = node.value
    if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value.partition(":")[0] not in HOST:
        return file.segment(given)
    name = dotted_name(given) if given is not None else None
    return name if name and name.rpartition(".")[2].lower() in _NAMES else None


def _is_set(name: str, at: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether a name has a value where a node runs: bound before it, an argument around it, or a name of the module."""
    scope = scope_of(at, file)
    if name in _arguments(at, file) or name in context.program.names(file).imports:
        return True
    if any(
        one.name == name and end_of(one.statement) <= start_of(at) and dominates(one.statement, at, file)
        for one in bounds_of(scope)
    ):
        return True
    return not isinstance(scope, ast.Module) and any(one.name == name for one in bounds_of(file.tree))


def _arguments(node: ast.AST, file: SourceFile) -> list[str]:
    """The names of the arguments of the function around a node."""
    arguments = getattr(scope_of(node, file), "args", None)
    return (
        [one.arg for one in walk(arguments) if isinstance(one, ast.arg)] if isinstance(arguments, ast.arguments) else []
    )
