"""`def on_evaluate(self, args, state, control, tokenizer, **kwargs)` takes `processing_class`, by which a Trainer of transformers calls it.

`tokenizer` was handed to callbacks up to transformers 4; a handler that asks for it fails with the first event.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.model.patch import Edit
from explainer.source.tree import walk

_MISSING = re.compile(r"(\w+)\.(on_\w+)\(\) missing \d+ required (?:positional|keyword-only) arguments?: '(\w+)'$")
_RENAMED = {"tokenizer": "processing_class"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the handler that the message names."""
    messages = [one.message.strip().split("\n")[0] for one in context.incident.exceptions]
    for owner_name, method, argument in (said.groups() for one in messages if (said := _MISSING.search(one))):
        found = context.program.find_class(owner_name)
        new = _RENAMED.get(argument)
        bases = [ast.unparse(one) for one in found[1].bases] if found is not None else []
        if found is None or new is None or not any(one.endswith("Callback") for one in bases):
            continue
        file, owner = found
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef) or node.name != method:
                continue
            given = next((one for one in (*node.args.args, *node.args.kwonlyargs) if one.arg == argument), None)
            reads = [one for one in walk(node) if isinstance(one, ast.Name) and one.id in (argument, new)]
            if given is None or any(one.id == new for one in reads):
                continue
            starts = [file.span(given)[0], *(file.span(one)[0] for one in reads)]
            yield Proposal(
                edits=tuple(Edit(file=file.path, start=one, end=one + len(argument), new=new) for one in starts),
                culprit=culprit_of(file, node, f"asks for `{argument}`, which the Trainer hands over as `{new}`"),
                belief=2.5,
            )
