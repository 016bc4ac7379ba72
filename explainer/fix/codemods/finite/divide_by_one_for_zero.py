"""A constant column stays 0 where NumPy warned that data are divided by its deviation: `x / np.where(std == 0, 1, std)`.

Only of what is named as a deviation or a scale: what stands for another quotient by 0 is the author's to say.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import warned_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.tree import walk

_WORDS = ("invalid value encountered in divide", "invalid value encountered in true_divide")
_DEVIATION = re.compile(r"std|scale|sigma|deviation|spread|range", re.IGNORECASE)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one quotient on the line of the warning."""
    for words in _WORDS:
        for file, statement in warned_at(words, context):
            quotients = [one for one in walk(statement) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div)]
            numpy = next((key for key, meant in context.program.names(file).imports.items() if meant == "numpy"), None)
            if len(quotients) != 1 or numpy is None:
                continue
            divisor = file.segment(quotients[0].right)
            is_plain = isinstance(quotients[0].right, (ast.Name, ast.Attribute, ast.Subscript))
            if is_plain and _DEVIATION.search(divisor):
                yield Proposal(
                    edits=(edit_of(file, quotients[0].right, f"{numpy}.where({divisor} == 0, 1, {divisor})"),),
                    culprit=culprit_of(file, quotients[0], f"divides by `{divisor}`, which is 0 for a constant column"),
                    belief=2.5,
                )
                return
