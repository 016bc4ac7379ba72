"""`model.load_state_dict(state)` gets the keys without the wrapper's prefix: `module.` of DataParallel, `_orig_mod.` of compile."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of

_PREFIXES = ("module.", "_orig_mod.")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: ([^\n]*)")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loading that the traceback names, where every unexpected key has the prefix."""
    prefix = _prefix(context)
    if prefix is None:
        return
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for node in file.walk() if frames else ():
            if not isinstance(node, ast.Call) or node.lineno not in frames or not node.args:
                continue
            is_load = isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict"
            state = node.args[0]
            if not is_load or isinstance(state, ast.DictComp):
                continue
            text = f'{{name.removeprefix("{prefix}"): value for name, value in {_text(file.segment(state), state)}.items()}}'
            yield Proposal(
                edits=(edit_of(file, state, text),),
                culprit=culprit_of(file, node, f"loads keys that begin with the wrapper's `{prefix}`"),
                belief=1.5,
            )


def _text(text: str, node: ast.expr) -> str:
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _prefix(context: Context) -> str | None:
    """The prefix that all unexpected keys of the message have."""
    for record in context.incident.exceptions:
        found = _UNEXPECTED.search(record.message)
        keys = re.findall(r'"([^"]+)"', found.group(1)) if found else []
        for prefix in _PREFIXES:
            if keys and all(key.startswith(prefix) for key in keys):
                return prefix
    return None
