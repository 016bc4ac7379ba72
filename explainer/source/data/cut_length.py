"""Where a data set cuts its samples to a fixed length by a slice, and leaves the shorter ones as they are.

`wave[start : start + n]` and `wave[:n]` have n elements only where there are n. A window of a long series that an index
walks is none of these: its end is short because the index goes too far.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, parameters_of, reaching
from explainer.source.value.resolve import resolver_of

_DEPTH = 6
_FILLS = frozenset(
    {
        "zeros",
        "new_zeros",
        "full",
        "new_full",
        "tile",
        "repeat",
        "cat",
        "concatenate",
        "hstack",
        "interpolate",
        "resize",
    }
)
_ROUNDS = frozenset({"int", "round", "math.ceil", "math.floor"})


@dataclass(frozen=True, slots=True)
class Cut:
    """A slice: `node` of `base` to `length`, along the axis `axis` (None: the last one)."""

    file: SourceFile
    function: Function
    node: ast.Subscript
    base: ast.expr
    length: ast.expr
    axis: int | None


def find_cuts(program: Program) -> Iterator[Cut]:
    """The cuts of samples in what `__getitem__` runs; none where anything of that pads, or sees to short ones."""
    reached = list(_reached(program))
    if any(_fills(node, program.names(file)) for file, function in reached for node in walk(function)):
        return
    for file, function in reached:
        for node in walk(function):
            cut = _cut(node, function, file) if isinstance(node, ast.Subscript) else None
            if cut is not None and _is_sample(cut) and _is_fixed(Value(cut.length, file), program) and not _guards(cut):
                yield cut


def _reached(program: Program) -> Iterator[tuple[SourceFile, Function]]:
    """`__getitem__` and `__iter__` of the data sets, and the functions and transforms of the program that they call."""
    todo: list[tuple[SourceFile, Function]] = [
        (file, one)
        for file in program.parsed()
        for owner in program.names(file).classes.values()
        if not any((dotted_name(base) or "").endswith(("Sampler", "Module")) for base in owner.bases)
        for one in owner.body
        if isinstance(one, ast.FunctionDef) and one.name in ("__getitem__", "__iter__")
    ]
    seen: set[ast.AST] = set()
    while todo:
        file, function = todo.pop(0)
        if function in seen:
            continue
        seen.add(function)
        yield file, function
        for node in walk(function):
            if isinstance(node, ast.Call):
                todo += _callees(node, file, program)


def _callees(call: ast.Call, file: SourceFile, program: Program) -> list[tuple[SourceFile, Function]]:
    resolver = resolver_of(program)
    found = resolver.function_of(call, Value(call, file))
    return [found] if found is not None else list(_run_by(Value(call.func, file), program, 0))


def _run_by(value: Value, program: Program, depth: int) -> Iterator[tuple[SourceFile, Function]]:
    """What runs when an object is called: a function that a name stands for, `__call__`, each part of a `Compose`."""
    resolver = resolver_of(program)
    if depth > _DEPTH:
        return
    if isinstance(value.node, ast.Name):
        plain = program.find_function(program.names(value.file).qualified(value.node) or "")
        if plain is not None and program.names(plain[0]).class_of(plain[1]) is None:
            yield plain
            return
    for made in resolver.constructors_of(value):
        if not isinstance(made.node, ast.Call):
            continue
        owner = resolver.find_class(made.node.func, made.file)
        methods = [resolver.method(owner[1], one, owner[0]) for one in ("__call__", "forward")] if owner else []
        yield from (one for one in methods if one is not None)
        for part in made.node.args if owner is None else ():
            for one in part.elts if isinstance(part, (ast.List, ast.Tuple)) else ():
                yield from _run_by(Value(one, made.file, made.arguments), program, depth + 1)
    for bound in resolver.behind(value):
        if isinstance(bound.node, ast.Name):
            yield from _run_by(bound, program, depth + 1)


def _fills(node: ast.AST, names: Names) -> bool:
    """Whether a call may lengthen what it gets."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else names.qualified(node.func) or ""
    name = name.rpartition(".")[2].lower()
    return "pad" in name or name in _FILLS


def _cut(node: ast.Subscript, function: Function, file: SourceFile) -> Cut | None:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    places = [at for at, one in enumerate(parts) if isinstance(one, ast.Slice) and (one.lower or one.upper or one.step)]
    others = [one for at, one in enumerate(parts) if at not in places]
    if len(places) != 1 or not isinstance(node.ctx, ast.Load):
        return None
    whole = [one for one in others if isinstance(one, ast.Slice)]
    dots = [one for one in others if isinstance(one, ast.Constant) and one.value is Ellipsis]
    if len(whole) + len(dots) < len(others) or (dots and parts[-1] is not parts[places[0]]):
        return None
    part = parts[places[0]]
    length = _length(part) if isinstance(part, ast.Slice) else None
    return Cut(file, function, node, node.value, length, None if dots else places[0]) if length is not None else None


