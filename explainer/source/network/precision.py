"""Where a program chooses float16: dtypes, strings and flags of settings, casts of modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.flow import flow_of

DTYPE, WORD, METHOD, FLAG = "dtype", "word", "method", "flag"
_SETTINGS = frozenset(
    {"dtype", "torch_dtype", "mixed_precision", "compute_dtype", "bnb_4bit_compute_dtype", "precision"}
)
_WORDS = frozenset({"float16", "fp16", "half", "torch.float16", "16-mixed", "16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """One place that says float16. `node` is the dtype, the string, the `.half()` call or the `fp16=True` keyword."""

    kind: str
    file: SourceFile
    node: ast.expr | ast.keyword
    is_autocast: bool = False


def find_halves(program: Program) -> Iterator[Half]:
    """Every place of a program that chooses float16, but for comparisons with it, file by file."""
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            if isinstance(node, (ast.Name, ast.Attribute)) and names.qualified(node) in ("torch.float16", "torch.half"):
                above = file.parents.get(node)
                is_read = isinstance(node.ctx, ast.Load) and not isinstance(above, (ast.Compare, ast.Attribute))
                if isinstance(above, ast.Dict) and _is_translation(above, node):
                    continue
                if is_read and (dotted_name(node) or "").partition(".")[0] in names.imports:
                    yield Half(kind=DTYPE, file=file, node=node, is_autocast=_is_autocast(node, file, program))
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "half" and not node.args and names.qualified(node.func) != "torch.half":
                    yield Half(kind=METHOD, file=file, node=node)
            elif isinstance(node, ast.keyword):
                yield from _setting(node, file)


def _is_translation(table: ast.Dict, node: ast.expr) -> bool:
    """Whether a table gives a word its dtype, `{"float16": torch.float16}`: what chooses is who writes the word."""
    keys = [key for key, value in zip(table.keys, table.values, strict=True) if value is node]
    return any(isinstance(key, ast.Constant) and key.value in _WORDS for key in keys)


def _setting(node: ast.keyword, file: SourceFile) -> Iterator[Half]:
    value = node.value
    if not isinstance(value, ast.Constant):
        return
    if node.arg == "fp16" and value.value is True:
        yield Half(kind=FLAG, file=file, node=node)
    elif node.arg in _SETTINGS and value.value in _WORDS:
        yield Half(kind=WORD, file=file, node=value)


def _is_autocast(node: ast.expr, file: SourceFile, program: Program) -> bool:
    call = file.enclosing(node, ast.Call)
    called = program.names(file).qualified(call.func) or "" if isinstance(call, ast.Call) else ""
    return called.rpartition(".")[2] == "autocast"


def is_module(node: ast.expr, file: SourceFile, program: Program, asked: frozenset[str] = frozenset()) -> bool:
    """Whether an expression is a module: a constructor of one, or a name that one was given to or that has parameters.

    `asked` are the names that were asked about on the way: `x = x.to(dtype)` says nothing of `x`.
    """
    names = program.names(file)
    flow = flow_of(program)
    if isinstance(node, ast.Call):
        called = names.qualified(node.func) or ""
        if called.startswith("torch.nn.") and called.rpartition(".")[2][:1].isupper():
            return called not in ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
        if called.endswith((".from_pretrained", ".from_config")):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "train", "eval", "cpu"):
            return is_module(node.func.value, file, program, asked)
        return program.find_class(called) is not None and called[:1].isupper()
    name = dotted_name(node)
    if name is None or name in asked:
        return False
    asked |= {name}
    made = flow.constructor_of(node, file)
    if name in flow.modules or (made is not None and is_module(made, file, program, asked)):
        return True
    bound = names.assignments(name, file.tree) if file.tree is not None and "." not in name else []
    given = [one.value for one in bound if isinstance(one, ast.Assign)]
    return any(
        isinstance(one, ast.Call) and dotted_name(one.func) != f"{name}.half" and is_module(one, file, program, asked)
        for one in given
    )
