"""`torch.tensor(rows)` of rows of several lengths becomes `pad_sequence([torch.tensor(row) for row in rows], batch_first=True)`.

The padding is the code that the program's table keeps for it (`padding_idx`); labels get -100, which losses leave out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import free_name, spell
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import scope_of
from explainer.source.value.number import number_of

_RAGGED = re.compile(r"expected sequence of length \d+ at dim 1 \(got \d+\)")
_LABELS = re.compile(r"label|target|tag", re.IGNORECASE)
_MAKERS = ("torch.tensor", "torch.LongTensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each tensor of rows in the statement that failed."""
    if not _RAGGED.search(message_of(context)):
        return
    for file, statement in failing_statements(context)[:1]:
        names = context.program.names(file)
        pad = spell(names, "torch.nn.utils.rnn.pad_sequence")
        for node in walk(statement) if pad.partition(".")[0] in names.imports else ():
            if not isinstance(node, ast.Call) or not names.is_call(node, *_MAKERS) or len(node.args) != 1:
                continue
            if isinstance(node.args[0], ast.Starred) or any(one.arg is None for one in node.keywords):
                continue
            code = _padding(node, file, context.program)
            value = f", padding_value={code}" if code else ""
            made = f"{pad}([{_rows(node, file)}], batch_first=True{value})"
            yield Proposal(
                edits=(edit_of(file, node, made),),
                culprit=culprit_of(file, node, "makes one tensor of rows that are of several lengths"),
                belief=2.0 - (0.0 if code is not None else 0.5),
                applicability=None if code is not None else "unsafe",
                because=None
                if code is not None
                else "right where the code 0 stands for padding, and is left out of the loss",
            )


def _rows(call: ast.Call, file: SourceFile) -> str:
    """The rows as tensors of their own: of a comprehension its elements, of anything else each of it."""
    rows, maker = call.args[0], file.segment(call.func)
    extra = "".join(f", {file.segment(one)}" for one in call.keywords)
    if isinstance(rows, ast.ListComp):
        start = file.span(rows.elt)[1] - file.span(rows)[0]
        return f"{maker}({file.segment(rows.elt)}{extra}){file.segment(rows)[start:-1]}"
    name = free_name("row", scope_of(call, file))
    return f"{maker}({name}{extra}) for {name} in {file.segment(rows)}"


def _padding(call: ast.Call, file: SourceFile, program: Program) -> int | None:
    """-100 for labels, by the name of what is made; the one `padding_idx` of the program's tables; None where none says."""
    above = file.parents.get(call)
    target = file.statement(call)
    said = " ".join(file.segment(one) for one in getattr(target, "targets", ()) if isinstance(above, ast.Assign))
    if isinstance(above, ast.Dict):
        said = next(
            (file.segment(key) for key, one in zip(above.keys, above.values, strict=True) if one is call and key), ""
        )
    if _LABELS.search(f"{said} {file.segment(call.args[0])}"):
        return -100
    found = {
        number_of(one.value, program.names(where))
        for where in program.parsed()
        for one in where.walk()
        if isinstance(one, ast.keyword) and one.arg == "padding_idx"
    }
    (code,) = found if len(found) == 1 else (None,)
    return int(code) if code is not None else None
