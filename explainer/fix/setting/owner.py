"""Where a new setting of an owner goes: into the file or the dictionary behind its `**options`, else among its arguments.

Where a parser makes it, into the file in which its other settings stand: `TrlParser((Script, SFTConfig)).parse_args_and_config()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.setting.edit import add_key
from explainer.fix.setting.spread import set_in_options
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.setting.flow import documents_behind
from explainer.source.setting.owner import is_owner
from explainer.source.setting.python import read_python
from explainer.source.setting.setting import COMMAND, IN_CODE, INI, KEYWORD, Setting, read_document

_PARSER = "Parser"


def setting_in_call(call: ast.Call, name: str, value: object, file: SourceFile, program: Program) -> Edit | None:
    """The edit that gives a call a setting which is not written anywhere."""
    last = _last_given(call, file, program)
    edit = add_key(last, name, value) if last is not None else None
    if isinstance(edit, Edit):
        return edit
    spread = set_in_options(call, name, value, file, program)
    if spread is not None:
        return spread
    return add_argument(file, call, f"{name}={value!r}") if call.args or call.keywords else None


def settings_of_parser(owners: Sequence[str], known: Sequence[str], program: Program) -> Iterator[Setting]:
    """The settings of an owner that a parser reads: those of `known` in files and scripts, one for each place in which they stand."""
    if next(parsers_of(owners, program), None) is None:
        return
    places = set()
    for one in (one for name in known for document in program.documents() for one in document.named(name)):
        place = (one.file.path, one.group, one.path[:-1])
        if place not in places:
            places.add(place)
            yield one


def parsers_of(owners: Sequence[str], program: Program) -> Iterator[tuple[SourceFile, ast.Call]]:
    """The calls that make a parser of an owner."""
    for file in program.parsed():
        calls = (node for node in file.walk() if isinstance(node, ast.Call))
        yield from ((file, one) for one in calls if _is_parsed(one, owners, file, program))


def key_of_mapping(setting: Setting) -> tuple[int, int] | None:
    """Where the key of the mapping stands that a setting is in: `training:`, `[training]`; None of one that has no name."""
    if len(setting.path) < 2 or setting.kind in IN_CODE or setting.kind == COMMAND:
        return None
    held = read_document(setting.file).at(setting.path[:-1], setting.group)
    if held:
        return held[0].key
    for line in range(setting.line, 0, -1):  # a table of TOML is no setting of its own
        header = setting.file.line(line).partition("#")[0].strip()
        if header.startswith("["):
            start = setting.file.line_start(line)
            return (start, start + len(header)) if setting.path[-2] in header.strip("[]").split(".") else None
    return None


def _is_parsed(node: ast.Call, owners: Sequence[str], file: SourceFile, program: Program) -> bool:
    """Whether a parser is given an owner, alone or among others."""
    if not (program.names(file).qualified(node.func) or "").endswith(_PARSER):
        return False
    given = [*node.args, *(one.value for one in node.keywords)]
    classes = [each for one in given for each in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    return any(is_owner(one, owners, file, program) for one in classes)


def _last_given(call: ast.Call, file: SourceFile, program: Program) -> Setting | None:
    """The setting after which a new one goes: the last entry of the file behind `**options`, else the last argument."""
    for keyword in call.keywords:
        if keyword.arg is None:
            for document, path, group in documents_behind(keyword.value, file, program):
                own = [one for one in document.settings if one.path[:-1] == path and one.group == group]
                # A section of INI hands on text, in which False is "false" and true.
                if own and not own[-1].hold and document.kind != INI:
                    return own[-1]
    given = {file.span(one.value) for one in call.keywords if one.arg is not None}
    own = [one for one in read_python(file) if one.span in given and one.kind == KEYWORD]
    return own[-1] if own else None
