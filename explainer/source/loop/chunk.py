"""Where a program cuts samples into batches itself, and what is left over may be one sample.

Ranges of starts, pieces of a split, lists that are filled until they are full. What leaves such a rest out is not among them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import root_of

STARTS, PIECES, REST, SLICE = "starts", "pieces", "rest", "slice"
_SPLITS = ("torch.split", "torch.chunk", "numpy.array_split", "itertools.batched", "more_itertools.chunked")
_NUMBERS = frozenset({"float", "int", "str", "len", "ord"})
_METHODS = frozenset({"split", "chunk"})
_SEEN_THROUGH = frozenset({"enumerate", "tqdm", "list", "iter", "zip", "track"})
Loop = ast.For | ast.AsyncFor | ast.comprehension


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One place at which a batch of one sample may be cut; `node` is where.

    `starts`: the starts of slices, up to `stop`. `pieces`: what a call split, taken by `loop` as `name`, or handed out whole.
    `rest`: a statement that hands out the list `name`, whatever its length; `test` is what it asks for now. `slice`: a statement
    that binds `name` to a slice.
    """

    kind: str
    file: SourceFile
    node: ast.expr | ast.stmt
    stop: ast.expr | None = None
    size: ast.expr | None = None
    loop: Loop | None = None
    name: str | None = None
    test: ast.expr | None = None


def find_chunks(scope: ast.AST, file: SourceFile, program: Program) -> Iterator[Chunk]:
    """The places under a function, a method, or an expression that makes batches."""
    whole = split_of(scope, file, program) if isinstance(scope, ast.expr) else None
    if whole is not None:
        yield Chunk(kind=PIECES, file=file, node=whole, size=_size(whole, file, program))
    for loop in [one for one in walk(scope) if isinstance(one, (ast.For, ast.AsyncFor, ast.comprehension))]:
        for chunk in chunks_of_loop(loop, file, program):
            if chunk.kind != PIECES or isinstance(loop, ast.comprehension) or _is_taken(chunk.name, loop):
                yield chunk
    for node in walk(scope):
        if isinstance(node, ast.While):
            yield from chunks_of_loop(node, file, program)
        elif isinstance(node, (ast.YieldFrom, ast.Return)) and node.value is not None:
            call = split_of(node.value, file, program)
            if call is not None:
                yield Chunk(kind=PIECES, file=file, node=call, size=_size(call, file, program))
    if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _rests(scope, file)


def _is_taken(name: str | None, loop: ast.AST) -> bool:
    """Whether a loop hands a piece out, or what it picks: one that only reads it may take a text apart."""
    picks = [one.slice for one in walk(loop) if isinstance(one, ast.Subscript)]
    handed = [one for one in map(_handed_out, walk(loop)) if one is not None]
    is_picked = any(isinstance(node, ast.Name) and node.id == name for one in picks for node in walk(one))
    return is_picked or any(name in _named(one) for one in handed)


def chunks_of_loop(loop: Loop | ast.While, file: SourceFile, program: Program) -> Iterator[Chunk]:
    """The places at which the rounds of one loop are cut, leaving out the loops inside of it."""
    if isinstance(loop, ast.While):
        yield from _of_while(loop, file)
        return
    walked, target = taken(loop)
    call = split_of(walked, file, program)
    if call is not None:
        name = next((one.id for one in walk(target) if isinstance(one, ast.Name)), None)
        if name is not None:
            yield Chunk(kind=PIECES, file=file, node=call, size=_size(call, file, program), loop=loop, name=name)
        return
    is_range = isinstance(walked, ast.Call) and isinstance(walked.func, ast.Name) and walked.func.id == "range"
    if not is_range or not isinstance(walked, ast.Call) or not isinstance(target, ast.Name):
        return
    body = [loop, *(getattr(loop, "body", None) or [file.parents[loop]])]
    if len(walked.args) == 3:
        step = ast.unparse(walked.args[2])
        if _is_end(walked.args[1]) and any(_is_from(one, target.id, step, body) for one in _slices(body)):
            yield Chunk(kind=STARTS, file=file, node=walked, stop=walked.args[1], size=walked.args[2])
    elif isinstance(loop, ast.For) and _is_rounded_up(walked.args[-1], loop, file):
        for one in _slices(body):
            statement, bounds = file.statement(one), one.slice
            bounds = bounds.elts[0] if isinstance(bounds, ast.Tuple) else bounds
            is_named = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)
            reads_start = any(isinstance(each, ast.Name) and each.id == target.id for each in walk(bounds))
            if is_named and reads_start and isinstance(statement, ast.Assign) and statement.value is one:
                yield Chunk(kind=SLICE, file=file, node=statement, loop=loop, name=ast.unparse(statement.targets[0]))


def taken(loop: Loop) -> tuple[ast.expr, ast.expr]:
    """What a loop goes over and what gets its elements, seen through `enumerate`, `zip` and a progress bar."""
    walked, target = loop.iter, loop.target
    while isinstance(walked, ast.Call) and walked.args and (dotted_name(walked.func) or "") in _SEEN_THROUGH:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        called = dotted_name(walked.func)
        if called == "enumerate" and len(parts) == 2:
            target = parts[1]
        elif called == "zip" and parts:
            target = parts[0]
        walked = walked.args[0]
    return walked, target


