"""Entries of dictionaries by constant keys: what `opts["g"]` was made of, where `opts` is written as a whole or in a loop."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping

from explainer.source.name import entry_name
from explainer.source.tree import walk

COMPREHENSIONS = (ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp)


def key_of(name: str) -> tuple[str, str | int | None]:
    """The container and the key of an entry's name: `self.opts` and `g` of `self.opts["g"]`; no key where it ends otherwise."""
    found = re.search(r'\[(?:"([^"]*)"|(\d+))\]$', name)
    if found is None:
        return name, None
    return name[: found.start()], int(found[2]) if found[2] is not None else found[1]


def entry_made(container: str, key: str | int, within: ast.AST) -> ast.expr | None:
    """What stands under a key: in a dictionary's display or comprehension, or written entry by entry in a loop."""
    for node in walk(within):
        if isinstance(node, ast.Assign) and any(entry_name(one) == container for one in node.targets):
            found = _entry(node.value, key)
            if found is not None:
                return found
        if isinstance(node, ast.For):
            for one in node.body:
                targets = one.targets if isinstance(one, ast.Assign) else []
                if isinstance(one, ast.Assign) and any(_is_entry(each, container) for each in targets):
                    bound = _bound(node.target, node.iter, key)
                    return _put(one.value, bound) if bound else None
    return None


def _is_entry(target: ast.expr, container: str) -> bool:
    """`container[key]` with a key that is a variable."""
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.slice, ast.Name)
        and entry_name(target.value) == container
    )


def _entry(value: ast.expr, key: str | int) -> ast.expr | None:
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return next((one for at, one in pairs if isinstance(at, ast.Constant) and at.value == key), None)
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts[key] if isinstance(key, int) and key < len(value.elts) else None
    if isinstance(value, ast.ListComp) and isinstance(key, int) and len(value.generators) == 1:
        one = value.generators[0]
        taken = ast.Subscript(value=one.iter, slice=ast.Constant(value=key), ctx=ast.Load())
        return _put(value.elt, {one.target.id: taken}) if isinstance(one.target, ast.Name) and not one.ifs else None
    if isinstance(value, ast.Call):  # dict(g=...), nn.ModuleDict({...})
        named = next((one.value for one in value.keywords if one.arg == key), None)
        return named or (_entry(value.args[0], key) if len(value.args) == 1 else None)
    if isinstance(value, ast.DictComp) and isinstance(value.key, ast.Name) and len(value.generators) == 1:
        bound = _bound(value.generators[0].target, value.generators[0].iter, key)
        return _put(value.value, bound) if value.key.id in bound else None
    return None


def _bound(target: ast.expr, walked_over: ast.expr, key: str | int) -> dict[str, ast.expr]:
    """What the names of a loop stand for in its round of a key: `for name, net in nets.items()`, `for name in ("g", "d")`."""
    at = ast.Constant(value=key)
    func = walked_over.func if isinstance(walked_over, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr == "items":
        names = target.elts if isinstance(target, ast.Tuple) else []
        if len(names) == 2 and isinstance(names[0], ast.Name) and isinstance(names[1], ast.Name):
            return {names[0].id: at, names[1].id: ast.Subscript(value=func.value, slice=at, ctx=ast.Load())}
        return {}
    is_list = isinstance(walked_over, (ast.Tuple, ast.List, ast.Set))
    if is_list and not any(isinstance(one, ast.Constant) and one.value == key for one in walked_over.elts):  # type: ignore[attr-defined]
        return {}
    return {target.id: at} if isinstance(target, ast.Name) else {}


def _put(value: ast.expr, bound: Mapping[str, ast.expr]) -> ast.expr:
    """A copy of an expression with the names replaced that a loop binds."""

    class Put(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return bound.get(node.id, node)

    result = Put().visit(copy.deepcopy(value))
    assert isinstance(result, ast.expr)
    return result


def walked(name: str, value: ast.AST) -> Iterator[str]:
    """What a name stands for that a comprehension in `value` binds: `nets` for `n` of `for n in nets.values()`, else itself."""
    for one in walk(value):
        for each in one.generators if isinstance(one, COMPREHENSIONS) else ():
            if (owners := owners_of(name, each.target, each.iter)) is not None:
                yield from owners
                return
    yield name


def owners_of(name: str, target: ast.expr, over: ast.expr) -> list[str] | None:
    """What a loop takes the values of `name` from: `nets` of `for name, net in nets.items()`; None where it doesn't bind it."""
    last = target.elts[-1] if isinstance(target, ast.Tuple) and target.elts else target
    if not isinstance(last, ast.Name) or last.id != name:
        return None
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        over = over.func.value
    parts = over.elts if isinstance(over, (ast.Tuple, ast.List)) else [over]
    return [found for part in parts if (found := entry_name(part))]
