"""Where a program compares the names of parameters with words of its own, and where these words are written."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import IN_CODE, Setting
from explainer.source.text import TextFile
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call
from explainer.source.value.resolve import resolver_of

STARTS, ENDS, IS, GLOB, HAS, FIRST, PART = "starts", "ends", "is", "glob", "has", "first", "part"
MATCH, SEARCH, FULL = "match", "search", "fullmatch"  # as the functions of `re`
_LISTS = frozenset({"named_parameters", "named_modules", "named_children"})
_COLLECTS = frozenset({"tuple", "list", "set", "sorted", "frozenset"})
_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTest:
    """A test of the names that one module lists: `owner` is the module, `how` the comparison, `words` what with."""

    file: SourceFile
    owner: ast.expr
    how: str
    words: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word as it is written, in the program or in its configuration; `start` is where its text begins.

    `is_escaped` where each backslash of it is written as two.
    """

    text: str
    file: TextFile
    start: int
    is_escaped: bool = False

    @property
    def span(self) -> tuple[int, int]:
        """Where it stands in its file."""
        return self.start, self.start + len(self.spelled(self.text))

    def spelled(self, text: str) -> str:
        """How another word is written in its place."""
        return _escaped(text) if self.is_escaped else text


def fits(name: str, word: str, how: str) -> bool:
    """Whether a test of one word takes a name."""
    if how == GLOB:
        return fnmatch.fnmatchcase(name, word)
    if how in (MATCH, SEARCH, FULL):
        try:
            return getattr(re, how)(word, name) is not None
        except re.error:
            return False
    if how in (FIRST, PART):
        return word in name.split(".")[: 1 if how == FIRST else None]
    if how == ENDS:
        return name.endswith(word)
    return name.startswith(word) if how == STARTS else word in name if how == HAS else name == word


def find_name_tests(program: Program) -> Iterator[NameTest]:
    """Every test of names in a loop, comprehension or filter over `named_parameters()`."""
    for file in program.parsed():
        for node in file.walk():
            for owner, name, inside in _loops(node):
                for one in inside:
                    for how, words in _tests(one, name, Value(one, file), program):  # type: ignore[arg-type]
                        yield NameTest(file=file, owner=owner, how=how, words=words)


def _loops(node: ast.AST) -> Iterator[tuple[ast.expr, str, list[ast.AST]]]:
    """The module whose names a loop goes through, what a name is called in it, and what is done with it."""
    if isinstance(node, ast.For):
        owner, name = _owner(node.iter), _first(node.target)
        if owner is not None and name:
            yield owner, name, list(node.body)
    elif isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
        for one in node.generators:
            owner, name = _owner(one.iter), _first(one.target)
            if owner is not None and name:
                yield owner, name, list(one.ifs)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "filter" and len(node.args) == 2:
        owner, test = _owner(node.args[1]), node.args[0]
        if owner is not None and isinstance(test, ast.Lambda) and test.args.args:
            yield owner, f"{test.args.args[0].arg}[0]", [test.body]


