"""Takes several settings out at once, wherever they are written; commas and lines that they share go once."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from explainer.fix.codemod import remove_statement
from explainer.fix.setting.edit import remove, set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.setting.setting import ASSIGNED, IN_CODE, YAML, Setting, read_document

_CLOSING = (")", "}", "]")


def remove_together(settings: Sequence[Setting]) -> list[Edit] | str:
    """The edits that take settings out; where one cannot go, its value is written as none."""
    found: list[Edit | str] = [
        set_value(one, None) if _empties(one, settings) else _removed(one) for one in settings
    ]  # fmt: skip
    found = [set_value(one, None) if isinstance(edit, str) else edit for one, edit in zip(settings, found, strict=True)]
    faults = [one for one in found if isinstance(one, str)]
    if faults:
        return faults[0]
    texts = {one.file.path: one.file.text for one in settings}
    return _merged([one for one in found if isinstance(one, Edit)], texts)


def _removed(setting: Setting) -> Edit | str:
    if setting.kind == ASSIGNED and isinstance(setting.file, SourceFile):  # `options["clip"] = 1.0`
        for node in setting.file.walk():
            if isinstance(node, ast.Assign) and setting.file.span(node.value) == setting.span:
                return remove_statement(setting.file, node)
    return remove(setting)


def _empties(setting: Setting, settings: Sequence[Setting]) -> bool:
    """Whether a block of YAML would have no key left, which is none rather than an empty mapping."""
    if setting.kind != YAML or setting.is_flow or setting.kind in IN_CODE:
        return False
    gone = {one.path for one in settings if one.file.path == setting.file.path and one.group == setting.group}
    return all(one.path in gone for one in read_document(setting.file).siblings(setting))


def _merged(edits: list[Edit], texts: dict[str, str]) -> list[Edit]:
    """Edits that take out the same comma become one; at the end of a list the comma before it goes as well."""
    merged: list[Edit] = []
    for one in sorted(dict.fromkeys(edits), key=lambda each: (each.file, each.start)):
        last = merged[-1] if merged else None
        is_shared = last is not None and last.file == one.file and one.start < last.end and not one.new and not last.new
        if last is None or not is_shared:
            merged.append(one)
            continue
        text, start, end = texts[one.file], min(last.start, one.start), max(last.end, one.end)
        head = text[:start].rstrip()
        if text[end:].lstrip()[:1] in _CLOSING and head.endswith(","):
            start = len(head) - 1
        merged[-1] = replace(last, start=start, end=end)
    return merged
