"""The lists in whose order a program calls its hooks: in configuration files, in code, or as calls and decorators that register them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from explainer.fix.loop.hook_runner import Runners
from explainer.fix.text.item_order import move_behind, move_setting
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.setting.setting import JSON, TOML, YAML, Document, Path, Setting, Span
from explainer.source.text import TextFile
from explainer.source.tree import walk

# What tells hooks an order, or a place in the loop, besides that of the list.
TOLD = frozenset({"priority", "order", "rank", "event", "events", "when", "stage", "phase", "point", "moment"})
_REGISTERS = re.compile(
    r"(?:^|_)(?:add|register|append|on|use|attach|push|subscribe|hook|listen|connect)(?:_|$)|(?:hook|callback)s?$"
)
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Hook:
    """One entry of such a list: the words that name it, or the expression; `told` is what says its place otherwise."""

    span: Span
    words: tuple[str, ...] = ()
    node: ast.expr | None = None
    told: Mapping[str, str] = field(default_factory=dict)
    setting: Setting | None = None

    def members(self, runners: Runners, file: TextFile) -> frozenset[ast.AST]:
        """Those of some runners that it stands for."""
        if self.node is not None and isinstance(file, SourceFile):
            return runners.of_node(self.node, file)
        return runners.of_words(self.words)


@dataclass(frozen=True, slots=True)
class HookList:
    """Hooks in their order; `belief` says how sure it is that they are called so."""

    file: TextFile
    hooks: tuple[Hook, ...]
    belief: float

    def move(self, early: int, late: int) -> Edit | None:
        """The edit that puts one hook behind a later one."""
        own = self.hooks[early : late + 1]
        settings = [one.setting for one in own if one.setting is not None]
        if settings:
            edit = move_setting(settings, leads=early == 0)
            return edit if isinstance(edit, Edit) else None
        return move_behind(self.file, [one.span for one in own], leads=early == 0)


def find_hook_lists(program: Program) -> Iterator[HookList]:
    """Every list of a program that may be one of hooks: what its entries are is for its runners to say."""
    for at, document in enumerate(program.documents()):
        yield from _in_document(document, 2.4 - min(at, 9) * 0.02)
    for file in program.parsed():
        iterated = set(_walked(file)) - {""}
        for node in file.walk():
            if isinstance(node, (ast.List, ast.Tuple)) and isinstance(node.ctx, ast.Load) and not _is_table(node, file):
                yield HookList(file, tuple(_hook(one, file) for one in node.elts), 2.0)
            elif isinstance(node, ast.Dict) and _bound_name(node, file) in iterated:
                yield HookList(file, tuple(_pair(node, at, file) for at in range(len(node.values))), 2.0)
            for name in _BLOCKS:
                block = getattr(node, name, None)
                if isinstance(block, list):
                    yield from _registered(block, file)
                    yield from _decorated(block, file, program)


def told_of(member: ast.AST) -> Mapping[str, str]:
    """What a class, or a decorator, says of when it is called: `priority = 10`, `@hook("schedule", order=2)`."""
    found: dict[str, str] = {}
    for one in getattr(member, "decorator_list", ()):
        found |= {key.arg: ast.unparse(key.value) for key in getattr(one, "keywords", ()) if key.arg in TOLD}
    for one in member.body if isinstance(member, ast.ClassDef) else ():
        target = one.targets[0] if isinstance(one, ast.Assign) else getattr(one, "target", None)
        name = (dotted_name(target) or "").lower()
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and one.value is not None and name in TOLD:
            found[name] = ast.unparse(one.value)
    return found


def _in_document(document: Document, belief: float) -> Iterator[HookList]:
    """The lists of a file, and the mappings in it whose values are mappings: `hooks: {schedule: {every: 1}}`."""
    if document.kind not in (YAML, JSON, TOML):
        return
    inside: dict[tuple[Path, int], list[Setting]] = {}
    for one in document.settings:
        inside.setdefault((one.path[:-1], one.group), []).append(one)
    for one in document.settings:
        own = sorted(inside.get((one.path, one.group), ()), key=lambda each: each.span)
        is_list = isinstance(one.value, list)
        if len(own) > 1 and (is_list or (isinstance(one.value, dict) and document.kind != TOML)):
            hooks = tuple(_entry(each, is_list=is_list) for each in own)
            yield HookList(document.file, hooks, belief if is_list else belief - 1.0)


def _entry(setting: Setting, *, is_list: bool) -> Hook:
    value = setting.value
    inner = value if isinstance(value, dict) else {}
    words = [one for one in (*inner.values(), value) if isinstance(one, str)]
    words += [str(one) for one in inner] if is_list and len(inner) == 1 else []
    told = {str(key): str(one) for key, one in inner.items() if str(key).lower() in TOLD}
    return Hook(setting.span, tuple(words if is_list else [setting.name]), None, told, setting)


def _hook(node: ast.expr, file: SourceFile) -> Hook:
    return Hook(file.span(node), (), node, _told_in(node))


def _told_in(node: ast.expr) -> dict[str, str]:
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {
            str(key.value): ast.unparse(one)
            for key, one in pairs
            if isinstance(key, ast.Constant) and key.value in TOLD
        }
    keywords = node.keywords if isinstance(node, ast.Call) else []
    return {one.arg: ast.unparse(one.value) for one in keywords if one.arg in TOLD}


def _pair(node: ast.Dict, at: int, file: SourceFile) -> Hook:
    key, value = node.keys[at], node.values[at]
    start, end = file.span(value)
    return Hook((file.span(key)[0] if key is not None else start, end), (), value, _told_in(value))


def _walked(file: SourceFile) -> Iterator[str]:
    """The names of mappings whose items or values a loop goes through: `for hook in HOOKS.values()`."""
    for node in file.walk():
        over = node.iter if isinstance(node, (ast.For, ast.comprehension)) else None
        if (
            isinstance(over, ast.Call)
            and isinstance(over.func, ast.Attribute)
            and over.func.attr in ("items", "values")
        ):
            yield dotted_name(over.func.value) or ""


def _bound_name(node: ast.expr, file: SourceFile) -> str | None:
    above = file.parents.get(node)
    target = above.targets[0] if isinstance(above, ast.Assign) else getattr(above, "target", None)
    return dotted_name(target)


def _is_table(node: ast.expr, file: SourceFile) -> bool:
    """Whether a list is none of what is called: exported names, what a dictionary is made of, what `in` asks, what is unpacked."""
    above = file.parents.get(node)
    if isinstance(above, ast.Assign) and any(isinstance(one, (ast.Tuple, ast.List)) for one in above.targets):
        return True
    if isinstance(above, ast.comprehension) and isinstance(file.parents.get(above), ast.DictComp):
        return True
    is_unpacked = isinstance(above, ast.Return) and isinstance(node, ast.Tuple)
    return is_unpacked or isinstance(above, ast.Compare) or _bound_name(node, file) == "__all__"


def _registered(block: Sequence[ast.stmt], file: SourceFile) -> Iterator[HookList]:
    """`runner.add(Schedule())` and `runner.add(Optimize())`: calls that differ in the hook alone, which is their last argument."""
    found: dict[tuple[str, ...], list[tuple[ast.stmt, ast.expr]]] = {}
    for one in block:
        call = one.value if isinstance(one, ast.Expr) else None
        name = (dotted_name(call.func) or "").rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if isinstance(call, ast.Call) and call.args and _REGISTERS.search(name):
            rest = [ast.dump(each) for each in (*call.args[:-1], *call.keywords)]
            found.setdefault((ast.dump(call.func), *rest), []).append((one, call.args[-1]))
    for calls in found.values():
        if len(calls) > 1:
            first, last = block.index(calls[0][0]), block.index(calls[-1][0])
            hooks = dict(calls)
            every = [Hook(file.span(one), (), hooks.get(one)) for one in block[first : last + 1]]
            yield HookList(file, tuple(every), 1.8)


def _decorated(block: Sequence[ast.stmt], file: SourceFile, program: Program) -> Iterator[HookList]:
    """Functions under one decorator, which keeps them in a list."""
    found: dict[str, list[ast.stmt]] = {}
    for one in block:
        decorators = one.decorator_list if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else []
        if len(decorators) == 1 and _keeps_in_list(decorators[0], file, program):
            found.setdefault(ast.dump(decorators[0]), []).append(one)
    for own in (each for each in found.values() if len(each) > 1):
        every = block[block.index(own[0]) : block.index(own[-1]) + 1]
        yield HookList(file, tuple(_definition(one, file) for one in every), 1.6)


def _definition(statement: ast.stmt, file: SourceFile) -> Hook:
    start, end = file.span(statement)
    decorators = getattr(statement, "decorator_list", [])
    name = getattr(statement, "name", None)
    first = file.line_start(min([statement.lineno, *(one.lineno for one in decorators)]))
    lead = len(file.indent(statement.lineno))
    return Hook((first + lead if decorators else start, end), (name,) if name and decorators else ())


def _keeps_in_list(decorator: ast.expr, file: SourceFile, program: Program) -> bool:
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    target = program.find_function(program.names(file).qualified(func) or "")
    if target is None:
        return False
    parameters = {one.arg for one in walk(target[1]) if isinstance(one, ast.arg)}
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr == "append"
        and any(isinstance(each, ast.Name) and each.id in parameters for each in one.args)
        for one in walk(target[1])
    )
