"""Edits of one setting: another value, another key, gone, a new one beside it. All other characters stay.

Each gives an `Edit`, or, as a string, why there is none. What comes out is loaded again and compared with what went in: it
differs in that setting only, or there is no edit.
"""

from __future__ import annotations

from explainer.fix.setting.check import check_edit
from explainer.fix.setting.write import write_key, write_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.setting.ini import read_value
from explainer.source.setting.setting import (
    COMMAND,
    IN_CODE,
    INI,
    JSON,
    TOML,
    YAML,
    Document,
    Setting,
    read_document,
    read_settings,
)

_COLLECTION = (dict, list)


def set_value(setting: Setting, new: object) -> Edit | str:
    """The edit that gives a setting another value, in the style of the old one: quotes, `True` or `true` or `yes`.

    Example: `set_value(setting, False)` on `inplace: yes` writes `no`.
    """
    fault = setting.hold or _ambiguity(setting)
    if fault:
        return f"{_named(setting)} cannot be set: {fault}"
    if isinstance(setting.value, _COLLECTION) and ("#" in setting.raw or "\n" in setting.raw):
        return f"{_named(setting)} cannot be set: it is written over several lines"
    if setting.value == new and type(setting.value) is type(new):
        return f"{_named(setting)} has that value"
    text = write_value(new, setting)
    if text is None:
        return f"{_named(setting)} cannot be set: {new!r} cannot be written there"
    change = ("set", setting.path, _as_read(new, text, setting))
    start, end = setting.span
    if start == end:  # `key:` without a value, a flag alone
        text = f" {text}"
    return check_edit(setting, _edit(setting, start, end, text), change)


def rename_key(setting: Setting, new: str) -> Edit | str:
    """The edit that gives a setting another name; its value moves along."""
    fault = _ambiguity(setting)
    if fault is None and setting.key is None:
        fault = "its key is no plain one"
    if fault is None and any(one.name == new for one in _siblings(setting)):
        fault = f"`{new}` is there already"
    if fault:
        return f"{_named(setting)} cannot be renamed: {fault}"
    assert setting.key is not None
    start, end = setting.key
    text = write_key(new, setting.file.text[start:end], setting.kind)
    return check_edit(setting, _edit(setting, start, end, text), ("rename", setting.path, new))


def remove(setting: Setting) -> Edit | str:
    """The edit that takes a setting out, with its line where that holds nothing else."""
    fault = _ambiguity(setting)
    if fault is None and setting.key is None:
        fault = "its key is no plain one"
    if fault is None and setting.kind == YAML and not setting.is_flow and len(_siblings(setting)) == 1:
        fault = "it is the only key of its block"
    span = None if fault else _whole(setting)
    if fault is None and span is None:
        fault = "its place is shared with something else"
    if span is None:
        return f"{_named(setting)} cannot be removed: {fault}"
    new = "pass" if setting.kind in IN_CODE and span == setting.key else ""
    return check_edit(setting, _edit(setting, *span, new), ("remove", setting.path, None))


def add_key(sibling: Setting, name: str, value: object) -> Edit | str:
    """The edit that puts a new setting after another one, laid out as that one is."""
    fault = _ambiguity(sibling)
    if fault is None and sibling.key is None:
        fault = "its key is no plain one"
    if fault is None and any(one.name == name for one in _siblings(sibling)):
        fault = f"`{name}` is there already"
    if fault is None and (sibling.kind == YAML and sibling.hold and "`*" not in sibling.hold):
        fault = sibling.hold
    text = None if fault else write_value(value, sibling, is_new=True)
    if fault is None and text is None:
        fault = f"{value!r} cannot be written there"
    if fault or text is None:
        return f"nothing can be added after {_named(sibling)}: {fault}"
    at, new = _addition(sibling, name, text)
    change = ("add", (*sibling.path[:-1], name), _as_read(value, text, sibling))
    return check_edit(sibling, _edit(sibling, at, at, new), change)


def _as_read(new: object, text: str, setting: Setting) -> object:
    """A new value as its file gives it back: INI has text alone, in which "no" and False are one."""
    return read_value(text) if setting.kind == INI else new


def _edit(setting: Setting, start: int, end: int, new: str) -> Edit:
    return Edit(file=setting.file.path, start=start, end=end, new=new)


def _named(setting: Setting) -> str:
    return f"`{'.'.join(setting.path)}` (line {setting.line})"


def _document(setting: Setting) -> Document:
    if isinstance(setting.file, SourceFile):
        return Document(file=setting.file, kind="python", settings=read_settings(setting.file))
    return read_document(setting.file)


def _siblings(setting: Setting) -> list[Setting]:
    return _document(setting).siblings(setting)


def _ambiguity(setting: Setting) -> str | None:
    """Why it is not clear which value counts."""
    document = _document(setting)
    if document.fault:
        return document.fault
    if setting.kind not in IN_CODE:
        for depth in range(1, len(setting.path) + 1):
            if len(document.at(setting.path[:depth], setting.group)) > 1:
                return f"the key `{setting.path[depth - 1]}` stands twice"
    return None


