"""The calls of `load_state_dict` of a program, with the states that they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.source.file import SourceFile
from explainer.source.value.binding import reaching


def loads_of(file: SourceFile) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls of `load_state_dict` of a file, with the state that each is given."""
    for one in file.attributes.get("load_state_dict", ()):
        call = file.parents.get(one)
        if isinstance(call, ast.Call) and call.func is one:
            named = [each.value for each in call.keywords if each.arg == "state_dict"]
            state = next(iter([*call.args, *named]), None)
            if state is not None and not isinstance(state, ast.Starred):
                yield call, state


def sifted(file: SourceFile, state: ast.expr) -> ast.expr | None:
    """The mapping of which a comprehension leaves out some keys before they are loaded: it means the names of the model."""
    made = reaching(state.id, state, file) if isinstance(state, ast.Name) else []
    node = made[0].node if len(made) == 1 else None
    part = node.generators[0] if isinstance(node, ast.DictComp) and len(node.generators) == 1 else None
    over = part.iter if part is not None and part.ifs else None
    is_items = isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items"
    return over.func.value if is_items and isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else None
