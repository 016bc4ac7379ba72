"""RoBERTa and its kin count positions from the padding's id + 1: `max_position_embeddings=length + 2` for texts of `length` tokens."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.value.number import number_of

# Read in the modules of transformers 5: each adds the padding's id to its positions.
_MODELS = re.compile(
    r"\.?(?:XLMRoberta|XLMRobertaXL|Roberta|RobertaPreLayerNorm|Camembert|Data2VecText|Longformer|MPNet|Esm|Luke|IBert|Xmod|LayoutLMv3|Lilt|MarkupLM)Config$"
)
_SIZE = "max_position_embeddings"
_PADDING = 1  # the id that these configurations have unless told otherwise


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each configuration that says how many positions there are, where one of these models looked a position up."""
    inside = [frame.file for record in context.incident.exceptions for frame in record.frames if frame.library]
    if not any("transformers/models/" in one.replace("\\", "/") for one in inside):
        return
    rows = context.fields.get("rows")
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            called = names.qualified(node.func) if isinstance(node, ast.Call) else None
            if not isinstance(node, ast.Call) or _MODELS.search(called or "") is None:
                continue
            given = {one.arg: one.value for one in node.keywords}
            size, padding = given.get(_SIZE), given.get("pad_token_id")
            if size is None:
                continue
            if padding is not None and number_of(padding, names) is None and dotted_name(padding) is None:
                continue
            count = number_of(size, names)
            if count is not None and rows is not None and int(count) != int(str(rows)):
                continue  # another table was too small
            more = _before_first(padding, file, names)
            is_literal = isinstance(size, ast.Constant) and isinstance(size.value, int) and more.isdigit()
            new = str(int(count or 0) + int(more)) if is_literal else f"{operand(file, size)} + {more}"
            yield Proposal(
                edits=(edit_of(file, size, new),),
                culprit=culprit_of(file, size, f"leaves no room for the {more} positions before the first token"),
                belief=2.0 if count is not None and rows is not None else 1.0,
                because=f"the first token has position {more}: its model adds the padding's id + 1",
            )


def _before_first(padding: ast.expr | None, file: SourceFile, names: Names) -> str:
    """How many positions stand before the first token: the padding's id + 1, asked for as the program does where it is not known."""
    first = number_of(padding, names) if padding is not None else _PADDING
    if first is None and padding is not None:
        return f"{file.segment(padding)} + 1"
    return str(int(first or 0) + 1)
