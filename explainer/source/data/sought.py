"""What becomes of a sequence of token ids: whether it is only sought within longer ones.

Followed forward from the call that makes it: through names, attributes, containers, parameters and results of the program's
functions, to where it is compared with the windows of another sequence.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from explainer.source.data.window import CONVERTERS, is_window, moves
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, reaching
from explainer.source.value.callee import callees_of
from explainer.source.value.fields import fields_of
from explainer.source.value.resolve import resolver_of

_MOST = 300  # places that are followed
_METHODS = frozenset(
    {"tolist", "to", "cpu", "cuda", "numpy", "long", "int", "clone", "copy", "detach", "values", "items"}
)
_FLAT = frozenset({"squeeze", "flatten", "ravel", "view", "reshape"})
_MEASURES = frozenset({"shape", "size", "numel", "dim", "dtype", "device", "ndim"})
_LOOKS = frozenset(
    {"len", "print", "repr", "str", "bool", "isinstance", "decode", "batch_decode", "convert_ids_to_tokens"}
    | {"debug", "info", "warning", "error", "max", "min"}
)  # fmt: skip
_PLACES = frozenset({"index", "count", "int", "where"})  # of one id
_EQUALS = frozenset({"equal", "array_equal", "array_equiv", "eq"})
_WALKS = frozenset({"zip", "enumerate", "iter"})
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
_COLLATORS = frozenset({"DataCollatorForCompletionOnlyLM"})  # of trl, which looked for the ids that it was given
_IDS = ("input_ids", "ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An expression that holds the ids: `depth` 1 as a sequence, 0 as one of them, more in containers; `key` is their entry there."""

    node: ast.expr
    file: SourceFile
    depth: int
    key: object = None
    is_encoding: bool = False


