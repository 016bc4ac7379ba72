"""Which configuration files and scripts belong to a program: those that its text names, and those with well-known names."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence

from explainer.source.file import SourceFile
from explainer.source.place import is_inside
from explainer.source.setting.setting import COMMAND, kind_of
from explainer.source.text import TextFile, Unreadable, read_text

MAX_FILES = 64
MAX_BYTES = 2 << 20
_MAX_ENTRIES = 2000
_FOLDERS = ("conf", "config", "configs", "examples", "recipes", "scripts")
_DEPTH = 3
# At the root only files with such names count: LLaMA-Factory, axolotl, accelerate, DeepSpeed, Lightning, Hydra, TRL.
_KNOWN = re.compile(
    r"(?:.*(?:config|cfg|args|arguments|params|hparams|settings|train|finetune|sft|dpo|lora|qlora|deepspeed|accelerate|axolotl"
    r"|fsdp|trainer|experiment).*|ds_.*|zero\d?.*|run.*|launch.*)",
    re.IGNORECASE,
)
_OTHERS = {
    "package.json",
    "tsconfig.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "pytest.ini",
    "mypy.ini",
    "mkdocs.yml",
    ".pre-commit-config.yaml",
    "tokenizer_config.json",
}
_FOLDER = re.compile(r"(?:\.{1,2}/)?[A-Za-z_][\w-]{0,60}(?:/[\w-]{1,60}){0,3}/?")
_MENTIONED = re.compile(r"[\w./\\-]+\.(?:ya?ml|json|toml|ini|cfg)\b")


def find_texts(root: str, sources: tuple[SourceFile, ...], read: Sequence[str] = ()) -> tuple[TextFile, ...]:
    """The configuration files and scripts of a program under `root`, those that it is known to `read` and that it names first.

    At most 64 files of at most 256 KiB, 2 MiB in all; nothing outside the root. A file that cannot be read is left out.
    """
    found: dict[str, TextFile] = {}
    size = 0
    queue = [*read, *_named(sources, root), *_listed(root)]
    while queue and len(found) < MAX_FILES and size < MAX_BYTES:
        path = queue.pop(0)
        if path in found:
            continue
        try:
            file = read_text(path)
        except Unreadable:
            continue
        found[path] = file
        size += len(file.data)
        if kind_of(path) == COMMAND:
            queue[:0] = [
                one
                for name in _MENTIONED.findall(file.text)
                if (one := _place(name, [root, os.path.dirname(path)], root))
            ]
    return tuple(found.values())


def find_read_texts(root: str, sources: tuple[SourceFile, ...], words: Sequence[str]) -> tuple[TextFile, ...]:
    """The configuration files under `root` that a run of a program reads, as far as text tells.

    Those that the words of its command line, its string literals or another of these files name; with Hydra, which names a
    folder, all that belong to the program.
    """
    found: dict[str, TextFile] = {}
    folders = [root, *dict.fromkeys(os.path.dirname(file.path) for file in sources)]
    named = [
        place for word in words for part in (word, word.partition("=")[2]) if (place := _config(part, folders, root))
    ]
    queue = [*named, *_named(sources, root), *(_listed(root) if any("hydra" in file.text for file in sources) else ())]
    while queue and len(found) < MAX_FILES:
        path = queue.pop(0)
        if path in found:
            continue
        try:
            found[path] = read_text(path)
        except Unreadable:
            continue
        here = [os.path.dirname(path), *folders]
        queue.extend(place for name in _MENTIONED.findall(found[path].text) if (place := _config(name, here, root)))
    return tuple(found.values())


def _config(name: str, folders: list[str], root: str) -> str | None:
    return _place(name, folders, root) if name and len(name) < 300 and kind_of(name) else None


def names_file(node: ast.AST) -> str | None:
    """The configuration file that a string literal names; None for any other node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 300:
        return node.value if kind_of(node.value) and not node.value.startswith(".") else None
    return None


def _named(sources: tuple[SourceFile, ...], root: str) -> Iterator[str]:
    for file in sources:
        for node in file.walk():
            name = names_file(node)
            folders = [os.path.dirname(file.path), root]
            place = _place(name, folders, root) if name else None
            if place:
                yield place
            elif name is None and isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _in_folder(node.value, folders, root)


def _in_folder(name: str, folders: list[str], root: str) -> Iterator[str]:
    """The files of YAML and TOML in a folder that a string literal names; data lies in JSON too."""
    if not _FOLDER.fullmatch(name):
        return
    for path in dict.fromkeys(os.path.realpath(os.path.join(one, name)) for one in folders):
        if is_inside(path, root) and path != root and os.path.isdir(path):
            for one in _entries(path):
                if _is_wanted(one) and one.endswith((".yaml", ".yml", ".toml")):
                    yield from _real(os.path.join(path, one), root)


def _place(name: str, folders: list[str], root: str) -> str | None:
    """The file that a name means, tried from several folders, and by its last part in the folders of configurations."""
    if "\x00" in name:
        return None
    name = name.replace("\\", "/")
    last = name.rpartition("/")[2]
    tries = [os.path.join(folder, name) for folder in folders]
    tries += [os.path.join(root, folder, last) for folder in ("", *_FOLDERS)]
    for path in tries:
        real = os.path.realpath(path)
        if is_inside(real, root) and os.path.isfile(real):
            return real
    return None


def _listed(root: str) -> Iterator[str]:
    """Files with well-known names at the root, and every one in the folders of configurations."""
    for name in _entries(root):
        path = os.path.join(root, name)
        if _is_wanted(name) and (_KNOWN.fullmatch(os.path.splitext(name)[0]) or kind_of(name) == COMMAND):
            yield from _real(path, root)
    budget = _MAX_ENTRIES
    for folder in _FOLDERS:
        top = os.path.join(root, folder)
        for here, folders, names in os.walk(top):
            if here[len(top) :].count(os.sep) >= _DEPTH - 1:
                folders.clear()
            folders.sort()
            budget -= len(names) + len(folders)
            if budget < 0:
                return
            for name in sorted(names):
                if _is_wanted(name):
                    yield from _real(os.path.join(here, name), root)


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MAX_ENTRIES]
    except OSError:
        return []


def _is_wanted(name: str) -> bool:
    return kind_of(name) is not None and name not in _OTHERS


def _real(path: str, root: str) -> Iterator[str]:
    real = os.path.realpath(path)
    if is_inside(real, root) and os.path.isfile(real):
        yield real
