"""An argument of a call that takes `**options`: changed or added where the options are written, in a file or a dictionary."""

from __future__ import annotations

import ast

from explainer.fix.setting.choice import has_value
from explainer.fix.setting.edit import add_key, set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import dictionaries_behind, documents_behind, members_behind
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import INI, Code, Setting


def set_in_options(call: ast.Call, argument: str, value: object, file: SourceFile, program: Program) -> Edit | None:
    """The edit that gives a call an argument through its one `**options`; None where it has that, or where they are not known.

    Example: for `Trainer(**cfg["trainer"])`, a line `inference_mode: false` in the section `trainer` of the file.
    """
    mappings = [one.value for one in call.keywords if one.arg is None]
    if len(mappings) != 1:
        return None
    written = members_behind(mappings[0], argument, file, program)
    if written:
        one = written[0]
        is_known = len(written) == 1 and not isinstance(one.value, Code) and not has_value(one, value)
        is_known = is_known and _can_hold(one, value)
        edit = set_value(one, value) if is_known else None
        return edit if isinstance(edit, Edit) else None
    for last in reversed(_entries(mappings[0], file, program)):
        if not _can_hold(last, value):
            return None
        edit = add_key(last, argument, value)
        if isinstance(edit, Edit):
            return edit
    return None


def _can_hold(one: Setting, value: object) -> bool:
    """Whether a mapping hands a value on as what it is: a section of INI makes text of it, and "false" is true."""
    return one.kind != INI or isinstance(value, str)


def _entries(mapping: ast.expr, file: SourceFile, program: Program) -> list[Setting]:
    """The entries of the one place in which a mapping is written, in the order of the text."""
    sections = documents_behind(mapping, file, program)
    made = dictionaries_behind(mapping, file, program)
    if len(sections) + len(made) != 1:
        return []
    if sections:
        document, path, group = sections[0]
        return [one for one in document.settings if one.path[:-1] == path and one.group == group]
    where, node = made[0]
    values = node.values if isinstance(node, ast.Dict) else [one.value for one in node.keywords]
    spans = {where.span(one) for one in values}
    return [one for one in read_python(where) if one.span in spans]