@dataclass(slots=True)
class Fate:
    """All that the program does with the ids. `is_cut` where some are taken off, `others` are uses that need them whole."""

    searches: list[tuple[SourceFile, ast.expr]] = field(default_factory=list)
    others: list[tuple[SourceFile, ast.AST]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    is_cut: bool = False


def fate_of(made: Held, program: Program) -> Fate:
    """What becomes of the ids that an expression makes."""
    follower = _Follower(program)
    follower.queue.append(made)
    while follower.queue and len(follower.seen) < _MOST:
        held = follower.queue.pop(0)
        if held.node not in follower.seen:
            follower.seen.add(held.node)
            follower.fate.held.append(held)
            follower.follow(held)
    if follower.queue:
        follower.fate.others.append((made.file, made.node))
    return follower.fate


class _Follower:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.fate = Fate()
        self.queue: list[Held] = []
        self.seen: set[ast.AST] = set()

    def follow(self, held: Held) -> None:
        """Go on to what the place of an expression makes of it."""
        node = held.node
        above = held.file.parents.get(node)
        if isinstance(above, ast.Subscript) and above.value is node:
            self._entry(above, held)
        elif isinstance(above, ast.Attribute):
            self._attribute(above, held)
        elif isinstance(above, ast.keyword):
            self._keyword(above, held)
        elif isinstance(above, ast.Call):
            self._argument(above, held)
        elif isinstance(above, ast.Compare):
            self._compared(held, [above.left, *above.comparators], above)
        elif isinstance(above, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and above.value is node:
            self._bound(above, held)
        elif isinstance(above, ast.Return):
            self._returned(above, held)
        elif isinstance(above, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)):
            self._contained(above, held)
        elif isinstance(above, _LOOPS) and above.iter is node:
            self._walked(above, held)
        elif isinstance(above, (ast.IfExp, ast.BoolOp)) and getattr(above, "test", None) is not node:
            self.queue.append(replace(held, node=above))
        elif not _is_looked_at(above, node):
            self._other(held)

    def _other(self, held: Held) -> None:
        self.fate.others.append((held.file, held.node))

    def _entry(self, above: ast.Subscript, held: Held) -> None:
        parts = above.slice.elts if isinstance(above.slice, ast.Tuple) else [above.slice]
        name = above.slice.value if isinstance(above.slice, ast.Constant) else None
        if held.is_encoding and name in _IDS:
            self.queue.append(replace(held, node=above, is_encoding=False))
        elif held.is_encoding:
            self._other(held)
        elif any(isinstance(one, ast.Slice) and (one.lower or one.upper or one.step) for one in parts):
            self.fate.is_cut = True
        elif isinstance(above.slice, ast.Slice):
            self.queue.append(replace(held, node=above))
        elif held.key is None or name is None or held.key == name:
            self.queue.append(replace(held, node=above, depth=held.depth - 1, key=None))

    def _attribute(self, above: ast.Attribute, held: Held) -> None:
        call = held.file.parents.get(above)
        if above.attr in _IDS:
            self.queue.append(replace(held, node=above, is_encoding=False))
        elif isinstance(call, ast.Call) and call.func is above and above.attr in (_METHODS | _FLAT | {"unsqueeze"}):
            depth = 1 if above.attr in _FLAT else held.depth + (above.attr == "unsqueeze")
            self.queue.append(replace(held, node=call, depth=depth))
        elif isinstance(call, ast.Call) and call.func is above and above.attr in _EQUALS:
            self._compared(held, call.args, call)
        elif held.is_encoding or above.attr not in _MEASURES:
            self._other(held)

    def _compared(self, held: Held, sides: list[ast.expr], node: ast.expr) -> None:
        others = [one for one in sides if one is not held.node]
        if held.depth < 1:
            if any(self._is_id_of_window(one, held.file) for one in others):
                self.fate.searches.append((held.file, node))
        elif held.is_encoding or not any(is_window(one, held.file, self.program) for one in others):
            self._other(held)  # as where the beginning of a sequence is compared
        else:
            self.fate.searches.append((held.file, node))

    def _is_id_of_window(self, node: ast.expr, file: SourceFile) -> bool:
        """`ids[i + j]`, or what a loop takes of `ids[i:]` beside the ids."""
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.BinOp) and isinstance(node.slice.op, ast.Add) and moves(node.slice, file)
        for one in resolver_of(self.program).behind(Value(node, file)) if isinstance(node, ast.Name) else ():
            piece = one.node.slice if isinstance(one.node, ast.Subscript) else None
            if one.is_element and isinstance(piece, ast.Slice) and moves(piece.lower, file):
                return True
        return False

    def _argument(self, call: ast.Call, held: Held) -> None:
        last = (dotted_name(call.func) or "").rpartition(".")[2] or getattr(call.func, "attr", "")
        place = call.args.index(held.node) if held.node in call.args else -1
        loop = held.file.parents.get(call)
        if last in _LOOKS or (held.depth < 1 and last in _PLACES):
            return
        if last in CONVERTERS and place == 0 and not held.is_encoding:
            self.queue.append(replace(held, node=call))
        elif last in _WALKS and isinstance(loop, _LOOPS):
            self._walked(loop, held)
        elif last in _EQUALS:
            self._compared(held, call.args, call)
        elif last in _COLLATORS:
            self.fate.searches.append((held.file, call))
        elif last == "append" and isinstance(call.func, ast.Attribute):
            self._read(dotted_name(call.func.value), replace(held, depth=held.depth + 1))
        else:
            self._passed(call, place, None, held)

    def _keyword(self, keyword: ast.keyword, held: Held) -> None:
        call = held.file.parents.get(keyword)
        assert isinstance(call, (ast.Call, ast.ClassDef))
        if isinstance(call, ast.ClassDef) or keyword.arg is None:
            self._other(held)
        elif keyword.arg == "fn_kwargs" and isinstance(held.key, str) and call.args:
            self._mapped(call.args[0], replace(held, depth=held.depth - 1, key=None), held.key)
        elif (dotted_name(call.func) or "").rpartition(".")[2] in _COLLATORS:
            self.fate.searches.append((held.file, call))
        else:
            self._passed(call, -1, keyword.arg, held)

    def _mapped(self, function: ast.expr, held: Held, name: str) -> None:
        for callee in callees_of(function, held.file, self.program):
            self._read_parameter(callee.function, name, replace(held, file=callee.file))

    def _passed(self, call: ast.Call, place: int, keyword: str | None, held: Held) -> None:
        """What the program's function that a call runs, or a `partial` keeps, does with it as a parameter."""
        target, shift = call.func, 0
        if (dotted_name(target) or "").rpartition(".")[2] == "partial" and call.args:
            target, shift = call.args[0], 1
        owner = resolver_of(self.program).find_class(target, held.file)
        init = resolver_of(self.program).method(owner[1], "__init__", owner[0]) if owner is not None else None
        found = False
        if owner is not None and init is None:
            fields = fields_of(owner[1], self.program.names(owner[0]))
            name = keyword or (fields[place] if 0 <= place < len(fields) else None)
            found = name in fields
            self._read(name if found else None, held)
        for callee in callees_of(target, held.file, self.program) if owner is None else ():
            name = keyword if place < 0 else callee.parameter(place - shift)
            if name is not None and name in all_parameters(callee.function):
                found = True
                self._read_parameter(callee.function, name, replace(held, file=callee.file))
        if init is not None:
            where, function = init
            names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)][1:]
            name = keyword if place < 0 else names[place] if place < len(names) else None
            if name is not None and name in all_parameters(function):
                found = True
                self._read_parameter(function, name, replace(held, file=where))
        if not found:
            self._other(held)

    def _read_parameter(self, function: Function | ast.Lambda, name: str, held: Held) -> None:
        """Where a function reads a parameter before it binds the name to something else."""
        for node in walk(function):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                bound = [one for one in reaching(name, node, held.file) if not one.fills]
                if not bound:
                    self.queue.append(replace(held, node=node))

    def _bound(self, statement: ast.Assign | ast.AnnAssign | ast.NamedExpr, held: Held) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                for one in target.elts:
                    self._read(dotted_name(one), held)
            elif isinstance(target, ast.Subscript):
                key = target.slice.value if isinstance(target.slice, ast.Constant) else None
                self._read(dotted_name(target.value), replace(held, depth=held.depth + 1, key=key))
            else:
                self._read(dotted_name(target), held)
        if isinstance(statement, ast.NamedExpr):
            self.queue.append(replace(held, node=statement))

    def _read(self, name: str | None, held: Held) -> None:
        """Where the name is read that the expression is bound to, as `x`, `self.x` or `module.x`."""
        if name is None:
            self._other(held)
            return
        for file, node in _loads(name.rpartition(".")[2], self.program):
            for value in resolver_of(self.program).behind(Value(node, file)):
                if value.node is not held.node:
                    continue
                is_taken = value.is_element or value.pick is not None
                key = value.pick if not value.is_element else None
                if key is not None and held.key is not None and key != held.key:
                    continue
                depth = held.depth - 1 if is_taken else held.depth
                self.queue.append(replace(held, node=node, file=file, depth=depth, key=None if is_taken else held.key))

    def _walked(self, loop: ast.For | ast.AsyncFor | ast.comprehension, held: Held) -> None:
        for name in dict.fromkeys(one.id for one in walk(loop.target) if isinstance(one, ast.Name)):
            self._read(name, replace(held, key=None))

    def _contained(self, above: ast.expr, held: Held) -> None:
        """A list, a tuple or a dictionary that holds the ids: with the entry under which it does."""
        key: object = None
        loop = held.file.parents.get(above)
        if isinstance(above, (ast.List, ast.Tuple)):
            if isinstance(loop, ast.Assign) and any(isinstance(one, (ast.Tuple, ast.List)) for one in loop.targets):
                self._bound(loop, held)  # `a, b = x, y` binds each to its own
                return
            key = above.elts.index(held.node)
        elif isinstance(above, ast.Dict):
            at = above.values.index(held.node) if held.node in above.values else None
            name = above.keys[at] if at is not None else None
            key = name.value if isinstance(name, ast.Constant) else None
        self.queue.append(replace(held, node=above, depth=held.depth + 1, key=key))

    def _returned(self, statement: ast.Return, held: Held) -> None:
        function = self.program.names(held.file).function_of(statement)
        resolver = resolver_of(self.program)
        if function is None or any("property" in (dotted_name(one) or "") for one in function.decorator_list):
            name = function.name if function is not None else ""
            for file in self.program.parsed():
                self.queue += [replace(held, node=one, file=file) for one in file.attributes.get(name, ())]
            return
        calls = [
            (file, one)
            for file, one in resolver.calls_of(function, held.file)
            if _runs(one, file, function, self.program)
        ]
        for file, call in calls:
            self.queue.append(replace(held, node=call, file=file))
        if not calls:
            self._other(held)


def _runs(call: ast.Call, file: SourceFile, function: Function, program: Program) -> bool:
    found = callees_of(call.func, file, program)
    return not found or any(one.function is function for one in found)


def _loads(name: str, program: Program) -> Iterator[tuple[SourceFile, ast.expr]]:
    """Each place of the program that reads something of that name, or imports it under another."""
    for file in program.parsed():
        imports = program.names(file).imports.items()
        local = {name, *(one for one, meant in imports if meant.endswith(f".{name}"))}
        nodes = (*(node for one in local for node in file.plain_names.get(one, ())), *file.attributes.get(name, ()))
        yield from ((file, node) for node in nodes if isinstance(node.ctx, ast.Load))


def _is_looked_at(above: ast.AST | None, node: ast.expr) -> bool:
    """Whether a place only asks if there is something, or writes it into a text."""
    if isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return above.test is node
    is_not = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
    return is_not or isinstance(above, (ast.FormattedValue, ast.Expr))
