"""A prefix that chooses the parameters of one part ends with its dot: `name.startswith(f"{part}.")`, `name.startswith("head.")`.

`name.startswith("head")` takes `head_norm.weight` too, which has a group of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of
from explainer.source.value.resolve import resolver_of

_TWICE = "appear in more than one parameter group"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the prefixes of the groups that an optimizer refused, of which one begins as another does."""
    if _TWICE not in message_of(context):
        return
    for file in context.program.parsed():
        seen: set[ast.AST] = set()
        for node in file.walk():
            if not _is_test(node) or not isinstance(node, ast.Call):
                continue
            scope = scope_of(node, file)
            if isinstance(node.args[0], ast.Name):
                yield from _of_names(node, file, context.program)
            elif scope not in seen:
                seen.add(scope)
                yield from _of_words(scope, file)


def _is_test(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith"
    return is_call and isinstance(node, ast.Call) and len(node.args) == 1


def _of_names(test: ast.Call, file: SourceFile, program: Program) -> Iterator[Proposal]:
    """`n.startswith(part)` where a loop hands out the parts."""
    (name,) = test.args
    assert isinstance(name, ast.Name)
    words = _handed_out(name, file, program)
    loose = [one for one in words if _is_loose(one, words)]
    if loose:
        yield Proposal(
            edits=(edit_of(file, name, f'f"{{{name.id}}}."'),),
            culprit=culprit_of(file, test, _why(loose[0], words)),
            belief=2.4,
        )


def _of_words(scope: Function | ast.Lambda | ast.Module, file: SourceFile) -> Iterator[Proposal]:
    """`n.startswith("head")` beside `n.startswith("head_norm")`."""
    given = [one.args[0] for one in walk(scope) if _is_test(one) and isinstance(one, ast.Call)]
    found = [one for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    words = [str(one.value) for one in found]
    loose = [one for one in found if _is_loose(str(one.value), words)]
    if loose:
        edits = [edit_of(file, one, f"{file.segment(one)[:-1]}.{file.segment(one)[-1]}") for one in loose]
        why = _why(str(loose[0].value), words)
        yield Proposal(edits=tuple(edits), culprit=culprit_of(file, loose[0], why), belief=2.4)


def _why(word: str, words: list[str]) -> str:
    other = next(one for one in words if one != word and one.startswith(word))
    return f"takes what `{other}` names too, since that begins with `{word}`"


def _is_loose(word: str, words: list[str]) -> bool:
    """Whether another word, which is no part of what this one names, begins with it."""
    others = [one for one in words if one != word and one.startswith(word)]
    return not word.endswith(".") and bool(others) and not any(one.startswith(f"{word}.") for one in others)


def _handed_out(name: ast.Name, file: SourceFile, program: Program) -> list[str]:
    """The words that the loop or comprehension around a name gives it: the keys of a dictionary, a list of words or of pairs."""
    for above in file.around(name):
        loops: list[ast.For | ast.comprehension] = list(getattr(above, "generators", ()))
        loops += [above] if isinstance(above, ast.For) else []
        for loop in loops:
            target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) else loop.target
            if isinstance(target, ast.Name) and target.id == name.id:
                return _words(loop.iter, file, program)
    return []


def _words(node: ast.expr, file: SourceFile, program: Program) -> list[str]:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys"):
        node = node.func.value
    written = (ast.Dict, ast.List, ast.Tuple)
    behind = (
        [node] if isinstance(node, written) else [one.node for one in resolver_of(program).behind(Value(node, file))]
    )
    made = behind[0] if len(behind) == 1 else None
    parts = made.keys if isinstance(made, ast.Dict) else made.elts if isinstance(made, (ast.List, ast.Tuple)) else []
    firsts = [one.elts[0] if isinstance(one, ast.Tuple) and one.elts else one for one in parts]
    return [str(one.value) for one in firsts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
