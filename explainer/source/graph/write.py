"""In-place writes of a program, and whether autograd still needs what they overwrite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from explainer.source.file import SourceFile
from explainer.source.graph.operand import is_operand_before
from explainer.source.graph.operation import Operation, node_name, operation_of, operator_name, saves_output
from explainer.source.graph.private import is_private, operation_above
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import members_behind, settings_behind
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk
from explainer.source.value.array_kind import ARRAY, kind_of
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.definition import operations_before

AUGMENTED, METHOD, SUBSCRIPT, ARGUMENT = "augmented", "method", "subscript", "argument"
FUNCTION = "function"  # `F.relu_(x)`, `torch.sigmoid_(x)`
_NO_GRAD = ("torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad")
NOT_WRITES = frozenset({"requires_grad_", "share_memory_", "retain_grad_", "__init_"})
_NUMBERS = (
    "len",
    "int",
    "float",
    "sum",
    "round",
    "range",
    "str",
    "list",
    "dict",
    "time.time",
    "max",
    "min",
    "enumerate",
    "set",
    "tuple",
    "deque",
    "defaultdict",
    "OrderedDict",
    "Counter",
    "collections.deque",
    "collections.defaultdict",
    "collections.OrderedDict",
    "collections.Counter",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One in-place write. `target` is the expression whose tensor changes, `name` its dotted name where it has one.

    `node` is the statement (augmented and subscript assignments) or the call. `overwrites` are the operations that may have
    made the value, None among them for what is not known; `makes` is the write's own operation. `is_needed` says whether a
    backward reads the old value: True and False by what the source shows, None where it does not show. `settings` are where
    an `inplace` argument comes from, if not from here.
    """

    kind: str
    file: SourceFile
    node: ast.stmt | ast.Call
    target: ast.expr
    name: str | None
    overwrites: tuple[Operation | None, ...] = ()
    makes: str | None = None
    is_needed: bool | None = None
    settings: tuple[Setting, ...] = ()


def find_writes(program: Program) -> tuple[Write, ...]:
    """Every in-place write to what may be a tensor, outside `no_grad`, file by file, nearest to the failure first."""
    return program.once(_find_writes)


def _find_writes(program: Program) -> Iterator[Write]:
    for file in program.parsed():
        for node in file.walk():
            found = _write_at(node, file, program)
            if found is not None and not is_without_grad(node, file, program) and not _is_of_array(found, program):
                yield _judged(found, program)


def writes_in(scope: ast.AST, file: SourceFile, program: Program) -> tuple[Write, ...]:
    """The in-place writes of a function itself, also under `no_grad`: of gradients none needs a graph."""
    found = (_write_at(node, file, program) for node in walk_scope(scope))
    return tuple(one for one in found if one is not None)


def _is_of_array(write: Write, program: Program) -> bool:
    """Whether what is written is an array of NumPy, which no graph reads unless its memory is lent."""
    if write.kind not in (AUGMENTED, SUBSCRIPT) or "numpy" not in program.names(write.file).imports.values():
        return False
    return kind_of(Value(write.target, write.file), program) == ARRAY


def _write_at(node: ast.AST, file: SourceFile, program: Program) -> Write | None:
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Subscript):
            return _element(node, node.target, file, program)
        return None if _is_number(node, file, program) else _write(AUGMENTED, file, node, node.target)
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        return (
            None
            if is_container(node.targets[0], file, program)
            else _write(SUBSCRIPT, file, node, node.targets[0].value)
        )
    if isinstance(node, ast.Call):
        return _call(node, file, program)
    return None


def _element(node: ast.AugAssign, target: ast.Subscript, file: SourceFile, program: Program) -> Write | None:
    """`x[i] += v` writes a part of a tensor; `outputs["h"] += v` all of one that a container holds."""
    if not is_container(target, file, program):
        return _write(SUBSCRIPT, file, node, target.value)
    if isinstance(node.value, ast.Constant) or _is_number(node, file, program):
        return None
    return _write(AUGMENTED, file, node, target)


def _write(kind: str, file: SourceFile, node: ast.stmt | ast.Call, target: ast.expr) -> Write:
    return Write(
        kind=kind, file=file, node=node, target=target, name=dotted_name(target), makes=_own_operation(kind, node)
    )


