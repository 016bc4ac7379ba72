"""`"labels": int(row["stars"])` where a library's classifier took floats for rows of probabilities, and each sample has one class.

The live labels were whole numbers of another dtype than int64, so what the program puts under a label's key makes them: a cast
to floats becomes one to integers, a number that is made for each row is made an `int`, the items of a list are, a column of a
table that pandas has read is cast. A dtype that the features of a data set say is changed there. What does not show whether it
is a number, a list or a tensor stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument, put_method, spell, with_method
from explainer.model.patch import Edit
from explainer.source.data.label_put import LabelPut, label_puts
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of

_FACT = "live_class_targets"
_FLOAT_NAMES = ("float", "float16", "float32", "float64", "f4", "f8")
_ARRAYS = ("numpy.array", "numpy.asarray")
_TENSORS = ("torch.tensor", "torch.as_tensor")
_DEPTH = 4
_WHY = "makes labels that are no integers, which transformers takes for rows of probabilities"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all labels of a file, where the live ones were no integers."""
    if context.incident.fact(_FACT) is None:
        return
    program = context.program
    made = [
        (one, edit) for one in label_puts(program) if (edit := _integer(one.node, one, program, _DEPTH)) is not None
    ]
    for file in dict.fromkeys(one.file for one, _ in made):
        edits = [edit for one, edit in made if one.file is file]
        first = next(one for one, _ in made if one.file is file)
        yield Proposal(edits=tuple(dict.fromkeys(edits)), culprit=culprit_of(file, first.node, _WHY), belief=2.0)


def _integer(node: ast.expr, put: LabelPut, program: Program, depth: int) -> Edit | None:
    """The edit that makes whole numbers of one expression; None where it is not known what it is."""
    names = program.names(put.file)
    if isinstance(node, ast.Name) and depth:
        bounds = [one for one in bounds_of(scope_of(node, put.file)) if one.name == node.id]
        if len(bounds) == 1 and bounds[0].pick is None and not bounds[0].is_element and not bounds[0].fills:
            return _integer(bounds[0].node, put, program, depth - 1)
    if isinstance(node, ast.ListComp):
        return None if _is_made_whole(node.elt) or isinstance(node.elt, ast.List) else _wrapped(put.file, node.elt)
    if isinstance(node, ast.Call) and (edit := _of_call(node, put.file, names)) is not None:
        return edit
    if _is_made_whole(node) or isinstance(node, ast.Constant):
        return None
    if _is_of_frame(node, put, program):
        return put_method(put.file, node, ".astype(int)")
    if _is_number(node) or _is_of_row(node, put, program):
        return _wrapped(put.file, node)
    return None


def _of_call(node: ast.Call, file: SourceFile, names: Names) -> Edit | None:
    """A call that says its dtype, or is told it: `x.float()`, `x.astype(float)`, `torch.tensor(y)`, `Value("float32")`."""
    dtype = next((one.value for one in node.keywords if one.arg == "dtype"), None)
    if dtype is None and ((names.is_call(node, *_ARRAYS) and node.args[1:]) or names.is_call(node, "datasets.Value")):
        dtype = next(iter(node.args[-1:]), None)
    if (
        isinstance(node.func, ast.Attribute)
        and not node.keywords
        and (edit := _of_method(node, node.func, file, names))
    ):
        return edit
    if dtype is not None:
        if not _is_float(dtype, names):
            return None
        is_torch = (names.qualified(node.func) or "").startswith("torch.")
        return edit_of(file, dtype, spell(names, "torch.long") if is_torch else '"int64"')
    if names.is_call(node, *_TENSORS):
        return add_argument(file, node, f"dtype={spell(names, 'torch.long')}")
    if names.is_call(node, "torch.FloatTensor"):
        return edit_of(file, node.func, spell(names, "torch.LongTensor"))
    return _of_map(node, file)