def split_of(node: ast.expr, file: SourceFile, program: Program) -> ast.Call | None:
    """The call that splits along the first axis, seen through `list` and `iter`; None where a text is split, or another axis."""
    while isinstance(node, ast.Call) and len(node.args) == 1 and dotted_name(node.func) in ("list", "iter", "tuple"):
        node = node.args[0]
    if not isinstance(node, ast.Call):
        return None
    is_function = program.names(file).is_call(node, *_SPLITS)
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
    given = node.args[1 if is_function else 0 :]
    named = {one.arg: one.value for one in node.keywords}
    axis = given[1] if len(given) > 1 else named.get("dim", named.get("axis"))
    size = given[0] if given else next(iter(node.keywords), None)
    is_text = isinstance(size, ast.Constant) and not isinstance(size.value, int)
    is_first = axis is None or (isinstance(axis, ast.Constant) and axis.value == 0)
    return node if (is_function or is_method) and size is not None and not is_text and is_first else None


def _size(call: ast.Call, file: SourceFile, program: Program) -> ast.expr | None:
    """The length of a piece, where a call is given that rather than the number of pieces."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if called not in ("split", "batched", "chunked"):
        return None
    at = 1 if program.names(file).is_call(call, *_SPLITS) else 0
    return (
        next((one.value for one in call.keywords if one.arg != "dim"), None) if len(call.args) <= at else call.args[at]
    )


def _slices(body: list[ast.AST]) -> list[ast.Subscript]:
    """The slices along the first axis under some nodes."""
    found: dict[ast.Subscript, None] = {}
    for one in body:
        for node in walk(one):
            bounds = node.slice if isinstance(node, ast.Subscript) else None
            bounds = bounds.elts[0] if isinstance(bounds, ast.Tuple) and bounds.elts else bounds
            if isinstance(node, ast.Subscript) and isinstance(bounds, ast.Slice) and bounds.lower and bounds.upper:
                found[node] = None
    return list(found)


def _is_from(node: ast.Subscript, start: str, step: str, body: list[ast.AST]) -> bool:
    """Whether a slice goes from a start to one step behind it: `x[i:i + size]`, also by a name for its end."""
    bounds = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
    if not isinstance(bounds, ast.Slice) or bounds.lower is None or ast.unparse(bounds.lower) != start:
        return False
    ends = [bounds.upper]
    if isinstance(bounds.upper, ast.Name):
        ends += [
            one.value
            for each in body
            for one in walk(each)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == bounds.upper.id
        ]
    sums = (f"{start} + {step}", f"{step} + {start}")
    return any(isinstance(one, ast.BinOp) and ast.unparse(one) in sums for end in ends if end for one in walk(end))


def _is_end(stop: ast.expr) -> bool:
    """Whether starts are counted up to the end itself: what is computed of it may leave the rest out."""
    if isinstance(stop, ast.Call) and isinstance(stop.func, ast.Name) and stop.func.id in ("min", "max", "int"):
        return False
    return isinstance(stop, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def _is_rounded_up(count: ast.expr, loop: ast.For, file: SourceFile) -> bool:
    """Whether a number of batches counts the last one: `math.ceil(n / size)`, `(n + size - 1) // size`, `-(-n // size)`."""
    made = [count]
    function = file.enclosing(loop, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    if isinstance(count, ast.Name) and function is not None:
        made += [
            one.value
            for one in walk(function)
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == count.id
        ]
    for one in made:
        if any(
            isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "ceil"
            for node in walk(one)
        ):
            return True
        if any(
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) and _is_raised(node) for node in walk(one)
        ):
            return True
    return False


def _is_raised(node: ast.BinOp) -> bool:
    left = node.left
    return (isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub)) or (
        isinstance(left, ast.BinOp) and ast.unparse(node.right) in ast.unparse(left)
    )


def _of_while(loop: ast.While, file: SourceFile) -> Iterator[Chunk]:
    """`while i < n:` with `x[i:i + size]` and `i += size` in it."""
    test = loop.test
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name) or not isinstance(test.ops[0], ast.Lt):
        return
    start = test.left.id
    steps = [
        ast.unparse(one.value)
        for one in walk(loop)
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add) and ast.unparse(one.target) == start
    ]
    body: list[ast.AST] = list(loop.body)
    is_counted = len(steps) == 1 and _is_end(test.comparators[0])
    if is_counted and any(_is_from(one, start, steps[0], body) for one in _slices(body)):
        yield Chunk(kind=STARTS, file=file, node=test, stop=test.comparators[0])


def _rests(function: Function, file: SourceFile) -> Iterator[Chunk]:
    """The statements that hand out a list which the function fills, where no test says that it is full."""
    filled = {
        name
        for node in walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
        and (name := root_of(node.func.value))
    }  # fmt: skip
    filled |= _kept_in(filled, function)
    for node in walk(function):
        handed = _handed_out(node)
        name = next((one for one in _named(handed) if one in filled), None) if handed is not None else None
        if name is None or (isinstance(node, ast.Call) and not _is_given_back(node, function)):
            continue
        statement = file.statement(node)
        tests = list(_tests(statement, function, file))
        if any(_is_full(one, name) for one in tests):
            continue
        above = file.parents.get(statement)
        is_alone = isinstance(above, ast.If) and above.body == [statement]  # a reset behind it is due whatever came
        parts = _parts(above.test) if isinstance(above, ast.If) and is_alone else []
        asked = next((part for part in parts if _asks_for_any(part, name)), None)
        yield Chunk(kind=REST, file=file, node=statement, name=name, test=asked)


def _is_given_back(append: ast.Call, function: Function) -> bool:
    """Whether the list that a call appends to is what the function returns or yields, or keeps in its object."""
    assert isinstance(append.func, ast.Attribute)
    root = root_of(append.func.value)
    if root is None or root.startswith("self."):
        return root is not None
    for node in walk(function):
        is_kept = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute)
        is_given = is_kept or isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom))
        if is_given and any(isinstance(one, ast.Name) and one.id == root for one in walk(node)):
            return True
    return False


def _kept_in(filled: set[str], function: Function) -> set[str]:
    """Names that stand for one of several lists that are filled: `for bucket in buckets.values()`."""
    return {
        one.id
        for node in walk(function)
        if isinstance(node, (ast.For, ast.comprehension)) and _lists_in(node.iter, filled, function)
        for one in walk(node.target)
        if isinstance(one, ast.Name)
    }


def _lists_in(walked: ast.expr, filled: set[str], function: Function) -> bool:
    """Whether what a loop goes over holds lists that are filled: `buckets.values()`, where one of `buckets` is appended to."""
    root = root_of(walked)
    if (
        isinstance(walked, ast.Call)
        and isinstance(walked.func, ast.Attribute)
        and walked.func.attr in ("values", "items")
    ):
        if root in filled:
            return True
        return any(
            isinstance(one, ast.Assign) and root_of(one.value) == root and ast.unparse(one.targets[0]) in filled
            for one in walk(function)
        )
    return False


def _handed_out(node: ast.AST) -> ast.expr | None:
    """What a statement hands out as one batch: `yield batch`, `batches.append(batch)`."""
    if isinstance(node, ast.Yield):
        return node.value
    is_append = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append"
    return node.args[0] if is_append and isinstance(node, ast.Call) and len(node.args) == 1 else None


def _named(value: ast.expr) -> list[str]:
    """The name of which a batch is made: `batch`, `list(batch)`, `batch[:]`, `self.collate(batch)`, `[rows[i] for i in batch]`."""
    if isinstance(value, ast.Name):
        return [value.id]
    if isinstance(value, ast.Subscript):
        return _named(value.value) if isinstance(value.slice, ast.Slice) and value.slice.upper is None else []
    if isinstance(value, (ast.ListComp, ast.GeneratorExp)) and len(value.generators) == 1:
        return _named(value.generators[0].iter)
    if isinstance(value, ast.Call) and len(value.args) == 1:
        return [] if getattr(value.func, "id", "") in _NUMBERS else _named(value.args[0])
    if isinstance(value, (ast.Tuple, ast.List)):
        return [name for one in value.elts for name in _named(one)]
    is_copy = (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in ("copy", "tolist")
    )
    return _named(value.func.value) if is_copy else []  # type: ignore[attr-defined]


def _tests(statement: ast.stmt, function: Function, file: SourceFile) -> Iterator[ast.expr]:
    """The conditions under which a statement runs, the innermost first."""
    below: ast.AST = statement
    above = file.parents.get(statement)
    while above is not None and above is not function:
        if isinstance(above, ast.If) and below in above.body:
            yield above.test
        below, above = above, file.parents.get(above)


def _parts(test: ast.expr) -> list[ast.expr]:
    return list(test.values) if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _length_of(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node) == f"len({name})"


def _is_full(test: ast.expr, name: str) -> bool:
    """Whether a condition asks for a length of more than one: `len(batch) == size`, `len(batch) >= 2`."""
    for part in _parts(test):
        if isinstance(part, ast.Compare) and len(part.ops) == 1:
            left, op, right = part.left, part.ops[0], part.comparators[0]
            least = right.value if isinstance(right, ast.Constant) and isinstance(right.value, int) else None
            if _length_of(left, name) and isinstance(op, (ast.Eq, ast.GtE, ast.Gt)):
                floor = None if least is None else least + isinstance(op, ast.Gt)
                if floor is None or floor > 1:
                    return True
            if (
                _length_of(right, name)
                and isinstance(op, (ast.Eq, ast.LtE, ast.Lt))
                and not isinstance(left, ast.Constant)
            ):
                return True
    return False


def _asks_for_any(part: ast.expr, name: str) -> bool:
    """Whether a condition asks whether a list holds anything: `batch`, `len(batch)`, `len(batch) > 0`, `batch != []`."""
    texts = (name, f"len({name})", f"len({name}) > 0", f"len({name}) != 0", f"len({name}) >= 1", f"{name} != []")
    return ast.unparse(part) in texts
