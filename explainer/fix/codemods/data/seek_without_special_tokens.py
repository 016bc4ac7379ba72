"""`tokenizer(template)["input_ids"]` becomes `tokenizer(template, add_special_tokens=False)["input_ids"]`, where these ids are sought in longer ones.

A tokenizer puts `<s>` before, or `[CLS]` and `[SEP]` around, whatever it is given alone. With them a template is never found in the
middle of a text, and no label behind it is kept. Not where the ids are the beginning of a text or are joined to others, for which
the special tokens are meant, and not where the first or the last are cut off.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.data.sought import Fate, Held, fate_of
from explainer.source.data.tokenizer import calls_of_tokenizers
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.integer import integer_of
from explainer.source.value.resolve import resolver_of

_IGNORED = -100
_CALLERS = 2
_WHY = "lets the tokenizer add its special tokens to the template, with which it is in the middle of no text"
_NOWHERE = "finds the template nowhere, as its ids have special tokens: all labels stay ignored"

_SEVERAL = (
    "of several templates one may be meant to be found at the beginning of a text alone, behind its special token"
)


def propose(context: Context) -> Iterator[Proposal]:
    """One edit for all templates that are sought where labels are marked; only the lines where one of them is also read otherwise."""
    if not context.has_failed:
        return
    found = [
        (call, fate)
        for call in calls_of_tokenizers(context.program)
        if (fate := _fate(call, context.program)) is not None
    ]
    is_cured = not any(fate.others for _, fate in found)
    edits = tuple(add_argument(call.file, _call(call), "add_special_tokens=False") for call, _ in found)
    for at, (call, fate) in enumerate(found):
        is_whole = is_cured and at == 0
        yield Proposal(
            edits=edits if is_whole else (),
            culprit=culprit_of(call.file, call.node, _WHY),
            belief=4.5 if is_cured else 1.0,
            is_origin=is_whole,
            applicability="unsafe" if len(found) > 1 else None,
            because=_SEVERAL if len(found) > 1 else None,
        )
        for file, node in fate.searches[:1]:
            yield Proposal(edits=(), culprit=culprit_of(file, node, _NOWHERE), belief=4.0 if is_cured else 0.8)


def _call(made: Held) -> ast.Call:
    assert isinstance(made.node, ast.Call)
    return made.node


def _fate(made: Held, program: Program) -> Fate | None:
    """What becomes of a template's ids, where they are sought as they are made, in what keeps labels."""
    fate = fate_of(made, program)
    return fate if fate.searches and not fate.is_cut and _marks_labels(fate, program) else None


def _marks_labels(fate: Fate, program: Program) -> bool:
    """Whether a function that holds the ids, or one that calls it, marks labels as ignored."""
    scopes = {_scope(one.file, one.node, program): one.file for one in fate.held}
    scopes |= {_scope(file, node, program): file for file, node in fate.searches}
    for _ in range(_CALLERS):
        for scope, file in list(scopes.items()):
            for where, call in _calls(scope, file, program):
                scopes.setdefault(_scope(where, call, program), where)
    return any(_marks(scope, file, program) for scope, file in scopes.items() if scope is not None)


def _calls(scope: ast.AST | None, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    is_function = isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
    return resolver_of(program).calls_of(scope, file) if is_function else []  # type: ignore[arg-type]


def _scope(file: SourceFile, node: ast.AST, program: Program) -> ast.AST | None:
    """The function around a node, else its file."""
    return program.names(file).function_of(node) or file.tree


def _marks(scope: ast.AST, file: SourceFile, program: Program) -> bool:
    """Whether -100 stands in a scope, by itself or under a name, or something that is called after what is ignored."""
    names = [node for node in walk(scope) if isinstance(node, (ast.Name, ast.Attribute))]
    numbers = [node for node in walk(scope) if isinstance(node, ast.UnaryOp)]
    return any("ignore" in (dotted_name(one) or "").lower() for one in names) or any(
        integer_of(Value(one, file), program) == _IGNORED for one in (*numbers, *names)
    )