def _of_method(node: ast.Call, func: ast.Attribute, file: SourceFile, names: Names) -> Edit | None:
    """The cast that a tensor, an array or a column is given last; what `x.tolist()` is a list of."""
    if func.attr in ("float", "double") and not node.args:
        return edit_of(file, node, with_method(file, func.value, ".long()"))
    if func.attr in ("astype", "to") and len(node.args) == 1 and _is_float(node.args[0], names):
        return edit_of(file, node.args[0], spell(names, "torch.long") if func.attr == "to" else '"int64"')
    inner = func.value if func.attr == "tolist" and not node.args else None
    return _of_call(inner, file, names) if isinstance(inner, ast.Call) else None


def _of_map(node: ast.Call, file: SourceFile) -> Edit | None:
    """`list(map(float, xs))`: what text says as a float is read as one first."""
    one = node.args[0] if isinstance(node.func, ast.Name) and node.func.id == "list" and len(node.args) == 1 else None
    if (
        not isinstance(one, ast.Call)
        or not isinstance(one.func, ast.Name)
        or one.func.id != "map"
        or len(one.args) != 2
    ):
        return None
    cast = one.args[0]
    if not isinstance(cast, ast.Name) or cast.id != "float":
        return None
    return edit_of(file, node, f"[int(float(value)) for value in {file.segment(one.args[1])}]")


def _is_float(node: ast.expr, names: Names) -> bool:
    """Whether an expression names a dtype of floats."""
    name = node.value if isinstance(node, ast.Constant) else names.qualified(node)
    return isinstance(name, str) and name.rpartition(".")[2] in (*_FLOAT_NAMES, "double", "half")


def _wrapped(file: SourceFile, node: ast.expr) -> Edit:
    return edit_of(file, node, f"int({file.segment(node)})")


def _is_made_whole(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("int", "round", "len")


def _is_number(node: ast.expr) -> bool:
    """Whether an expression is made of `float(x)` by arithmetic: one number."""
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) or _is_number(node.right)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"


def _is_of_row(node: ast.expr, put: LabelPut, program: Program) -> bool:
    """Whether an expression computes with one entry of the row that a data set's `map` hands over, `row["stars"] - 1`, or gets."""
    within = put.within
    if within is None or not within.args.args or not isinstance(node, (ast.Subscript, ast.BinOp)):
        return False
    if getattr(within, "name", None) == "__getitem__":
        return not any(isinstance(one, ast.Call) for one in walk(node))
    row = within.args.args[0].arg
    reads = [one for one in walk(node) if isinstance(one, ast.Name)]
    is_entry = bool(reads) and all(one.id == row for one in reads)
    return is_entry and not any(isinstance(one, ast.Call) for one in walk(node)) and _is_mapped_by_row(within, program)


def _is_of_frame(node: ast.expr, put: LabelPut, program: Program) -> bool:
    """Whether an expression computes a column of a table that pandas has read: `table["grade"] - 1`, floats where one is missing."""
    names = program.names(put.file)
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "astype":
        return False
    todo = [one for one in walk(node) if isinstance(one, ast.Name)]
    columns = [one for one in walk(node) if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant)]
    seen: set[str] = set()
    while todo and columns:
        name = todo.pop()
        if name.id in seen:
            continue
        seen.add(name.id)
        for bound in bounds_of(scope_of(name, put.file)):
            if bound.name != name.id or bound.fills:
                continue
            if any(
                (names.qualified(one.func) or "").startswith("pandas.")
                for one in walk(bound.node)
                if isinstance(one, ast.Call)
            ):
                return True
            todo += [one for one in walk(bound.node) if isinstance(one, ast.Name)]
    return False


def _is_mapped_by_row(function: Function | ast.Lambda, program: Program) -> bool:
    """Whether every `map` of the program that is given a function hands it single rows."""
    found = []
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "map":
                given = [*node.args[:1], *(one.value for one in node.keywords if one.arg == "function")]
                if any(one is function or _names(one, function) for one in given):
                    found.append(not any(one.arg in ("batched", None) for one in node.keywords))
    return bool(found) and all(found)


def _names(node: ast.expr, function: Function | ast.Lambda) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
    return last is not None and last == getattr(function, "name", None)