def _own_operation(kind: str, node: ast.stmt | ast.Call) -> str | None:
    """The name that the written tensor's node has afterwards."""
    if kind == SUBSCRIPT:
        return "CopySlices"
    if isinstance(node, ast.AugAssign):
        return operator_name(node.op)
    if isinstance(node, ast.Call):
        return node_name(node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
    return None


def _call(node: ast.Call, file: SourceFile, program: Program) -> Write | None:
    func = node.func
    settings = None if _is_inplace(node) else _inplace_settings(node, file, program)
    if settings or settings is None:
        called = program.names(file).qualified(func) or ""
        target = node.args[0] if called.startswith("torch.nn.functional") and node.args else node
        return replace(_write(ARGUMENT, file, node, target), settings=settings or ())
    if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.startswith("_"):
        called = program.names(file).qualified(func) or ""
        if called.rpartition(".")[0] in ("torch", "torch.nn.functional") and node.args:
            return _write(FUNCTION, file, node, node.args[0])
        if func.attr in NOT_WRITES or called.startswith("torch."):
            return None
        return _write(METHOD, file, node, func.value)
    return None


def _is_inplace(node: ast.Call) -> bool:
    return any(
        one.arg == "inplace" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in node.keywords
    )


def _inplace_settings(node: ast.Call, file: SourceFile, program: Program) -> tuple[Setting, ...]:
    """The settings that are true and that a call gets as its `inplace`, by name or in `**mapping`."""
    found: list[Setting] = []
    for one in node.keywords:
        if one.arg == "inplace" and not isinstance(one.value, ast.Constant):
            found += settings_behind(one.value, file, program)
        elif one.arg is None and _has_inplace_setting(program):
            found += members_behind(one.value, "inplace", file, program)
    return tuple(setting for setting in found if setting.value is True)


@lru_cache(maxsize=4)
def _has_inplace_setting(program: Program) -> bool:
    """Whether a configuration file, a script, a dictionary or a default switches an `inplace` on."""
    written = [one for document in program.documents("inplace") for one in document.settings]
    for file in program.parsed():
        if "inplace" in file.text:
            written += [one for one in read_python(file) if not (one.owner or "").startswith("torch.")]
    return any("inplace" in one.name and one.value is True for one in written)


def _is_number(node: ast.AugAssign, file: SourceFile, program: Program) -> bool:
    """Whether an augmented target is a counter, a list or a float rather than a tensor."""
    if isinstance(node.value, (ast.List, ast.ListComp, ast.JoinedStr)) or _is_plain(node.value, file, program):
        value_is_plain = not isinstance(node.value, ast.Constant) or isinstance(node.value.value, str)
        if value_is_plain:
            return True
    name = dotted_name(node.target)
    scope = program.names(file).function_of(node) or file.tree
    owner = program.names(file).class_of(node) if name and name.startswith("self.") else None
    bound = program.names(file).assignments(name, owner or scope) if name and scope is not None else []
    first = next((one for one in bound if isinstance(one, (ast.Assign, ast.AnnAssign))), None)
    return first is not None and _is_plain(_value_for(name, first), file, program)


def _value_for(name: str | None, statement: ast.Assign | ast.AnnAssign) -> ast.expr | None:
    """What a statement gives a name, its part of `rows, marks = [], []` too."""
    target, value = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target, statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return next((each for one, each in pairs if dotted_name(one) == name), value)
    return value


def _is_plain(value: ast.expr | None, file: SourceFile, program: Program) -> bool:
    if isinstance(value, (ast.Constant, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr, ast.Compare)):
        return True
    if not isinstance(value, ast.Call):
        return False
    method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    if method == "split":  # of words; a tensor's takes sizes
        first = value.args[0] if value.args else None
        return first is None or (isinstance(first, ast.Constant) and isinstance(first.value, str))
    return program.names(file).qualified(value.func) in _NUMBERS or method in ("item", "tolist", "numpy", "format")


def is_container(target: ast.Subscript, file: SourceFile, program: Program) -> bool:
    """Whether `target[key]` writes into a dictionary or list: by its key, or by what the name was made of."""
    if isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str):
        return True
    name = dotted_name(target.value)
    names = program.names(file)
    owner = names.class_of(target) if name and name.startswith("self.") else None
    scope = owner or names.function_of(target) or file.tree
    bound = names.assignments(name, scope) if name and scope is not None else []
    made = [one.value for one in bound if isinstance(one, (ast.Assign, ast.AnnAssign))]
    # What an attribute is before it is filled says nothing: `self.cells = None`.
    made = [one for one in made if not (isinstance(one, ast.Constant) and one.value is None)]
    return any(_is_plain(one, file, program) for one in made)


def is_without_grad(node: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether a node runs under `no_grad` or `inference_mode`, as a block or a decorator around it."""
    cut = _without_grad(program)
    above: ast.AST | None = node if cut else None
    while above is not None and above not in cut:
        above = file.parents.get(above)
    return above is not None


@lru_cache(maxsize=2)
def _without_grad(program: Program) -> frozenset[ast.AST]:
    """The blocks and functions of a program that run without grad."""
    found: set[ast.AST] = set()
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            contexts: list[ast.expr] = []
            if isinstance(node, ast.With):
                contexts = [item.context_expr for item in node.items]
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                contexts = node.decorator_list
            made = (one.func if isinstance(one, ast.Call) else one for one in contexts)
            if any((names.qualified(one) or "") in _NO_GRAD for one in made):
                found.add(node)
    return frozenset(found)


def _judged(write: Write, program: Program) -> Write:
    """`write` with the operations whose value it overwrites, and whether a backward needs that value."""
    if write.name:
        made = operations_before(write.name, write.node, write.file, program)
    elif isinstance(write.target, ast.Call) and write.target is write.node:  # the constructor of an activation
        made = (operation_above(write.target, write.file, program),)
    else:
        made = (operation_of(write.target, write.file, program),)
    write = replace(write, overwrites=made)
    if _is_by_mode(write):
        return write
    if any(one is not None and saves_output(one) for one in made):
        return replace(write, is_needed=True)
    if write.name is not None:
        is_read = is_operand_before(write.name, write.node, write.file, program)
        return replace(write, is_needed=True if is_read else None)
    is_alone = (
        write.kind == ARGUMENT and isinstance(write.node, ast.Call) and is_private(write.node, write.file, program)
    )
    return replace(write, is_needed=False if is_alone else None)


def _is_by_mode(write: Write) -> bool:
    """Whether the write stands under a test of `training`: in evaluation nothing may need what it overwrites."""
    above: ast.AST | None = write.node
    while above is not None:
        above = write.file.parents.get(above)
        tests = walk(above.test) if isinstance(above, (ast.If, ast.IfExp)) else ()
        if any(getattr(one, "attr", getattr(one, "id", "")) == "training" for one in tests):
            return True
    return False
