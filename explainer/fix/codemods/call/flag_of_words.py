"""`type=lambda text: text.lower() in ("1", "true", "yes", "on")` for `type=bool`: argparse makes True of every word but an empty one.

Only for options that the command line gave a word for no.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.model.incident import TOLD_NO

_READS = 'lambda text: text.lower() in ("1", "true", "yes", "on")'


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each flag that was told no and reads yes."""
    told = {one.value for one in context.incident.facts if one.name == TOLD_NO}
    for file in context.program.parsed() if told else ():
        for call in file.walk():
            if (
                not isinstance(call, ast.Call)
                or not isinstance(call.func, ast.Attribute)
                or call.func.attr != "add_argument"
            ):
                continue
            options = [one.value for one in call.args if isinstance(one, ast.Constant)]
            kind = next((one.value for one in call.keywords if one.arg == "type"), None)
            name = next((one for one in options if one in told), None)
            if name is not None and isinstance(kind, ast.Name) and kind.id == "bool":
                yield Proposal(
                    edits=(edit_of(file, kind, _READS),),
                    culprit=culprit_of(
                        file, call, f"makes True of the word that `{name}` is given: `bool` of any word is"
                    ),
                    belief=3.0,
                )
