"""The group of all the rest leaves out what another group names: `"lora_B" not in n and "head" not in n`.

Groups of parameters are picked by name, and one takes what is left: all whose names have none of some words. A group that was
added later, with a word of its own, is in both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import Function
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_TWICE = "appear in more than one parameter group"


@dataclass(frozen=True, slots=True)
class _Picked:
    """A list of parameters that a test of their names picks."""

    node: ast.ListComp | ast.GeneratorExp
    test: ast.expr

    @property
    def source(self) -> tuple[str, str]:
        """What it walks, and by which names."""
        (part,) = self.node.generators
        return ast.unparse(part.target), ast.unparse(part.iter)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the list of the rest beside the lists that words pick, where an optimizer refused their groups."""
    if _TWICE not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        for where, picked in _lists(file, statement, context):
            rests = [one for one in picked if all(_is_negative(test) for test in _parts(one.test))]
            named = [one for one in picked if len(_parts(one.test)) == 1 and not _is_negative(one.test)]
            if len(rests) != 1:
                continue
            (rest,) = rests
            left_out = {ast.unparse(_opposite(one)) for one in _parts(rest.test)}
            missing = [one for one in named if one.source == rest.source and ast.unparse(one.test) not in left_out]
            if missing:
                tests = [where.segment(rest.test), *(_left_out(one.test, where) for one in missing)]
                words = "`, `".join(where.segment(one.test) for one in missing)
                yield Proposal(
                    edits=(edit_of(where, rest.test, " and ".join(tests)),),
                    culprit=culprit_of(where, rest.node, f"lists what `{words}` picks for another group too"),
                    belief=2.4,
                )


def _lists(file: SourceFile, statement: ast.stmt, context: Context) -> Iterator[tuple[SourceFile, list[_Picked]]]:
    """The lists by name of the scope that makes the optimizer, and of each function that it calls for groups."""
    scopes: list[tuple[SourceFile, ast.AST]] = [(file, scope_of(statement, file))]
    resolver = resolver_of(context.program)
    for node in walk(statement):
        target = resolver.function_of(node, Value(node, file)) if isinstance(node, ast.Call) else None
        if target is not None and isinstance(target[1], Function):
            scopes.append((target[0], target[1]))
    for where, scope in scopes:
        found = [one for bound in bounds_of(scope) if (one := _picked(bound.node)) is not None]
        inline = [one for node in walk(scope) if (one := _picked(node)) is not None]
        yield where, list({id(one.node): one for one in (*found, *inline)}.values())


def _picked(node: ast.AST) -> _Picked | None:
    if not isinstance(node, (ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
        return None
    (part,) = node.generators
    if len(part.ifs) != 1 or not isinstance(node.elt, ast.Name) or not isinstance(part.target, ast.Tuple):
        return None
    return _Picked(node, part.ifs[0])


def _parts(test: ast.expr) -> list[ast.expr]:
    """`a and b` as `a`, `b`."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _is_negative(test: ast.expr) -> bool:
    """`"x" not in n`, `not any(...)`, `not n.startswith("x")`."""
    if isinstance(test, ast.UnaryOp):
        return isinstance(test.op, ast.Not)
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn)


def _opposite(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.In, ast.NotIn)):
        other = ast.NotIn() if isinstance(test.ops[0], ast.In) else ast.In()
        return ast.Compare(left=test.left, ops=[other], comparators=test.comparators)
    return ast.UnaryOp(op=ast.Not(), operand=test)


def _left_out(test: ast.expr, file: SourceFile) -> str:
    """The opposite of a test, as the file writes it."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.In):
        return f"{file.segment(test.left)} not in {file.segment(test.comparators[0])}"
    return f"not {operand(file, test)}"
