"""Which word a program gets where it reads text: from its environment, an INI file, a table, or the default behind them."""

from __future__ import annotations

import ast
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from explainer.source.data.table import find_tables
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.held import held_by, returned_by
from explainer.source.setting.setting import IN_CODE, INI, Code
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

NO = frozenset({"0", "f", "false", "n", "no", "off"})
YES = frozenset({"1", "true", "yes", "on"})

_DEPTH = 12
_ENVIRONMENT = "os.environ"
_SAME = frozenset({"strip", "lower", "upper", "casefold", "lstrip", "rstrip"})


def is_no(word: object) -> bool:
    """Whether text says no to a person, and is true to `bool`."""
    return isinstance(word, str) and word.strip().lower() in NO


def words_of(value: Value, program: Program, variables: Mapping[str, str], depth: int = 0) -> Iterator[object]:
    """What an expression may be: constants of the program, or words of its environment and files; `Code` where that is not known.

    `variables` are those of its environment that are known.
    """
    node = value.node
    if isinstance(node, ast.Constant):
        yield node.value
    elif depth > _DEPTH:
        yield Code(value.file.segment(node))
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        yield from words_of(replace(value, node=node.values[-1]), program, variables, depth + 1)
    elif isinstance(node, (ast.BinOp, ast.JoinedStr)):
        text = _text(value, program)
        yield Code(value.file.segment(node)) if text is None else text
    else:
        found = _read(value, program, variables, depth)
        yield from [Code(value.file.segment(node))] if found is None else found


def _read(value: Value, program: Program, variables: Mapping[str, str], depth: int) -> Sequence[object] | None:
    """The words of a name, a call or an entry; None where they are not known."""
    node = value.node
    asked = _asked_of_environment(value, program)
    if asked is not None:
        name, default = asked
        if name is not None and name in variables:
            return [variables[name]]
        # A variable that is asked for by `[...]` is text, whichever; by `get` without a default it may be None.
        unset = [] if isinstance(node, ast.Subscript) else [None]
        return list(words_of(default, program, variables, depth + 1)) if default is not None else unset
    inner = _kept(node)
    if inner is not None:
        return list(words_of(replace(value, node=inner), program, variables, depth + 1))
    if isinstance(node, ast.Call) and (returned := list(returned_by(node, value, program))):
        return [word for one in returned for word in words_of(one, program, variables, depth + 1)]
    cells = _cells(value, program)
    if cells:
        return cells
    if isinstance(node, (ast.Subscript, ast.Call)) and (written := _written(node, value, program)):
        return written
    held = [word for one in held_by(value, program) for word in words_of(one, program, variables, depth + 1)]
    return held or None


def _kept(node: ast.expr) -> ast.expr | None:
    """The text that a call only trims, or makes a string of."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        return node.func.value
    is_text = isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1
    return node.args[0] if is_text else None


def _asked_of_environment(value: Value, program: Program) -> tuple[str | None, Value | None] | None:
    """The variable that an expression reads and the default behind it; None where it reads none."""
    node, names = value.node, program.names(value.file)
    if isinstance(node, ast.Subscript) and _is_environment(replace(value, node=node.value), program):
        return _text(replace(value, node=node.slice), program), _set_before(node.slice, program)
    if not isinstance(node, ast.Call) or not node.args:
        return None
    is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop", "setdefault")
    is_asked = is_method and _is_environment(replace(value, node=node.func.value), program)  # type: ignore[attr-defined]
    if not is_asked and names.qualified(node.func) != "os.getenv":
        return None
    given = [*node.args[1:2], *(one.value for one in node.keywords if one.arg == "default")]
    default = replace(value, node=given[0]) if given else _set_before(node.args[0], program)
    return _text(replace(value, node=node.args[0]), program), default


def _is_environment(value: Value, program: Program) -> bool:
    """Whether an expression is the environment of the process, also under another name."""
    if program.names(value.file).qualified(value.node) == _ENVIRONMENT:
        return True
    if not isinstance(value.node, ast.Name):
        return False
    behind = list(resolver_of(program).behind(value))
    return bool(behind) and all(program.names(one.file).qualified(one.node) == _ENVIRONMENT for one in behind)


def _set_before(key: ast.expr, program: Program) -> Value | None:
    """What the program itself puts into the environment where nobody else has: `os.environ.setdefault("FREEZE", "0")`."""
    word = key.value if isinstance(key, ast.Constant) else None
    for file, call in resolver_of(program).calls_named("setdefault") if word is not None else ():
        owner = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        first = call.args[0] if len(call.args) == 2 else None
        is_same = isinstance(first, ast.Constant) and first.value == word
        if is_same and _is_environment(Value(owner, file), program):
            return Value(call.args[1], file)
    return None


def _text(value: Value, program: Program) -> str | None:
    """A text that is put together of constants: `PREFIX + name`, `f"APP_{name}"`; None where a part is not known."""
    node = value.node
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [node.left, node.right]
    elif isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.FormattedValue) else one for one in node.values]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "upper":
        text = _text(replace(value, node=node.func.value), program)
        return text.upper() if text is not None else None
    else:
        found = {_text(one, program) for one in held_by(value, program) if isinstance(one.node, ast.Constant)}
        return found.pop() if len(found) == 1 else None
    texts = [_text(replace(value, node=one), program) for one in parts]
    return "".join(one for one in texts if one is not None) if None not in texts else None


def _written(node: ast.Subscript | ast.Call, value: Value, program: Program) -> list[object]:
    """The words that configuration files hold for an entry; of an INI file all is text."""
    settings = settings_behind(node, value.file, program)
    read: list[object] = [one.raw if one.kind == INI else one.value for one in settings if one.kind not in IN_CODE]
    if read or not isinstance(node, ast.Call):
        return read
    return [one.value.value for one in node.keywords if one.arg == "fallback" and isinstance(one.value, ast.Constant)]


def _cells(value: Value, program: Program) -> list[object]:
    """What the tables beside a program hold in the column that a row of `csv.DictReader` is asked for."""
    node = value.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Constant):
        return []
    if not _is_row(replace(value, node=node.value), program):
        return []
    found: list[object] = []
    for table in find_tables(program.root):
        if any(table.path.rpartition("/")[2] in file.text for file in program.parsed()):
            rows = list(csv.DictReader(io.StringIO(table.text)))
            found += [row[column] for row in rows if (column := node.slice.value) in row]
    return found


def _is_row(value: Value, program: Program, depth: int = 0) -> bool:
    """Whether an expression is a row that `csv.DictReader` gives, or the reader, or a list of them."""
    node = value.node
    names = program.names(value.file)
    if isinstance(node, ast.Call):
        if names.is_call(node, "csv.DictReader"):
            return True
        if names.is_call(node, "list", "tuple", "enumerate", "sorted") and node.args:
            return _is_row(replace(value, node=node.args[0]), program, depth + 1)
        return any(_is_row(one, program, depth + 1) for one in returned_by(node, value, program) if depth < _DEPTH)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _is_row(replace(value, node=node.elt), program, depth + 1)
    behind = resolver_of(program).behind(value) if isinstance(node, (ast.Name, ast.Attribute)) else ()
    return depth < _DEPTH and any(_is_row(one, program, depth + 1) for one in behind)
