"""Modules of a project that its code imports by a name it is told: `import_module(name)`, Hydra's `_target_`, a package's own list.

What names them stands in a configuration file (`_target_: pump.callbacks.Truncate`), in a string of the code ("pump.callbacks:Truncate"),
or in the part that an f-string begins with (`import_module(f"models.{name}")`), and then any module of that folder may be meant.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.place import is_inside
from explainer.source.setting.file import find_texts

_IMPORTS = frozenset(
    {"import_module", "__import__", "instantiate", "get_class", "get_method", "locate", "import_string"}
)
_LISTS = frozenset({"iter_modules", "walk_packages"})
_DOTTED = re.compile(r"(?<![\w./\\-])[A-Za-z_]\w*(?:\.\w+)+(?!\w|/|\\)")
_MAX_WORDS = 2000


def modules_by_name(sources: Sequence[SourceFile], root: str, read: Sequence[str] = ()) -> Iterator[str]:
    """The project's files that modules with such names are in; none where nothing of the program imports by name.

    `read` are configuration files that the program is known to read.
    """
    calls = [(file, call) for file in sources for call in _calls(file, _IMPORTS)]
    for lister in (one for one in sources if any(_calls(one, _LISTS))):
        yield from _modules_in(os.path.dirname(lister.path), root)
    if not calls:
        return
    for file, call in calls:
        yield from _begun(call, file, root)
    texts = [one.text for one in find_texts(root, tuple(sources), read)]
    texts += [
        one.value
        for file in sources
        for one in file.walk()
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    ]
    words = dict.fromkeys(word for text in texts for word in _DOTTED.findall(text))
    for word in list(words)[:_MAX_WORDS]:
        yield from _files_of(word, root)


def _calls(file: SourceFile, names: frozenset[str]) -> Iterator[ast.Call]:
    for node in file.walk():
        if isinstance(node, ast.Call) and (dotted_name(node.func) or "").rpartition(".")[2] in names:
            yield node


def _begun(call: ast.Call, file: SourceFile, root: str) -> Iterator[str]:
    """The modules of the package that a name begins with: `f"models.{name}"`, `"models." + name`, `f".{name}"`."""
    first = call.args[0] if call.args else None
    if isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
        first = first.left
    elif isinstance(first, ast.JoinedStr) and first.values:
        first = first.values[0]
    else:
        return
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if text.endswith("."):
        package = text.rstrip(".").replace(".", os.sep)
        here = os.path.dirname(file.path)
        for place in dict.fromkeys((here,) if text == "." else (root, os.path.join(root, "src"), here)):
            yield from _modules_in(os.path.join(place, package), root)


def _modules_in(folder: str, root: str) -> Iterator[str]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    yield from (
        os.path.join(folder, one) for one in names if one.endswith(".py") and _is_own(os.path.join(folder, one), root)
    )


def _files_of(word: str, root: str) -> Iterator[str]:
    """The file of the longest part of a dotted name that is a module of the project."""
    parts = word.split(".")
    for place in (root, os.path.join(root, "src")):
        for end in range(len(parts), 0, -1):
            stem = os.path.join(place, *parts[:end])
            path = next((one for one in (f"{stem}.py", os.path.join(stem, "__init__.py")) if _is_own(one, root)), None)
            if path is not None:
                yield path
                break


def _is_own(path: str, root: str) -> bool:
    return os.path.isfile(path) and is_inside(os.path.realpath(path), root)
