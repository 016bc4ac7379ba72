"""Numbers that a traced sum may have been given of tensors: which of them it was, as source shows."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from typing import Any

from explainer.source.loss.read_number import Term, tensor_of
from explainer.source.loss.read_term import terms_of
from explainer.source.program import read_program


def read_terms(traced: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Each line that read a term of a sum, with the sum; and whether it had the tensor by a name, so that the sum is wrong.

    A trace hands over what may be: a number that changes, and another that was read before it in the same steps.
    """
    guesses = [one for one in traced.get("read_terms") or () if one["line"] and one["sum"]["line"]]
    if not guesses:
        return
    paths = list(dict.fromkeys(os.path.realpath(each["file"]) for one in guesses for each in (one["sum"], one)))
    program = read_program(os.path.commonpath([os.path.dirname(one) for one in paths]), paths)
    for total in {(one["sum"]["file"], one["sum"]["line"]): one["sum"] for one in guesses}.values():
        own = [one for one in guesses if (one["sum"]["file"], one["sum"]["line"]) == (total["file"], total["line"])]
        lines = {(os.path.realpath(one["file"]), one["line"]) for one in own}
        file = program.files.get(os.path.realpath(total["file"]))
        statement = program.at(file.path, total["line"]) if file is not None else None
        terms = list(terms_of(statement, file, program, lines)) if file is not None and statement is not None else []
        for one in own:
            path = os.path.realpath(one["file"])
            found = [
                each
                for each in terms
                if any(_stands_at(call, one["line"]) and where.path == path for call, where in each.readings.items())
            ]
            if found:
                yield one, all(_has_name(each) for each in found)


def _stands_at(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _has_name(term: Term) -> bool:
    """Whether a term is of one tensor that has a name, and is read for a log beside."""
    ((read, file),) = list(term.readings.items())[:1]
    tensor = tensor_of(read)
    parts = list(ast.walk(tensor)) if tensor is not None else []
    is_plain = all(
        isinstance(one, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)) for one in parts
    )
    is_one = len(term.readings) == 1 and not any(one.fills or one.is_element for one in term.bounds)
    in_list = file.enclosing(read, ast.ListComp, ast.GeneratorExp) is not None
    return is_plain and is_one and not (in_list or term.calls)
