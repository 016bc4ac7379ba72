"""A length, or the wish to cut, that a program gives for one split and leaves out for the other: in a call, or in a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import edit_of
from explainer.fix.data.split_twin import Uneven
from explainer.fix.data.twin import Place, scope_of_name, text_at
from explainer.fix.setting.edit import add_key, set_value
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.data.length_cut import LengthCut, fits, is_off, length_of
from explainer.source.data.split_side import side_of, sides_of_word
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import INI, Document, Setting, read_document
from explainer.source.text import TextFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call, default_of
from explainer.source.value.resolve import resolver_of

_CONDITIONS = (ast.If, ast.IfExp)
Parameter = tuple[SourceFile, Function, str]
Given = tuple[SourceFile, ast.Call, ast.expr | None]


def given_for_both(cut: LengthCut, table: int, program: Program) -> Iterator[Uneven]:
    """The edits that give every call what those for the other split give, for each parameter that the cut hangs on."""
    for file, function, name in dict.fromkeys(_parameters(cut, program)):
        calls = _calls(file, function, name, program)
        default = default_of(function, name)
        cutting = [one for one in calls if _cuts(one[2], default, table, file, program, where=one[0])]
        for where, call, value in (one for one in calls if one not in cutting):
            side = side_of(call, where, program)
            others = [one for one in cutting if side_of(one[1], one[0], program) not in (None, side)]
            texts = {_text(one, default, Place(where, call), program) for one in others} if side is not None else set()
            text = next(iter(texts)) if len(texts) == 1 else None
            is_open = any(isinstance(one, ast.Starred) for one in call.args) or any(
                one.arg is None for one in call.keywords
            )
            if text is None or (value is None and is_open):
                continue
            edit = add_argument(where, call, f"{name}={text}") if value is None else edit_of(where, value, text)
            yield Uneven((edit,), where, call, cut)


def written_for_both(cut: LengthCut, program: Program) -> Iterator[tuple[Edit, TextFile, tuple[int, int]]]:
    """The edits for configuration files in which one split's section has the length, and the other's has not."""
    for bound in cut.bound:
        for one in settings_behind(bound, cut.file, program):
            if not isinstance(one.file, SourceFile) and len(one.path) > 1 and sides_of_word(one.path[-2]):
                yield from _in_sections(one, read_document(one.file))


def _in_sections(setting: Setting, document: Document) -> Iterator[tuple[Edit, TextFile, tuple[int, int]]]:
    own = sides_of_word(setting.path[-2])
    for section in document.settings:
        is_beside = section.path[:-1] == setting.path[:-2] and section.group == setting.group
        other = sides_of_word(section.name)
        if (
            not is_beside
            or not isinstance(section.value, dict)
            or len(other) != 1
            or other == own
            or document.kind == INI
        ):
            continue
        entries = [one for one in document.settings if one.path[:-1] == section.path and one.group == section.group]
        present = next((one for one in entries if one.name == setting.name), None)
        if present is not None and present.value not in (None, False):
            continue
        edit = set_value(present, setting.value) if present is not None else None
        if present is None and entries:
            edit = add_key(entries[-1], setting.name, setting.value)
        if isinstance(edit, Edit):
            yield edit, section.file, section.key or section.span


def _parameters(cut: LengthCut, program: Program) -> Iterator[Parameter]:
    """The parameters that say whether, or to which length, a cut is made, that of the constructor for an attribute."""
    file = cut.file
    tests = [one.test for one in file.around(cut.node) if isinstance(one, _CONDITIONS)]
    for one in (each for bound in (*cut.bound, *tests) for each in walk(bound)):
        name = dotted_name(one) if isinstance(one, (ast.Name, ast.Attribute)) else None
        owner = program.names(file).class_of(one) if name is not None and name.startswith("self.") else None
        if owner is not None and name is not None:
            value = program.names(file).attribute_value(owner, name.removeprefix("self."))
            one, name = (value, value.id) if isinstance(value, ast.Name) else (one, None)
        scope = scope_of_name(Place(file, one), name) if name is not None else None
        is_function = isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef))
        if is_function and name is not None and name in all_parameters(scope) and not sides_of_word(name):  # type: ignore[arg-type]
            yield file, scope, name  # type: ignore[misc]


def _calls(file: SourceFile, function: Function, name: str, program: Program) -> list[Given]:
    """The calls of a function with what each gives a parameter."""
    found = []
    for where, call in resolver_of(program).calls_of(function, file):
        value = bind_call(call, function, Value(call, where)).get(name)
        found.append((where, call, value.node if value is not None else None))
    return found


def _cuts(
    value: ast.expr | None,
    default: ast.expr | None,
    table: int,
    file: SourceFile,
    program: Program,
    *,
    where: SourceFile,
) -> bool:
    """Whether an argument, or the default for it, makes for a cut that the table can hold."""
    node, place = (value, where) if value is not None else (default, file)
    if node is None or is_off(node):
        return False
    if isinstance(node, ast.Constant) and node.value is True:
        return True
    length = length_of(node, place, program)
    return length <= table if length is not None else fits(node, table, place, program, is_named=True)


def _text(given: Given, default: ast.expr | None, near: Place, program: Program) -> str | None:
    """What a call gives, as it can be written at another; the default where it is a plain value."""
    file, _, value = given
    if value is not None:
        return text_at(Place(file, value), near, program)
    return ast.unparse(default) if isinstance(default, ast.Constant) else None