def _whole(setting: Setting) -> tuple[int, int] | None:
    """The characters of a setting with what separates it from the others."""
    if setting.kind == COMMAND:
        return _whole_flag(setting)
    if (setting.is_flow and setting.kind in (YAML, JSON, TOML)) or setting.kind in IN_CODE:
        return _whole_member(setting)
    return _whole_lines(setting)


def _whole_lines(setting: Setting) -> tuple[int, int] | None:
    assert setting.key is not None
    file = setting.file
    first = file.line_start(setting.line)
    end = setting.span[1]
    last = end - 1 if file.text[end - 1 : end] == "\n" else end
    past = file.line_start(file.line_of(last) + 1)
    rest = file.text[end:past] if end < past else ""
    lead = file.text[first : setting.key[0]]
    if rest.strip() and not rest.strip().startswith(("#", ";") if setting.kind == INI else "#"):
        return None
    if lead.strip() and setting.kind == YAML:  # `- key: value`: the next key takes its place after the dash
        following = [one for one in _siblings(setting) if one.span[0] > end and one.key]
        return (setting.key[0], following[0].key[0]) if following and following[0].key else None
    if setting.kind == TOML:  # a dotted key begins before its last part
        return first, past
    return None if lead.strip() else (first, past)


def _whole_member(setting: Setting) -> tuple[int, int] | None:
    """A member of a mapping in braces, or an argument: with the comma that follows it, or else that before it."""
    text = setting.file.text
    start, end = setting.key[0] if setting.key else setting.span[0], setting.span[1]
    if setting.kind in ("default", "assigned", "argparse"):
        return None
    after = end
    while after < len(text) and text[after] in " \t":
        after += 1
    line = setting.file.line_start(setting.line)
    if text[after : after + 1] == ",":
        after += 1
        past = after
        while past < len(text) and text[past] in " \t":
            past += 1
        if not text[line:start].strip() and text[past : past + 1] in ("\r", "\n"):
            return line, setting.file.line_start(setting.file.line_of(past) + 1)
        return start, past
    before = start
    while before and text[before - 1] in " \t\r\n":
        before -= 1
    if text[before - 1 : before] == ",":
        return before - 1, end
    return (start, end) if text[before - 1 : before] in "{(" else None


def _whole_flag(setting: Setting) -> tuple[int, int] | None:
    """A flag with its value; the continued line that holds nothing else goes with it."""
    assert setting.key is not None
    text = setting.file.text
    start, end = setting.key[0], setting.span[1]
    line, past = setting.file.line_start(setting.line), setting.file.line_start(setting.file.line_of(end) + 1)
    if not text[line:start].strip() and text[end:past].strip() == "\\":
        return line, past
    before = start
    while before and text[before - 1] == "+":  # Hydra's `+key=value`
        before -= 1
    while before and text[before - 1] in " \t":
        before -= 1
    if not text[before - 1 : before].strip() and not text[end:past].strip():  # the last line of a command
        head = text[:before].rstrip("\r\n")
        return (len(head.rstrip("\\").rstrip(" \t")), end) if head.endswith("\\") else None
    return before, end


def _addition(sibling: Setting, name: str, value: str) -> tuple[int, str]:
    """Where a new setting goes, and its text."""
    assert sibling.key is not None
    file, (start, after) = sibling.file, sibling.key
    text = file.text
    line = file.line_start(sibling.line)
    is_first = not text[line:start].strip()
    if sibling.kind == COMMAND:
        flag = f"--{name}" if text[start:after].startswith("--") else ".".join((*sibling.path[:-1], name))
        entry = f"{flag}{'=' if text[after : after + 1] == '=' else ' '}{value}"
        return sibling.span[1], f" \\{file.newline}{text[line:start]}{entry}" if is_first else f" {entry}"
    between = text[after : sibling.span[0]]
    if sibling.kind == YAML:
        between = ": "
    if sibling.kind == INI and not sibling.raw[:1].strip() and not between[-1:].isspace():  # its value stands below
        between += " "
    entry = f"{write_key(name, text[start:after], sibling.kind)}{between}{value}"
    if sibling.is_flow:
        gap = f",{file.newline}{text[line:start]}" if is_first else ", "
        return sibling.span[1], f"{gap}{entry}"
    indent = " " * (start - line) if sibling.kind == YAML else text[line : start - len(text[line:start].lstrip())]
    if sibling.kind == TOML:
        indent = text[line:start]  # with the parts of a dotted key
    end = file.line_start(file.line_of(max(sibling.span[1] - 1, sibling.span[0])) + 1)
    lead = "" if text[end - 1 : end] in ("\n", "\r") else file.newline
    return end, f"{lead}{indent}{entry}{'' if lead else file.newline}"
