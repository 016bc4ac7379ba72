"""Two pieces of a program that do the same to two splits of the data, but for what cuts the samples to a length in one of them.

`tokenizer(rows["text"], truncation=True)` and `tokenizer(rows["text"])` are twins, and so are two functions that differ in
`ids = ids[:MAX_LEN]`. Names may differ where they are bound there, or in the words for the split.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from explainer.fix.codemod import edit_of, insert_after, insert_before, lines_of
from explainer.fix.text.rewrite import add_argument, put_method
from explainer.model.patch import Edit
from explainer.source.data.split_side import without_side
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import all_parameters, bounds_of

_SETTINGS = re.compile(r"truncat\w*|max_?(?:seq(?:uence)?_?)?(?:len(?:gth)?|tokens)|block_size|fn_kwargs|crop\w*")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_IGNORED = frozenset({"ctx", "type_comment", "kind", "returns", "annotation"})


@dataclass(frozen=True, slots=True)
class Place:
    """A node in its file."""

    file: SourceFile
    node: ast.AST


@dataclass(slots=True)
class Twin:
    """Compares two pieces; `edits` give the other what the one alone has, `places` are where."""

    program: Program
    cut: SourceFile
    uncut: SourceFile
    cuts: Collection[ast.expr]
    edits: list[Edit] = field(default_factory=list)
    places: list[ast.AST] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def match(self, one: object, other: object) -> bool:
        """Whether two nodes, lists of nodes or plain values are alike but for the cut."""
        if isinstance(one, list) and isinstance(other, list):
            return self._match_lists(one, other)
        if not isinstance(one, ast.AST) or not isinstance(other, ast.AST):
            return one == other
        if isinstance(one, ast.Subscript) and isinstance(other, ast.expr) and self._is_bare(one, other):
            return self.match(one.value, other) and self._put(other, self._sliced(one, other))
        if isinstance(one, ast.Call) and isinstance(other, ast.expr) and not isinstance(other, ast.Call):
            return self._match_partial(one, other)
        return type(one) is type(other) and self._match_kind(one, other)

    def _match_kind(self, one: ast.AST, other: ast.AST) -> bool:
        """The same for two nodes of one kind."""
        if isinstance(one, ast.Call) and isinstance(other, ast.Call):
            return self._match_calls(one, other)
        if isinstance(one, ast.Name) and isinstance(other, ast.Name):
            return self._match_names(one.id, other.id)
        if isinstance(one, ast.arg) and isinstance(other, ast.arg):
            return self._match_names(one.arg, other.arg)
        if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
            return _alike(one.value, other.value)
        if isinstance(one, ast.Attribute) and isinstance(other, ast.Attribute):
            return _alike(one.attr, other.attr) and self.match(one.value, other.value)
        return all(self.match(getattr(one, name), getattr(other, name)) for name in one._fields if name not in _IGNORED)

    def _is_bare(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether the one is a cut and the other none, also not another one."""
        return one in self.cuts and not (isinstance(other, ast.Subscript) and isinstance(other.slice, ast.Slice))

    def _match_names(self, one: str, other: str) -> bool:
        """Whether names stand for each other throughout; a name that is not bound here may differ in its split alone."""
        known = self._names.setdefault(one, other)
        return known == other and sum(value == other for value in self._names.values()) == 1

    def _match_lists(self, one: Sequence[object], other: Sequence[object]) -> bool:
        """Whether lists are alike but for statements that cut what they bind."""
        at, last = 0, None
        for each in one:
            here = other[at] if at < len(other) else None
            if isinstance(each, ast.stmt) and self._is_own_cut(each) and not self._is_own_cut(here):
                if not self._insert(each, last, here):
                    return False
                continue
            if here is None or not self.match(each, here):
                return False
            last, at = here if isinstance(here, ast.stmt) else None, at + 1
        return at == len(other)

    def _insert(self, statement: ast.stmt, last: object, following: object) -> bool:
        """Puts a statement that only the one has behind the last that both have, else before the first."""
        near = last if isinstance(last, ast.stmt) else following
        if not isinstance(near, ast.stmt) or self._text(statement, near) is None:
            return False
        put = insert_after if near is last else insert_before
        return self._put(near, put(self.uncut, near, lines_of(self.cut, statement)))

    def _is_own_cut(self, node: object) -> bool:
        """Whether a statement does nothing but cut what it binds: `ids = ids[:n]`."""
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.value, ast.Subscript):
            return False
        return node.value in self.cuts and ast.unparse(node.targets[0]) == ast.unparse(node.value.value)

    def _match_calls(self, one: ast.Call, other: ast.Call) -> bool:
        if len(one.args) != len(other.args) or not self._match_functions(one.func, other.func):
            return False
        if not all(self.match(first, second) for first, second in zip(one.args, other.args, strict=True)):
            return False
        given = {key.arg: key for key in other.keywords}
        for key in one.keywords:
            if key.arg in given:
                same = given.pop(key.arg)
                if not self._match_values(key, same):
                    return False
            elif key.arg is None or not _SETTINGS.fullmatch(key.arg) or not self._add(key, other):
                return False
        return not given

    def _match_values(self, one: ast.keyword, other: ast.keyword) -> bool:
        """Whether the same argument is alike, or says in the other that nothing is cut: `truncation=False`."""
        is_off = isinstance(other.value, ast.Constant) and other.value.value in (None, False)
        is_on = not isinstance(one.value, ast.Constant) or one.value.value not in (None, False)
        if is_off and is_on and _SETTINGS.fullmatch(one.arg or ""):
            return self._put(other.value, self._replaced(one.value, other.value))
        return self.match(one.value, other.value)

    def _match_functions(self, one: ast.expr, other: ast.expr) -> bool:
        """Whether two calls run the same, or the same but for the split in its name."""
        if isinstance(one, ast.Name) and isinstance(other, ast.Name):
            return one.id == other.id or (_alike(one.id, other.id) and self._match_names(one.id, other.id))
        return self.match(one, other)

    def _match_partial(self, one: ast.Call, other: ast.expr) -> bool:
        """`partial(encode, max_len=64)` beside `encode`."""
        is_partial = self.program.names(self.cut).is_call(one, "functools.partial") and len(one.args) == 1
        is_set = bool(one.keywords) and all(_SETTINGS.fullmatch(key.arg or "") for key in one.keywords)
        if not is_partial or not is_set or not self.match(one.args[0], other):
            return False
        return self._put(other, self._replaced(one, other))

    def _add(self, key: ast.keyword, call: ast.Call) -> bool:
        text = self._text(key.value, call)
        return text is not None and self._put(call, add_argument(self.uncut, call, f"{key.arg}={text}"))

    def _sliced(self, one: ast.Subscript, other: ast.expr) -> Edit | None:
        text = self._text(one.slice, other)
        return put_method(self.uncut, other, f"[{text}]") if text is not None else None

    def _replaced(self, one: ast.expr, other: ast.expr) -> Edit | None:
        text = self._text(one, other)
        return edit_of(self.uncut, other, text) if text is not None else None

    def _put(self, node: ast.AST, edit: Edit | None) -> bool:
        if edit is not None:
            self.places.append(node)
            self.edits.append(edit)
        return edit is not None

    def _text(self, node: ast.AST, near: ast.AST) -> str | None:
        return text_at(Place(self.cut, node), Place(self.uncut, near), self.program)