def _length(part: ast.Slice) -> ast.expr | None:
    """How long a slice is at most: n of `[:n]` and of `[a : a + n]`."""
    if part.step is not None or part.upper is None:
        return None
    if part.lower is None or (isinstance(part.lower, ast.Constant) and part.lower.value == 0):
        return part.upper
    if isinstance(part.upper, ast.BinOp) and isinstance(part.upper.op, ast.Add):
        sides = [part.upper.left, part.upper.right]
        lower = ast.dump(part.lower)
        for one, other in (sides, sides[::-1]):
            if ast.dump(one) == lower:
                return other
    return None


def _is_sample(cut: Cut) -> bool:
    """Whether a sample is cut, from a place that no index of the data set gives: not the data as a whole, window by window."""
    file, base = cut.file, cut.base
    if isinstance(base, ast.Attribute):
        return False
    if isinstance(base, ast.Name):
        bound = reaching(base.id, cut.node, file)
        if any(isinstance(one.node, ast.Attribute) and not one.is_element for one in bound):
            return False
        if not bound and base.id not in parameters_of(cut.function):
            return False  # a module's own data
    part = cut.node.slice.elts[cut.axis or -1] if isinstance(cut.node.slice, ast.Tuple) else cut.node.slice
    lower = part.lower if isinstance(part, ast.Slice) else None
    return lower is None or isinstance(lower, ast.Constant) or _starts_in_time(lower, cut)


def _starts_in_time(lower: ast.expr, cut: Cut) -> bool:
    """Whether a cut begins at a place that was found with its length in mind, and by no index, no loop from window to window."""
    base, length = dotted_name(cut.base), ast.dump(cut.length)
    others = set(parameters_of(cut.function)) - {base, dotted_name(cut.length)}
    parts = list(_made_of(lower, cut, 0))
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    is_walked = any(
        bound.is_element for one in parts if isinstance(one, ast.Name) for bound in reaching(one.id, one, cut.file)
    )
    return not is_walked and not others & names and any(ast.dump(one) == length for one in parts)


def _made_of(node: ast.expr, cut: Cut, depth: int) -> Iterator[ast.AST]:
    """The parts of an expression, through local names; what stands for the sample itself is not gone into."""
    for one in walk(node):
        yield one
        if isinstance(one, ast.Name) and one.id != dotted_name(cut.base) and depth < _DEPTH:
            for bound in reaching(one.id, node, cut.file):
                yield from _made_of(bound.node, cut, depth + 1)


def _is_fixed(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether a length is the same for each sample: a number, a setting of the object or the module, arithmetic on these."""
    node = value.node
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool) and node.value > 0
    if depth > _DEPTH or value.is_element or value.pick is not None:
        return False
    if isinstance(node, ast.BinOp):
        return all(
            _is_fixed(Value(one, value.file, value.arguments), program, depth + 1) for one in (node.left, node.right)
        )
    if isinstance(node, ast.Call):
        is_round = program.names(value.file).qualified(node.func) in _ROUNDS and len(node.args) == 1
        return is_round and _is_number(Value(node.args[0], value.file, value.arguments), program, depth)
    if isinstance(node, ast.Attribute):
        return _is_setting(node, value.file, program)
    if not isinstance(node, ast.Name):
        return False
    found = list(resolver_of(program).behind(value))
    return bool(found) and all(_is_fixed(one, program, depth + 1) for one in found)


def _is_number(value: Value, program: Program, depth: int) -> bool:
    if isinstance(value.node, ast.Constant):
        return isinstance(value.node.value, (int, float))
    if isinstance(value.node, ast.BinOp):
        sides = (value.node.left, value.node.right)
        return all(_is_number(Value(one, value.file, value.arguments), program, depth + 1) for one in sides)
    return _is_fixed(value, program, depth + 1)


def _is_setting(node: ast.Attribute, file: SourceFile, program: Program) -> bool:
    """Whether `self.n` is bound in `__init__`, or the class, alone; `config.n` and `args.n` are settings by their owner's name."""
    name = dotted_name(node) or ""
    if not name.startswith("self."):
        owner = name.rpartition(".")[0].rpartition(".")[2].lower()
        return owner in ("cfg", "config", "args", "opt", "hparams", "hp", "conf", "settings")
    if name.count(".") > 1:
        return name.split(".")[1].lower() in ("cfg", "config", "args", "opt", "hparams", "hp", "conf")
    owner_class = program.names(file).class_of(node)
    bound = program.names(file).assignments(name, owner_class) if owner_class is not None else []
    inits = [getattr(program.names(file).function_of(one), "name", None) for one in bound]
    if bound:
        return all(one == "__init__" for one in inits)
    return owner_class is not None and any(
        node.attr == getattr(one.targets[0] if isinstance(one, ast.Assign) else one.target, "id", None)
        for one in owner_class.body
        if isinstance(one, (ast.Assign, ast.AnnAssign))
    )


def _guards(cut: Cut) -> bool:
    """Whether the function asks which samples are shorter than the length: what it does with them is its own."""
    length = ast.dump(cut.length)
    for node in walk(cut.function):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            right, left = ast.dump(node.comparators[0]), ast.dump(node.left)
            if (isinstance(node.ops[0], (ast.Lt, ast.LtE)) and right == length) or (
                isinstance(node.ops[0], (ast.Gt, ast.GtE)) and left == length
            ):
                return True
    return False
