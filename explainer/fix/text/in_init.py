"""What a method makes, as `__init__` would write it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.text.rewrite import remove_argument
from explainer.model.patch import Edit
from explainer.source.name import dotted_name
from explainer.source.network.anew import Anew, init_of
from explainer.source.tree import walk
from explainer.source.value.binding import walk_scope

_DEPTH = 4
_OF_INPUT = ("device", "dtype")


def text_in_init(anew: Anew) -> tuple[str, frozenset[str]] | None:
    """How `__init__` would write what is made, and which attributes it needs; None where it is not known there.

    A device or dtype that is taken from an input is left out: the module gets it as a whole.
    """
    names = _Names(anew)
    text = names.text(anew.node, 0)
    return (text, frozenset(names.needed)) if text is not None else None


class _Names:
    """What the names of an expression in a method stand for, as far as `__init__` knows them."""

    def __init__(self, anew: Anew) -> None:
        self._anew = anew
        self.needed: set[str] = set()

    def text(self, node: ast.expr, depth: int) -> str | None:
        """An expression without what only the method knows; None where that is more than a device or a dtype."""
        file = self._anew.file
        of_inputs = dict(self._of_inputs(node))
        passed = {id(one) for value in of_inputs for one in walk(value)} | _looped(node)
        cuts = [(one.start, one.end, one.new) for one in of_inputs.values()]
        for one in walk(node):
            if not isinstance(one, ast.Name) or id(one) in passed:
                continue
            if one.id == "self":
                if not self._is_set_once(file.parents.get(one)):
                    return None
            elif self._is_local(one.id):
                known = self._behind(one, depth)
                if known is None:
                    return None
                cuts.append((*file.span(one), known))
        text, (start, end) = file.text, file.span(node)
        for low, high, new in sorted(cuts, reverse=True):
            text = text[:low] + new + text[high:]
            end += len(new) - (high - low)
        return text[start:end]

    def _of_inputs(self, node: ast.expr) -> Iterator[tuple[ast.expr, Edit]]:
        """The devices and dtypes of what `__init__` does not know, with the edit that takes the keyword of each out."""
        for call in walk(node):
            for one in call.keywords if isinstance(call, ast.Call) else ():
                is_taken = isinstance(one.value, ast.Attribute) and one.value.attr in _OF_INPUT
                if one.arg in _OF_INPUT and is_taken and _Names(self._anew).text(one.value, 0) is None:
                    assert isinstance(call, ast.Call)
                    yield one.value, remove_argument(self._anew.file, call, one)

    def _is_set_once(self, attribute: ast.AST | None) -> bool:
        """Whether `self.x` is given a value by one statement of `__init__`'s own block, and by no other."""
        init = init_of(self._anew.owner)
        if not isinstance(attribute, ast.Attribute) or init is None:
            return False
        setting = [
            one
            for one in walk(self._anew.owner)
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and one.attr == attribute.attr
        ]
        if [dotted_name(one) for one in setting] != [f"self.{attribute.attr}"]:
            return False
        self.needed.add(attribute.attr)
        return self._anew.file.statement(setting[0]) in init.body

    def _is_local(self, name: str) -> bool:
        method = self._anew.method
        parameters = {one.arg for one in walk(method.args) if isinstance(one, ast.arg)}
        return name in parameters or bool(self._bindings(name))

    def _bindings(self, name: str) -> list[ast.Name]:
        nodes = walk_scope(self._anew.method)
        return [one for one in nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)]

    def _behind(self, name: ast.Name, depth: int) -> str | None:
        """What a local stands for that is bound once, before: `self.width` of `width = self.width`."""
        found = self._bindings(name.id)
        statement = self._anew.file.statement(found[0]) if len(found) == 1 else None
        if depth >= _DEPTH or not isinstance(statement, ast.Assign) or statement not in self._anew.method.body:
            return None
        if statement.targets != [found[0]] or statement.lineno >= name.lineno:
            return None
        text = self.text(statement.value, depth + 1)
        is_plain = isinstance(statement.value, (ast.Name, ast.Attribute, ast.Constant, ast.Call))
        return text if text is None or is_plain else f"({text})"


def _looped(node: ast.expr) -> set[int]:
    """The names that a comprehension in an expression binds, wherever it reads them."""
    bound = {
        one.id
        for each in walk(node)
        if isinstance(each, ast.comprehension)
        for one in walk(each.target)
        if isinstance(one, ast.Name)
    }
    return {id(one) for one in walk(node) if isinstance(one, ast.Name) and one.id in bound}