def text_at(what: Place, near: Place, program: Program) -> str | None:
    """An expression as it is written, where all of its names mean the same at another place; else None."""
    for one in walk(what.node):
        if isinstance(one, ast.Name) and not _means_same(one.id, what, near, program):
            return None
    return what.file.segment(what.node)


def _means_same(name: str, what: Place, near: Place, program: Program) -> bool:
    ours, theirs = (scope_of_name(one, name) for one in (what, near))
    if name == "self":
        owners = [program.names(one.file).class_of(one.node) for one in (what, near)]
        return owners[0] is owners[1] or _has_attributes(what, owners[1], program.names(near.file))
    if isinstance(ours, ast.Module) and isinstance(theirs, ast.Module):
        names, others = program.names(what.file), program.names(near.file)
        full = names.imports.get(name, f"{names.module}.{name}")
        is_own = what.file is near.file
        return is_own or others.imports.get(name) == full or hasattr(builtins, name)
    return ours is theirs or (isinstance(ours, _FUNCTIONS) and isinstance(theirs, _FUNCTIONS))  # bound in both twins


def scope_of_name(place: Place, name: str) -> ast.AST | None:
    """The function, or the module, that binds a name at a place."""
    for above in place.file.around(place.node):
        if isinstance(above, ast.Module):
            return above
        if isinstance(above, _FUNCTIONS):
            bound = {one.name for one in bounds_of(above)} if not isinstance(above, ast.Lambda) else set()
            if name in bound | all_parameters(above):
                return above
    return None


def _has_attributes(what: Place, owner: ast.ClassDef | None, names: Names) -> bool:
    read = {dotted_name(one) or "" for one in walk(what.node) if isinstance(one, ast.Attribute)}
    return owner is not None and all(
        names.attribute_value(owner, one.removeprefix("self.")) is not None for one in read if one.startswith("self.")
    )


def _alike(one: object, other: object) -> bool:
    """Whether values are the same, or words that differ in the split alone."""
    if one == other and type(one) is type(other):
        return True
    return isinstance(one, str) and isinstance(other, str) and without_side(one) == without_side(other)
