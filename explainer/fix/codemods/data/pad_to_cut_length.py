"""Pads with zeros what a data set cuts to a fixed length: `wave = wave[:n]` is followed by `wave = F.pad(wave, (0, n - len(wave)))`.

Only for a signal that is known to be a tensor or an array; for tokens and labels, and where several things are cut, the
line alone is named, since what stands for the padding is the author's to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after
from explainer.fix.text.import_line import import_after
from explainer.fix.text.rewrite import spell
from explainer.model.finding import Culprit
from explainer.model.patch import Edit
from explainer.source.data.cut_length import Cut, find_cuts
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.array_kind import TENSOR, kind_of
from explainer.source.value.binding import Value
from explainer.source.value.integer import integer_of

_MESSAGE = re.compile(
    r"Trying to resize storage that is not resizable|each element in list of batch should be of equal size"
    r"|stack expects each tensor to be equal size(?:, but got \[(?P<first>[\d, ]*)\] at entry \d+ and \[(?P<other>[\d, ]*)\])?"
)
_LABELS = re.compile(r"label|target|mask|tags?\b|token|ids\b|^y$")
_SOUND = ("torchaudio", "librosa", "soundfile", "wave", "scipy.io.wavfile")
_CONVERSIONS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the cut of a signal; the line alone where its padding is no matter of course."""
    found = [one for record in context.incident.exceptions if (one := _MESSAGE.search(record.message))]
    if not found:
        return
    cuts = list(find_cuts(context.program))
    bases = {(dotted_name(one.base), ast.dump(one.length)) for one in cuts}
    is_signal = len(bases) == 1 and not _reads_tokens(context.program)
    sizes = _sizes(found[0])
    edits = [_edits(one, sizes, context.program) for one in cuts] if is_signal else []
    belief = max((_belief(one, sizes, context.program) for one in cuts), default=0.0)
    if edits and all(edits):
        whole = tuple(dict.fromkeys(edit for one in edits for edit in one))
        yield Proposal(edits=whole, culprit=_culprit(cuts[0]), belief=belief)
        return
    for cut in cuts:
        yield Proposal(edits=(), culprit=_culprit(cut), belief=belief - 0.5)


def _culprit(cut: Cut) -> Culprit:
    return culprit_of(cut.file, cut.node, "cuts what is longer, and leaves what is shorter as it is")


def _sizes(found: re.Match[str]) -> list[list[int]]:
    """The two shapes that the message names; none where it names none."""
    texts = [one for one in (found["first"], found["other"]) if one is not None]
    return [[int(size) for size in text.split(",") if size.strip()] for text in texts]


def _belief(cut: Cut, sizes: Sequence[Sequence[int]], program: Program) -> float:
    """Higher where one of the message's shapes has the length of the cut, and the other less."""
    length = integer_of(Value(cut.length, cut.file), program)
    pairs = [pair for pair in zip(*sizes, strict=False) if len(pair) == 2 and pair[0] != pair[1]]
    return 2.5 if any(max(pair) == length for pair in pairs) else 1.5


