"""`nn.Embedding(num_classes + 1, width)`: a label beyond the classes means "none of them", and has a row of its own.

Guidance without a classifier drops labels (`y.masked_fill(drop, num_classes)`), masked and autoregressive models write a mask
or a start code behind the last one. The marker is the very number that counts the table's rows, so that its row is one too many.
So it is where a model of transformers has the table, and its configuration the count: `vocab_size=n + 1`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import operand
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.integer import integer_of
from explainer.source.value.resolve import resolver_of

_TABLES = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
# Where the value stands that is written among codes: by place, else by name.
_FILLS = {"masked_fill": 1, "masked_fill_": 1, "full": 1, "full_like": 1, "new_full": 1, "fill_": 0, "index_fill": 2}
_WHOLE = frozenset({"full", "new_full", "fill_"})
_INTEGERS = frozenset({"torch.long", "torch.int64", "torch.int", "torch.int32"})
_NAMED = ("value", "fill_value")
_FIRST_BEYOND = re.compile(r"(\d+) of \1, from \d+$")
_DEPTH = 6
_FEWEST = 2  # as many rows, or the number says nothing


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the table that the failing line looks up, where the program writes its row count as a code."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        for where, made in _tables(statement, file, context.program) or list(_settings(context)):
            rows = _rows(made)
            marker = _written(Value(rows, where), context.program) if rows is not None else None
            if rows is None or marker is None:
                continue
            at, node = marker
            number = rows.value if isinstance(rows, ast.Constant) else None
            one_more = str(number + 1) if isinstance(number, int) else f"{operand(where, rows)} + 1"
            yield Proposal(
                edits=(edit_of(where, rows, one_more),),
                culprit=culprit_of(
                    where, made, f"has no row for `{at.segment(node)}`, which is written among the codes"
                ),
                belief=1.6,
            )


def _tables(statement: ast.stmt, file: SourceFile, program: Program) -> list[tuple[SourceFile, ast.Call]]:
    """The constructors of the embeddings that a statement looks up."""
    found = {
        one.node: (one.file, one.node)
        for call in walk(statement)
        if isinstance(call, ast.Call)
        for one in resolver_of(program).constructors_of(Value(call.func, file))
        if isinstance(one.node, ast.Call) and program.names(one.file).is_call(one.node, *_TABLES)
    }
    return list(found.values())


def _settings(context: Context) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The configurations of transformers' models that count a vocabulary, where the live id was the first beyond it."""
    live = context.incident.fact("live_refused_index")
    if live is None or not _FIRST_BEYOND.match(live.value):
        return
    for file, call in find_calls(context.program):
        called = context.program.names(file).qualified(call.func) or ""
        if called.startswith("transformers.") and any(one.arg == "vocab_size" for one in call.keywords):
            yield file, call


def _rows(made: ast.Call) -> ast.expr | None:
    named = next((one.value for one in made.keywords if one.arg in ("num_embeddings", "vocab_size")), None)
    return named if named is not None else made.args[0] if made.args else None


def _written(rows: Value, program: Program) -> tuple[SourceFile, ast.expr] | None:
    """What is written among codes, and is the count of the rows by where both come from."""
    wanted = _roots(rows, program)
    for file in program.parsed():
        for node in file.walk():
            value = _filled(node)
            shared = wanted & _roots(Value(value, file), program) if value is not None else frozenset()
            if value is not None and any(_counts_codes(node) or not isinstance(one, int) for one in shared):
                return file, value
    return None


def _counts_codes(node: ast.AST) -> bool:
    """Whether a bare number there is a code: one that fills a whole tensor may measure something, unless that holds integers."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _WHOLE:
        return True
    return any(one.arg == "dtype" and ast.unparse(one.value) in _INTEGERS for one in node.keywords)


def _filled(node: ast.AST) -> ast.expr | None:
    """The value that a call or an assignment writes into parts of a tensor."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Subscript):
        return node.value
    if not isinstance(node, ast.Call):
        return None
    name = (dotted_name(node.func) or "").rpartition(".")[2] or (
        node.func.attr if isinstance(node.func, ast.Attribute) else ""
    )
    if name == "where" and len(node.args) == 3:
        plain = [one for one in node.args[1:] if dotted_name(one) is not None or isinstance(one, ast.Constant)]
        return plain[0] if len(plain) == 1 else node.args[1]
    if name not in _FILLS:
        return None
    named = next((one.value for one in node.keywords if one.arg in _NAMED), None)
    return named if named is not None else node.args[_FILLS[name]] if len(node.args) > _FILLS[name] else None


def _roots(value: Value, program: Program, depth: int = 0) -> frozenset[object]:
    """Where a count comes from: settings by what they are called, what is measured by itself, a number by its value."""
    node = value.node
    number = integer_of(value, program)
    found = frozenset[object]() if number is None or number < _FEWEST else frozenset({number})
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return found | {ast.unparse(node)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
        return found | {("len", id(one)) for one in _named(replace(value, node=node.args[0]), program)}
    name = dotted_name(node)
    if name is None or depth > _DEPTH:
        return found
    for one in resolver_of(program).behind(value):
        if one.pick is None:
            found |= _roots(one, program, depth + 1)
    return found if name.startswith(("self.", "cls.")) or "." not in name else found | {name}


def _named(value: Value, program: Program, depth: int = 0) -> Iterator[ast.AST]:
    """What stands at the end of the names of a value."""
    behind = list(resolver_of(program).behind(value)) if depth < _DEPTH else []
    if not behind:
        yield value.node
    for one in behind:
        yield from _named(one, program, depth + 1)
