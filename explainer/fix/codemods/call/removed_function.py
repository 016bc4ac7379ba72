"""A call of torch that a release refuses, written as the release takes it, with the same values.

`torch.stft(x, n)` of real input gives complex numbers by now: `torch.view_as_real(torch.stft(x, n, return_complex=True))` is what it
gave, and `torch.istft` takes them so. `torch.symeig(a, eigenvectors=True)` is `torch.linalg.eigh(a, UPLO="U")`, `torch.matrix_rank`
has moved, and `torch.solve(b, a)` is `torch.linalg.solve(a, b)` where the solution alone is read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from explainer.fix.clue.crash import is_crash
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import add_argument, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.value.binding import find_calls

_FORM = "return_complex"
_TENSOR = frozenset({"stft", "istft"})  # also methods


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for all calls of the function that was refused; the line is that of the failing call, else of the first."""
    messages = [one.message for one in context.incident.exceptions]
    said = next((name for name, now in _NOW.items() if any(now.sign in one for one in messages)), None)
    if said is None:
        return
    found: list[tuple[SourceFile, ast.Call, tuple[Edit, ...]]] = []
    for file, call in find_calls(context.program):
        names = context.program.names(file)
        if names.qualified(call.func) == f"torch.{said}" or (said in _TENSOR and _is_method(call, said, names)):
            edits = tuple(_NOW[said].edits(call, file, names))
            found += [(file, call, edits)] if edits else []
    if found:
        file, call, _ = next((one for one in found if is_crash(one[0], one[1], context)), found[0])
        edits = tuple(edit for _, _, each in found for edit in each)
        culprit = culprit_of(file, call, f"calls `{said}` as earlier releases of torch took it")
        yield Proposal(edits=edits, culprit=culprit, belief=2.0, title=_NOW[said].title)


def _is_method(call: ast.Call, name: str, names: Names) -> bool:
    """`x.stft(...)`, but no function of another library and no method of the program's own."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != name:
        return False
    root = (dotted_name(func) or "").partition(".")[0]
    return root not in names.imports and not (isinstance(func.value, ast.Name) and root in ("self", "cls"))


def _given(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """What a call gives for a parameter; None where it leaves it out."""
    if len(call.args) > place:
        return call.args[place]
    return next((one.value for one in call.keywords if one.arg == name), None)


def _is_plain(call: ast.Call) -> bool:
    return not any(isinstance(one, ast.Starred) for one in call.args) and all(one.arg for one in call.keywords)


def _around(file: SourceFile, node: ast.expr, function: str) -> Iterator[Edit]:
    start, end = file.span(node)
    yield Edit(file=file.path, start=start, end=start, new=f"{function}(")
    yield Edit(file=file.path, start=end, end=end, new=")")


def _stft(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Edit]:
    if _is_plain(call) and all(one.arg != _FORM for one in call.keywords):
        yield from _around(file, call, spell(names, "torch.view_as_real"))
        yield add_argument(file, call, f"{_FORM}=True")


def _istft(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Edit]:
    given = call.func.value if _is_method(call, "istft", names) else _given(call, 0, "input")  # type: ignore[attr-defined]
    if given is not None and not isinstance(given, ast.Starred):
        yield from _around(file, given, spell(names, "torch.view_as_complex"))


def _symeig(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Edit]:
    matrix, wanted, upper = _given(call, 0, "input"), _given(call, 1, "eigenvectors"), _given(call, 2, "upper")
    is_read = upper is None or isinstance(upper, ast.Constant)
    if matrix is not None and getattr(wanted, "value", None) is True and is_read and _is_plain(call):
        part = "L" if getattr(upper, "value", True) is False else "U"
        yield edit_of(file, call, f'{spell(names, "torch.linalg.eigh")}({file.segment(matrix)}, UPLO="{part}")')


def _matrix_rank(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Edit]:
    if all(one.arg != "symmetric" for one in call.keywords):
        yield edit_of(file, call.func, spell(names, "torch.linalg.matrix_rank"))


def _solve(call: ast.Call, file: SourceFile, names: Names) -> Iterator[Edit]:
    right, matrix = _given(call, 0, "input"), _given(call, 1, "A")
    if right is None or matrix is None:
        return
    new = f"{spell(names, 'torch.linalg.solve')}({file.segment(matrix)}, {file.segment(right)})"
    above = file.parents.get(call)
    target = above.targets[0] if isinstance(above, ast.Assign) else None
    if (isinstance(above, ast.Attribute) and above.attr == "solution") or (
        isinstance(above, ast.Subscript) and getattr(above.slice, "value", None) == 0
    ):
        yield edit_of(file, above, new)
    elif isinstance(target, ast.Tuple) and len(target.elts) == 2 and getattr(target.elts[1], "id", "") == "_":
        yield edit_of(file, target, file.segment(target.elts[0]))
        yield edit_of(file, call, new)


class _Now(NamedTuple):
    """What the message of a refused function says, the edits of a call, and what the call is to be."""

    sign: str
    edits: Callable[[ast.Call, SourceFile, Names], Iterator[Edit]]
    title: str


_NOW: Mapping[str, _Now] = {
    "istft": _Now(
        "istft requires a complex-valued input",
        _istft,
        "Give `istft` complex numbers: `torch.view_as_complex(spectrum)`",
    ),
    "stft": _Now(
        "stft requires the return_complex parameter",
        _stft,
        "Ask `stft` for complex numbers and take them as pairs: `torch.view_as_real(torch.stft(..., return_complex=True))`",
    ),
    "symeig": _Now("L, V = torch.symeig(A", _symeig, 'Call `torch.linalg.eigh(a, UPLO="U")` for `torch.symeig`'),
    "solve": _Now("X = torch.solve(B, A)", _solve, "Call `torch.linalg.solve(a, b)` for `torch.solve(b, a)`"),
    "matrix_rank": _Now(
        "`torch.linalg.matrix_rank` function instead", _matrix_rank, "Call `torch.linalg.matrix_rank` by its new place"
    ),
}
