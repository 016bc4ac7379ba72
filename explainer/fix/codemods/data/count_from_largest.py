"""`n_classes=int(labels.max())` becomes `int(labels.max()) + 1`: what is numbered from 0 is one more than its largest number.

Only for the one place of a program where a largest value becomes a count of classes or rows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name

_COUNT = re.compile(
    r"(?:n|num|nb|number|count)_?(?:of_?)?(?:classes|labels|tags|cats|categories|users|items|nodes|entities|relations|tokens|words|embeddings|cls)"
    r"|(?:classes|vocab_?size|vocabulary_size|cardinality|output_dim|out_features)",
    re.IGNORECASE,
)
_SIZES = {"torch.nn.Embedding": 0, "torch.nn.EmbeddingBag": 0, "torch.nn.Linear": 1}
_ARRAYS = frozenset(("torch.max", "torch.amax", "numpy.max", "numpy.amax"))
_MAKE_NUMBERS = frozenset({"int", "item", "tolist", "cpu"})


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one largest value that is taken for a count."""
    if not context.has_failed:
        return
    found = [(file, node) for file in context.program.parsed() for node in _counts(file, context)]
    if len(found) != 1:
        return
    file, node = found[0]
    yield Proposal(
        edits=(edit_of(file, node, f"{file.segment(node)} + 1"),),
        culprit=culprit_of(file, node, "takes the largest number for the count of what is numbered from 0"),
        belief=2.5,
        is_origin=True,
    )


def _counts(file: SourceFile, context: Context) -> Iterator[ast.expr]:
    """The largest values, as numbers, that a file hands on as a count."""
    names = context.program.names(file)
    for node in file.walk():
        if not isinstance(node, ast.Call) or not _is_largest(node, file, context):
            continue
        whole: ast.expr = node
        above = file.parents.get(whole)
        while isinstance(above, (ast.Attribute, ast.Call)) and _makes_number(above):
            whole, above = above, file.parents.get(above)
        if (isinstance(above, ast.keyword) and _COUNT.fullmatch(above.arg or "")) or (
            isinstance(above, ast.Assign) and above.value is whole and _is_count(above.targets[0])
        ):
            yield whole
        elif isinstance(above, ast.Dict) and whole in above.values:
            key = above.keys[above.values.index(whole)]
            if isinstance(key, ast.Constant) and _COUNT.fullmatch(str(key.value)):
                yield whole
        elif isinstance(above, ast.Call) and whole in above.args:
            at = _SIZES.get(names.qualified(above.func) or "")
            if at == above.args.index(whole):
                yield whole


def _is_largest(node: ast.Call, file: SourceFile, context: Context) -> bool:
    """`labels.max()`, `max(labels)`, `np.max(labels)`: of all there are, with no floor or default beside."""
    if node.keywords:
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "max" and len(node.args) == 1
    if (context.program.names(file).qualified(node.func) or "") in _ARRAYS:
        return len(node.args) == 1
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("max", "amax") and not node.args


def _makes_number(node: ast.Attribute | ast.Call) -> bool:
    func = node.func if isinstance(node, ast.Call) else node
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) in _MAKE_NUMBERS


def _is_count(target: ast.expr) -> bool:
    return _COUNT.fullmatch((dotted_name(target) or "").rpartition(".")[2]) is not None
