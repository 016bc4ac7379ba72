"""A transformers model whose gradient is differentiated again is made with `attn_implementation="eager"`.

In the configuration that the program makes, or in `from_pretrained`; of several the one whose model is differentiated is not
told apart, and all get it: where none of them fuses attention, nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.crash import is_of_attention
from explainer.fix.rewrite import add_argument
from explainer.source.file import SourceFile

_ARGUMENT = "attn_implementation"
_WHY = "leaves the choice of attention to transformers, which takes a fused kernel: it has one derivative"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all configurations; the models that are loaded where there are none."""
    if not is_of_attention(context):
        return
    calls = [(file, node) for file in context.program.parsed() for node in file.walk() if isinstance(node, ast.Call)]
    made = [(file, node) for file, node in calls if _is_configuration(node, file, context)]
    made = made or [(file, node) for file, node in calls if _is_loaded(node, file, context)]
    if made and not any(one.arg in (_ARGUMENT, None) for _, node in made for one in node.keywords):
        edits = tuple(add_argument(file, node, f'{_ARGUMENT}="eager"') for file, node in made)
        yield Proposal(edits=edits, culprit=culprit_of(*made[0], _WHY), belief=2.2)


def _is_configuration(node: ast.Call, file: SourceFile, context: Context) -> bool:
    called = context.program.names(file).qualified(node.func) or ""
    return called.startswith("transformers.") and called.endswith("Config") and called.count(".") == 1


def _is_loaded(node: ast.Call, file: SourceFile, context: Context) -> bool:
    called = context.program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    is_model = "Model" in owner or "For" in owner
    return called.startswith("transformers.") and last in ("from_pretrained", "from_config") and is_model
