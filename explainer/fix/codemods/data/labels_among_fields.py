"""The labels join the fields that a batch is made of: `fields: [input_ids, attention_mask, labels]`, `columns=[..., "labels"]`.

Where a list of the program or its configuration names just the inputs that the model received, and the rows have labels: what is
made of the other fields, `labels = input_ids`, would train on the prompt and the padding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.model.patch import Edit
from explainer.source.program import Program
from explainer.source.text import TextFile

_RECEIVED = re.compile(r"the inputs it received are ([\w, ]+?)\.(?:\s|$)")
_LIST = re.compile(r"\[([^\[\]]*\binput_ids\b[^\[\]]*)\]")
_WORD = re.compile(r"\w+")
_LABELS = "labels"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the one list that names what the model received."""
    received = _RECEIVED.search(message_of(context))
    if not context.has_failed or received is None or not _has_labels(context.program):
        return
    wanted = frozenset(_WORD.findall(received[1]))
    found = [*_in_code(wanted, context.program), *_in_settings(wanted, context.program)]
    for file, start, end, quote in found if len(found) == 1 else ():
        yield Proposal(
            edits=(Edit(file=file.path, start=end, end=end, new=f", {quote}{_LABELS}{quote}"),),
            culprit=culprit_at(file, (start, end), "names the fields of a batch, and leaves the labels out"),
            belief=2.5,
        )


def _has_labels(program: Program) -> bool:
    """Whether the program's rows have a column of that name: as a key that is written or read."""
    return any(
        isinstance(node, ast.Constant) and node.value == _LABELS and isinstance(above, (ast.Dict, ast.Subscript))
        for file in program.parsed()
        for node, above in file.parents.items()
    )


def _in_code(wanted: frozenset[str], program: Program) -> Iterator[tuple[TextFile, int, int, str]]:
    """The lists and tuples of words: their file, where their elements begin and end, and how they are quoted."""
    for file in program.parsed():
        for node in file.walk():
            elements = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
            words = [one.value for one in elements if isinstance(one, ast.Constant)]
            if elements and len(words) == len(elements) and frozenset(map(str, words)) == wanted:
                start, end = file.span(elements[0])[0], file.span(elements[-1])[1]
                yield file, start, end, file.text[start]


def _in_settings(wanted: frozenset[str], program: Program) -> Iterator[tuple[TextFile, int, int, str]]:
    """The lists of configuration files that are written within brackets."""
    for text in program.texts:
        for found in _LIST.finditer(text.text):
            inner = found[1].rstrip()
            if frozenset(_WORD.findall(inner)) == wanted and not inner.endswith(","):
                first = len(inner) - len(inner.lstrip())
                quote = inner[-1] if inner[-1] in "\"'" else ""
                yield text, found.start(1) + first, found.start(1) + len(inner), quote
