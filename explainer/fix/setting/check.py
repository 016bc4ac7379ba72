"""Loads a file again after an edit: it must parse, and differ in the one setting that was meant."""

from __future__ import annotations

import copy
from typing import Any

from explainer.fix.splice import splice
from explainer.model.patch import Edit
from explainer.source.file import SourceFile, parse_text
from explainer.source.setting.ini import with_defaults
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import COMMAND, INI, Document, Path, Setting, leaves, read_document
from explainer.source.text import TextFile, Unreadable, make_text

Change = tuple[str, Path, object]


def check_edit(setting: Setting, edit: Edit, change: Change) -> Edit | str:
    """The edit, or why it is none: the result does not load, or more than that setting differs."""
    file = setting.file
    text = splice(file.text, [edit])
    if text is None:
        return "the edit reaches outside of the file"
    if isinstance(file, SourceFile):
        fault = _check_python(file, text, edit)
    else:
        fault = _check_document(setting, file, text, change)
    return f"{'.'.join(setting.path)}: {fault}" if fault else edit


def _check_python(file: SourceFile, text: str, edit: Edit) -> str | None:
    """Every setting that stands outside of the edit must be there as before."""
    if not file.path.endswith(".py"):  # the cells of a notebook are parsed one by one when they are patched
        return None
    tree, fault = parse_text(text)
    if tree is None:
        return f"the result {fault}"
    shift = len(edit.new) - (edit.end - edit.start)
    wanted = {
        (one.kind, one.owner, one.name, one.raw, one.span[0] + (shift if one.span[0] >= edit.end else 0))
        for one in read_python(file)
        if one.span[1] <= edit.start or one.span[0] >= edit.end
    }
    after = SourceFile(file.path, file.data, text, file.encoding, tree)
    got = {(one.kind, one.owner, one.name, one.raw, one.span[0]) for one in read_python(after)}
    return "more than this setting would change" if wanted - got and not _is_key(file, edit) else None


def _is_key(file: SourceFile, edit: Edit) -> bool:
    """Whether an edit only writes another key, which the value that follows it then has."""
    return any(one.key == (edit.start, edit.end) for one in read_python(file))


def _check_document(setting: Setting, file: TextFile, text: str, change: Change) -> str | None:
    try:
        after = read_document(make_text(file.path, file.encode(text)))
    except (Unreadable, UnicodeError) as error:
        return str(error)
    if after.fault:
        return f"the result {after.fault}"
    before = read_document(file)
    if setting.kind == COMMAND:
        wanted, flags = _flags(before, setting, change), [_flag(one) for one in after.settings]
        return None if sorted(wanted) == sorted(flags) else "more than this flag would change"
    trees, got = list(before.trees), list(after.trees)
    if setting.kind == INI:  # as the program sees its sections: a default of all of them is no setting of one
        trees, got = [with_defaults(before)], [with_defaults(after)]
    trees[setting.group] = _changed(copy.deepcopy(trees[setting.group]), change)
    if [sorted(leaves(one)) for one in trees] != [sorted(leaves(one)) for one in got]:
        return "more than this setting would change"
    return None


def _flag(one: Setting) -> tuple[int, str, str]:
    return one.group, ".".join(one.path), repr(one.value)


def _flags(before: Document, setting: Setting, change: Change) -> list[tuple[int, str, str]]:
    what, path, new = change
    found = [_flag(one) for one in before.settings if one is not setting and one.span != setting.span]
    name = ".".join(setting.path)
    if what == "set":
        found.append((setting.group, name, repr(new)))
    elif what == "rename":
        found.append((setting.group, str(new), repr(setting.value)))
    elif what == "add":
        found += [_flag(setting), (setting.group, ".".join(path), repr(new))]
    return found


def _changed(tree: Any, change: Change) -> Any:
    """The document as it is to be."""
    what, path, new = change
    owner = tree
    for part in path[:-1]:
        owner = owner[int(part)] if isinstance(owner, list) else owner[part]
    last: Any = int(path[-1]) if isinstance(owner, list) else path[-1]
    if what in ("set", "add"):
        owner[last] = new
    elif what == "rename":
        owner[str(new)] = owner.pop(last)
    elif what == "move":
        if isinstance(owner, list):  # of a mapping the keys have no order that a comparison sees
            owner.insert(int(str(new)), owner.pop(last))
    else:
        del owner[last]
    return tree
