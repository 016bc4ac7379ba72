"""`"file": str(file)` for `"file": file` in what a dataset gives for a sample: a batch of paths cannot be made."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_REFUSED = re.compile(r"batch must contain tensors.*found <class 'pathlib\.\w*Path'>", re.DOTALL)
_PATHS = ("pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath")
# What only a path has.
_OF_A_PATH = frozenset({"with_suffix", "with_name", "stem", "suffix", "parent", "read_text", "read_bytes", "joinpath", "is_file", "glob", "iterdir", "resolve"})  # fmt: skip
_GIVES_PATHS = frozenset({"glob", "rglob", "iterdir", "with_suffix", "with_name", "joinpath", "resolve"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each path that a `__getitem__` returns, by itself or in a tuple or dictionary."""
    if not any(_REFUSED.search(one.message) for one in context.incident.exceptions):
        return
    for file, function in context.program.functions():
        if function.name != "__getitem__":
            continue
        found = [part for part in _parts(function) if _is_path(part, function, file, context.program)]
        if found:
            yield Proposal(
                edits=tuple(edit_of(file, one, f"str({file.segment(one)})") for one in found),
                culprit=culprit_of(file, found[0], "is a path, of which no batch can be made"),
                belief=2.0,
            )


def _parts(function: Function) -> Iterator[ast.expr]:
    """What a function returns, taken apart."""
    for one in walk(function):
        value = one.value if isinstance(one, ast.Return) else None
        if isinstance(value, ast.Dict):
            yield from value.values
        elif isinstance(value, (ast.Tuple, ast.List)):
            yield from value.elts
        elif value is not None:
            yield value


def _is_path(node: ast.expr, function: Function, file: SourceFile, program: Program) -> bool:
    """Whether an expression is a path: by what the function does with it, or by where it comes from."""
    text = dotted_name(node)
    if text is None and not isinstance(node, ast.Subscript):
        return False
    for one in walk(function):
        if isinstance(one, ast.Attribute) and one.attr in _OF_A_PATH and ast.unparse(one.value) == ast.unparse(node):
            return True
    held = node.value if isinstance(node, ast.Subscript) else node
    return any(_makes_path(one, program) for one in resolver_of(program).behind(Value(held, file)))


def _makes_path(value: Value, program: Program) -> bool:
    """Whether a value is a path, or an element of a list of them: `sorted(folder.glob("*.npy"))[start:stop]`."""
    node = value.node
    while isinstance(node, ast.Subscript) or (
        isinstance(node, ast.Call) and dotted_name(node.func) in ("sorted", "list") and node.args
    ):
        node = node.value if isinstance(node, ast.Subscript) else node.args[0]
    return isinstance(node, ast.Call) and (
        program.names(value.file).is_call(node, *_PATHS)
        or (isinstance(node.func, ast.Attribute) and node.func.attr in _GIVES_PATHS)
    )
