"""`model.add_adapter("clauses", config)` is followed by `model.set_adapter("clauses")`, where a run was seen to train another adapter.

Or where an optimizer gets nothing: what is not active has no parameter that requires grad. Only where the program activates none by
itself but for inference: one that does may mean to train this one later.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.model.verification import IDLE
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(IDLE)}: `([^`]+)`, since `([^`]+)` is active")

_EMPTY = "optimizer got an empty parameter list"
_FROZEN = "adds an adapter and leaves the one active that was, so that the new one has nothing that requires grad"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each adapter that was seen to be added and never trained."""
    found = [one for line in context.incident.log if (one := _SEEN.search(line.text))]
    is_empty = _EMPTY in message_of(context)
    if not (found or is_empty) or any(
        _may_train(one, file) for file in context.program.parsed() for one in file.attributes.get("set_adapter", ())
    ):
        return
    for file in context.program.parsed():
        name = file.path.replace("\\", "/").rpartition("/")[2]
        for attribute in file.attributes.get("add_adapter", ()):
            call = file.parents.get(attribute)
            owner = dotted_name(attribute.value)
            if owner is None or not isinstance(call, ast.Call) or call.func is not attribute:
                continue
            statement = file.statement(call)
            if not isinstance(statement, ast.Expr):
                continue
            given = [*call.args[:1], *(one.value for one in call.keywords if one.arg == "adapter_name")]
            seen = (one for one in found if one[1] == name and call.lineno <= int(one[2]) <= (call.end_lineno or 0))
            why = next((f"adds `{one[3]}` and leaves `{one[4]}` active" for one in seen), _FROZEN if is_empty else None)
            if given and why is not None:
                yield Proposal(
                    edits=(insert_after(file, statement, f"{owner}.set_adapter({file.segment(given[0])})"),),
                    culprit=culprit_of(file, call, why),
                    belief=2.5 if why is not _FROZEN else 1.5,
                )


def _may_train(attribute: ast.Attribute, file: SourceFile) -> bool:
    """Whether `model.set_adapter(name)` is not said to be for inference."""
    call = file.parents.get(attribute)
    said = [one.value for one in call.keywords if one.arg == "inference_mode"] if isinstance(call, ast.Call) else []
    return not any(isinstance(one, ast.Constant) and one.value is True for one in said)