def _reads_tokens(program: Program) -> bool:
    """Whether the program looks codes up in a table, and does not read sound: a zero may then be a word."""
    imports = [name for file in program.parsed() for name in program.names(file).imports.values()]
    if any(name.startswith(_SOUND) for name in imports):
        return False
    is_table = any(
        (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in ("Embedding", "EmbeddingBag")
        for file in program.parsed()
        for node in file.walk()
    )
    return is_table or any(name.startswith(("transformers", "tokenizers")) for name in imports)


def _edits(cut: Cut, sizes: Sequence[Sequence[int]], program: Program) -> tuple[Edit, ...]:
    """The edits that pad one cut; nothing where it is not known whether it is a tensor, or where it stands."""
    file = cut.file
    name = dotted_name(cut.base)
    if name is not None and _LABELS.search(name.rpartition(".")[2]):
        return ()
    outer, kind = _outermost(cut, program)
    statement = file.statement(outer)
    if kind is None or any(isinstance(one, (ast.comprehension, ast.Lambda)) for one in _between(outer, statement, cut)):
        return ()
    imports, pad = _padder(cut, kind, sizes, program)
    if isinstance(statement, ast.Assign) and statement.value is outer and isinstance(statement.targets[0], ast.Name):
        target = statement.targets[0].id
        anchor = _anchor(statement, cut) if target == name else statement
        return (*imports, insert_after(file, anchor, f"{target} = {pad(target)}"))
    if not isinstance(statement, (ast.Return, ast.Assign, ast.Expr, ast.AnnAssign)):
        return ()
    return (*imports, *_at_use(cut, outer, statement, pad))


def _at_use(cut: Cut, outer: ast.expr, statement: ast.stmt, pad: Callable[[str], str]) -> Iterator[Edit]:
    """The edits where a cut is handed on at once: it gets a name before, unless the whole sample is returned beside it."""
    file = cut.file
    name = cut.base.id if isinstance(cut.base, ast.Name) else None
    whole = _returned_whole(statement, name, cut)
    if whole is not None and name is not None:
        yield edit_of(file, whole, pad(name))
        return
    reads = [
        one for one in walk(statement) if isinstance(one, ast.Name) and one.id == name and one not in set(walk(outer))
    ]
    own = name if name and isinstance(statement, ast.Return) and not reads else "piece"
    if own == "piece" and "piece" in file.plain_names:
        return
    start, indent = file.line_start(statement.lineno), file.indent(statement.lineno)
    text = f"{indent}{own} = {file.segment(outer)}{file.newline}"
    yield Edit(file=file.path, start=start, end=start, new=text)
    yield edit_of(file, outer, pad(own))


def _returned_whole(statement: ast.stmt, name: str | None, cut: Cut) -> ast.expr | None:
    """`wave` of the `return wave` behind `if len(wave) > n: return wave[:n]`."""
    above = cut.file.parents.get(statement)
    if not isinstance(statement, ast.Return) or not isinstance(above, ast.If) or above.orelse:
        return None
    block = getattr(cut.file.parents.get(above), "body", [])
    at = block.index(above) + 1 if above in block else len(block)
    after = block[at] if at < len(block) else None
    is_whole = isinstance(after, ast.Return) and isinstance(after.value, ast.Name) and after.value.id == name
    return after.value if is_whole and isinstance(after, ast.Return) else None


def _outermost(cut: Cut, program: Program) -> tuple[ast.expr, str | None]:
    """The expression that is padded: the cut, the choice between it and the whole, or the tensor that is made of it at once."""
    file = cut.file
    outer: ast.expr = cut.node
    above = file.parents.get(outer)
    if isinstance(above, ast.IfExp):
        rest = above.orelse if above.body is outer else above.body
        if ast.dump(rest) != ast.dump(cut.base):
            return outer, None
        outer, above = above, file.parents.get(above)
    if isinstance(above, ast.Call) and program.names(file).is_call(above, *_CONVERSIONS) and above.args[:1] == [outer]:
        return above, TENSOR
    return outer, kind_of(Value(cut.base, file), program)


def _between(node: ast.AST, statement: ast.stmt, cut: Cut) -> Iterator[ast.AST]:
    above = cut.file.parents.get(node)
    while above is not None and above is not statement:
        yield above
        if isinstance(above, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            yield from above.generators
        above = cut.file.parents.get(above)


def _anchor(statement: ast.stmt, cut: Cut) -> ast.stmt:
    """The outermost `if` of the function round a cut: what it leaves uncut is short as well."""
    above = cut.file.parents.get(statement)
    while isinstance(above, ast.If):
        statement, above = above, cut.file.parents.get(above)
    return statement


def _padder(
    cut: Cut, kind: str, sizes: Sequence[Sequence[int]], program: Program
) -> tuple[tuple[Edit, ...], Callable[[str], str]]:
    """The imports that padding needs, and the function that writes it for a name."""
    file, names = cut.file, program.names(cut.file)
    length = file.segment(cut.length)
    dimensions = len(sizes[0]) if sizes and cut.axis is not None else None
    module, qualified = ("torch", "torch.nn.functional.pad") if kind == TENSOR else ("numpy", "numpy.pad")
    function = spell(names, qualified)
    has_module = function.partition(".")[0] in names.imports
    imports = () if has_module else tuple(import_after(file, f"import {module}"))
    widths = _widths_of_tensor if kind == TENSOR else _widths_of_array

    def pad(name: str) -> str:
        size = f"len({name})" if cut.axis == 0 else f"{name}.shape[{-1 if cut.axis is None else cut.axis}]"
        return f"{function}({name}, {widths(name, f'(0, {length} - {size})', cut.axis, dimensions)})"

    return imports, pad


def _widths_of_tensor(name: str, missing: str, axis: int | None, dimensions: int | None) -> str:
    """What `torch.nn.functional.pad` is told: a pair for each dimension, the last one first; the others may be left out."""
    if axis is None or dimensions == axis + 1:
        return missing
    return f"(0, 0) * ({name}.dim() - {axis + 1}) + {missing}"


def _widths_of_array(name: str, missing: str, axis: int | None, dimensions: int | None) -> str:
    """What `numpy.pad` is told: a pair for each dimension, the first one first."""
    if axis is None:
        return f"[(0, 0)] * ({name}.ndim - 1) + [{missing}]"
    if dimensions == 1:
        return missing
    if dimensions is not None and axis < dimensions:
        return f"[{', '.join(missing if at == axis else '(0, 0)' for at in range(dimensions))}]"
    before = f"[(0, 0)] * {axis} + " if axis else ""
    return f"{before}[{missing}] + [(0, 0)] * ({name}.ndim - {axis + 1})"
