"""An embedding of labels gets no -100: `self.embed(shift_right(labels))` becomes `self.embed(shift_right(labels).clamp_min(0))`.

-100 marks what the loss leaves out. Where labels become the input of a decoder it is an index that no table has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import put_method
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_MESSAGE = re.compile(r"index out of range in self|Assertion `srcIndex < srcSelectDimSize` failed")
_LABELS = re.compile(r"(?:^|_|\.)(?:labels?|targets?|tgt|y)(?:_|$)", re.IGNORECASE)
_IGNORED = -100
_DEPTH = 4


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the embedding that raised, where it looks labels up and the program ignores some of them."""
    if not _MESSAGE.search(message_of(context)) or not _ignores(context.program):
        return
    for file, statement in raised_at(context):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call) and len(one.args) == 1):
            given = call.args[0]
            if _is_table(call, file, context.program) and _is_of_labels(Value(given, file), context.program, 0):
                yield Proposal(
                    edits=(put_method(file, given, ".clamp_min(0)"),),
                    culprit=culprit_of(
                        file, given, f"looks labels up, and {_IGNORED} marks those that the loss ignores"
                    ),
                    belief=1.8,
                )


def _ignores(program: Program) -> bool:
    """Whether -100 is written somewhere in the program."""
    return any(
        isinstance(one, ast.UnaryOp) and number_of(one, program.names(file)) == _IGNORED
        for file in program.parsed()
        for one in file.walk()
    )


def _is_table(call: ast.Call, file: SourceFile, program: Program) -> bool:
    made = resolver_of(program).constructors_of(Value(call.func, file))
    return any(program.names(one.file).is_call(one.node, "torch.nn.Embedding") for one in made)


def _is_of_labels(value: Value, program: Program, depth: int) -> bool:
    """Whether a value is made of what is called labels, and of nothing that fills them."""
    node, resolver = value.node, resolver_of(program)
    filled = ("masked_fill", "clamp", "clamp_min", "where", "relu")
    if depth > _DEPTH or any(isinstance(one, ast.Attribute) and one.attr in filled for one in walk(node)):
        return False
    name = dotted_name(node)
    if name is not None:
        return _LABELS.search(name) is not None or any(
            _is_of_labels(one, program, depth + 1) for one in resolver.behind(value)
        )
    if isinstance(node, ast.Call) and (target := resolver.function_of(node, value)) is not None:
        inside = [one for one in walk(target[1]) if isinstance(one, ast.Attribute) and one.attr in filled]
        return not inside and any(_is_of_labels(Value(one, value.file), program, depth + 1) for one in node.args)
    return any(
        _is_of_labels(Value(one, value.file, value.arguments), program, depth + 1)
        for one in ast.iter_child_nodes(node)
        if isinstance(one, ast.expr)
    )
