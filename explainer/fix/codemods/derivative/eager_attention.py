"""A transformers model whose gradient is differentiated again is made with `attn_implementation="eager"`.

Where another one is written, in a configuration file or in Python, that is changed; else in the configuration that the program
makes, or in `from_pretrained`. Of several the one whose model is differentiated is not told apart, and all get it: where none of
them fuses attention, nothing changes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import is_of_attention
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import ASSIGNED, Setting

_ARGUMENT = "attn_implementation"
_EAGER = "eager"
_CHOSEN = "chooses a fused kernel for attention: it has one derivative"
_WHY = "leaves the choice of attention to transformers, which takes a fused kernel: it has one derivative"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all configurations; the models that are loaded where there are none."""
    if not is_of_attention(context):
        return
    written = [one for one in _written(context.program) if isinstance(one.value, str) and one.value != _EAGER]
    changed = [edit for one in written if isinstance(edit := set_value(one, _EAGER), Edit)]
    if written:
        if len(changed) == len(written):
            first = written[0]
            span = (first.key or first.span)[0], first.span[1]
            yield Proposal(edits=tuple(changed), culprit=culprit_at(first.file, span, _CHOSEN), belief=2.2)
        return
    calls = [(file, node) for file in context.program.parsed() for node in file.walk() if isinstance(node, ast.Call)]
    made = [(file, node) for file, node in calls if _is_configuration(node, file, context)]
    made = made or [(file, node) for file, node in calls if _is_loaded(node, file, context)]
    if made and not any(one.arg in (_ARGUMENT, None) for _, node in made for one in node.keywords):
        edits = tuple(add_argument(file, node, f'{_ARGUMENT}="eager"') for file, node in made)
        yield Proposal(edits=edits, culprit=culprit_of(*made[0], _WHY), belief=2.2)


def _written(program: Program) -> Iterator[Setting]:
    """Where the choice is written: in configuration files, as an argument, on a configuration."""
    for document in program.documents():
        if _ARGUMENT in document.file.text:
            yield from (one for one in document.settings if one.name == _ARGUMENT)
    for file in program.parsed():
        if _ARGUMENT in file.text:
            found = (one for one in read_python(file) if one.name in (_ARGUMENT, f"_{_ARGUMENT}"))
            literal = (one for one in found if one.raw[:1] in ("'", '"'))
            yield from (one for one in literal if one.kind != ASSIGNED or one.owner)


def _is_configuration(node: ast.Call, file: SourceFile, context: Context) -> bool:
    called = context.program.names(file).qualified(node.func) or ""
    return called.startswith("transformers.") and called.endswith("Config") and called.count(".") == 1


def _is_loaded(node: ast.Call, file: SourceFile, context: Context) -> bool:
    called = context.program.names(file).qualified(node.func) or ""
    owner, _, last = called.rpartition(".")
    is_model = "Model" in owner or "For" in owner
    return called.startswith("transformers.") and last in ("from_pretrained", "from_config") and is_model