def _owner(node: ast.expr) -> ast.expr | None:
    """`model` of `model.named_parameters()`, also inside `list`, `sorted`, `reversed` and the like."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in _LISTS:
        return node.func.value
    return _owner(node.args[0]) if node.args and isinstance(node.func, ast.Name) else None


def _first(target: ast.expr) -> str:
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else None
    return first.id if isinstance(first, ast.Name) else ""


def _tests(node: ast.AST, name: str, value: Value, program: Program, depth: int = 0) -> Iterator[tuple[str, Value]]:
    """The comparisons of a name under a node, and in the function of the program that it is handed to."""
    for one in walk(node):
        if isinstance(one, ast.Compare) and len(one.ops) == 1:
            (right,) = one.comparators
            if ast.unparse(one.left) in _firsts_of(name) and isinstance(one.ops[0], (ast.Eq, ast.In)):
                yield FIRST, replace(value, node=right)
            elif ast.unparse(right) == f"{name}.split('.')" and isinstance(one.ops[0], ast.In):
                yield PART, replace(value, node=one.left)
            elif ast.unparse(one.left) == name and isinstance(one.ops[0], (ast.Eq, ast.In)):
                yield IS, replace(value, node=right)
            elif ast.unparse(right) == name and isinstance(one.ops[0], ast.In):
                yield HAS, replace(value, node=one.left)
        elif isinstance(one, ast.Call):
            yield from _called(one, name, value, program, depth)


def _called(node: ast.Call, name: str, value: Value, program: Program, depth: int) -> Iterator[tuple[str, Value]]:
    func, given = node.func, [ast.unparse(one) for one in node.args]
    method = func.attr if isinstance(func, ast.Attribute) else ""
    of_name = isinstance(func, ast.Attribute) and ast.unparse(func.value) == name
    if of_name and method in ("startswith", "endswith") and node.args:
        yield STARTS if method == "startswith" else ENDS, replace(value, node=node.args[0])
    elif isinstance(func, ast.Attribute) and method in (MATCH, SEARCH, FULL) and name in given[:2]:
        is_compiled = given[0] == name  # `pattern.search(name)`, else `re.search(pattern, name)`
        yield method, replace(value, node=func.value if is_compiled else node.args[0])
    elif (
        (dotted_name(func) or "").rpartition(".")[2] in ("fnmatch", "fnmatchcase")
        and given[:1] == [name]
        and len(given) > 1
    ):
        yield GLOB, replace(value, node=node.args[1])
    elif name in given and depth < 2:
        target = resolver_of(program).function_of(node, value)
        if target is not None:
            bound = bind_call(node, target[1], value)
            own = next((key for key, one in bound.items() if ast.unparse(one.node) == name), None)
            inside = Value(node, target[0], bound)
            for one in target[1].body if own is not None else ():
                yield from _tests(one, str(own), inside, program, depth + 1)


def _firsts_of(name: str) -> tuple[str, ...]:
    """How a program writes the part of a name before the first dot."""
    return f"{name}.split('.')[0]", f"{name}.split('.', 1)[0]", f"{name}.partition('.')[0]"


def words_of(value: Value, program: Program, depth: int = 0) -> list[Word] | None:
    """The words that an expression stands for, each where it is written; None where one of them is not seen."""
    node = value.node
    if depth > _DEPTH:
        return None
    if isinstance(node, ast.Constant):
        word = _in_code(node, value.file)
        return [word] if word is not None else None
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return _all([replace(value, node=one) for one in node.elts], program, depth)
    inner = _inner(node)
    if inner is not None:
        return words_of(replace(value, node=inner), program, depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        return _split(node, value, program, depth)
    behind = list(resolver_of(program).behind(value)) if isinstance(node, (ast.Name, ast.Attribute)) else []
    if behind:
        return _all(behind, program, depth) if len(behind) == 1 else None
    return _in_settings(value, program, depth)


def groups_of(value: Value, program: Program, depth: int = 0) -> list[list[Word]]:
    """The words that an expression stands for at a time: one list where there is one, else that of each caller or stage."""
    words = words_of(value, program, depth)
    if words or depth > _DEPTH:
        return [words] if words else []
    inner = _inner(value.node)
    if inner is not None:
        return groups_of(replace(value, node=inner), program, depth + 1)
    is_name = isinstance(value.node, (ast.Name, ast.Attribute))
    behind = list(resolver_of(program).behind(value)) if is_name else []
    if behind:
        return [each for one in behind for each in groups_of(one, program, depth + 1)]
    settings = [one for one in settings_behind(value.node, value.file, program) if one.kind not in IN_CODE]
    lists = [_elements(one, program) if isinstance(one.value, list) else [one] for one in settings]
    return [words for one in lists if (words := _written(one))]


def _inner(node: ast.expr) -> ast.expr | None:
    """What an expression only collects, or puts an end to: `tuple(words)`, `word + "."`, `f"{word}."`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.Constant):
        return node.left
    if isinstance(node, ast.JoinedStr) and node.values and isinstance(node.values[0], ast.FormattedValue):
        return node.values[0].value
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _COLLECTS and len(node.args) == 1:
        return node.args[0]
    if isinstance(node, ast.Call) and dotted_name(node.func) == "re.compile" and node.args:
        return node.args[0]
    return node.elt if isinstance(node, (ast.GeneratorExp, ast.ListComp)) else None


def _all(values: list[Value], program: Program, depth: int) -> list[Word] | None:
    found = [words_of(one, program, depth + 1) for one in values]
    return [one for each in found for one in each or ()] if found and None not in found else None


def _split(node: ast.Call, value: Value, program: Program, depth: int) -> list[Word] | None:
    """The words of `"stem,head".split(",")`."""
    assert isinstance(node.func, ast.Attribute)
    whole = words_of(replace(value, node=node.func.value), program, depth + 1)
    mark = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else " "
    found = []
    for one in whole or ():
        at = 0
        for text in one.text.split(str(mark)):
            lead = len(text) - len(text.lstrip())
            found.append(Word(text=text.strip(), file=one.file, start=one.start + at + lead))
            at += len(text) + len(str(mark))
    return found or None


def _in_settings(value: Value, program: Program, depth: int) -> list[Word] | None:
    """The words of a setting: an entry of a configuration file with its elements, or a literal in Python."""
    settings = settings_behind(value.node, value.file, program)
    if len(settings) != 1:
        return None
    (one,) = settings
    if one.kind in IN_CODE:
        node = next(
            (each for each in value_nodes(one) if isinstance(each, ast.expr) and one.file.span(each) == one.span),  # type: ignore[attr-defined]
            None,
        )
        is_new = isinstance(node, ast.expr) and node is not value.node
        return words_of(Value(node, one.file), program, depth + 1) if is_new else None  # type: ignore[arg-type]
    if isinstance(one.value, str):
        return _written([one])
    return _written(_elements(one, program)) if isinstance(one.value, list) else None


def value_nodes(setting: Setting) -> Iterator[ast.AST]:
    """The nodes of the Python file that a setting stands in."""
    return setting.file.walk() if isinstance(setting.file, SourceFile) else iter(())


def _elements(setting: Setting, program: Program) -> list[Setting]:
    document = next((one for one in program.documents() if one.file.path == setting.file.path), None)
    own = document.settings if document is not None else ()
    return [one for one in own if one.group == setting.group and one.path[:-1] == setting.path]


def _written(settings: list[Setting]) -> list[Word] | None:
    texts = [(one, one.value) for one in settings if isinstance(one.value, str) and one.value and not one.hold]
    found = [_word(text, one.raw, one.file, one.span[0]) for one, text in texts]
    words = [one for one in found if one is not None]
    return words if words and len(words) == len(settings) else None


def _in_code(node: ast.Constant, file: SourceFile) -> Word | None:
    if not isinstance(node.value, str) or not node.value:
        return None
    return _word(node.value, file.segment(node), file, file.span(node)[0])


def _word(text: str, raw: str, file: TextFile, start: int) -> Word | None:
    """A word in the text that it is written by, in which its backslashes may be doubled."""
    for is_escaped, written in enumerate((text, _escaped(text))):
        if written in raw:
            return Word(text=text, file=file, start=start + raw.index(written), is_escaped=bool(is_escaped))
    return None


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\")
