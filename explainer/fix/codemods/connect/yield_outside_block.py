"""A generator hands out what it computed under `no_grad` behind the block: `with torch.no_grad(): scores = net(x)`, then `yield`.

While a generator waits at a `yield`, grad mode stays as its block has set it, and the loop that takes what it yields trains
nothing. The block closes before each `yield` and opens again behind it, so that what scores still builds no graph.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.data.run import modules_in
from explainer.fix.text.rewrite import free_name
from explainer.model.patch import Edit
from explainer.model.trace import GRAD_OFF
from explainer.source.data.fed_by import fed_by
from explainer.source.file import SourceFile
from explainer.source.graph.cut import GRAD_MODE, GRAD_MODE_OFF
from explainer.source.loop.backward import loss_of
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import is_module
from explainer.source.network.never_trained import is_never_trained
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import Value
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_NO_GRAPH = "does not require grad and does not have a grad_fn"
_YIELDS = (ast.Yield, ast.YieldFrom)
_METHODS = frozenset({"staticmethod", "classmethod", "override"})
# What may be called outside of the block: it computes nothing of weights.
_LIGHT = frozenset(
    {"tolist", "item", "cpu", "numpy", "list", "tuple", "dict", "set", "int", "float", "str", "len", "range", "enumerate"}
    | {"zip", "reversed", "sorted", "iter", "keys", "values", "items", "split", "append", "clear", "pop"}
)  # fmt: skip
_WHY = "leaves grad mode off in the loop that takes what is yielded, for as long as the generator waits there"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced block with a `yield` in it; where nothing was traced, for those that feed the loop that failed."""
    program = context.program
    for file, statement, belief in _blocks(context):
        function = program.names(file).function_of(statement)
        if not isinstance(statement, ast.With) or not isinstance(function, ast.FunctionDef):
            continue
        if not _is_mode(statement, file, program) or not _is_plain(function) or not _yields(statement):
            continue
        if all(_is_data(one, file, context) for one in _yields(statement)):
            edit = _Spread(statement, function, file, program).edit()
            if edit is not None:
                item = statement.items[0].context_expr
                yield Proposal(edits=(edit,), culprit=culprit_of(file, item, _WHY), belief=belief)


def _blocks(context: Context) -> Iterator[tuple[SourceFile, ast.stmt, float]]:
    """The statements that may hold grad mode off for the failing line, and how sure each is."""
    yield from ((file, statement, 2.6) for _, file, statement in traced_statements(GRAD_OFF, context))
    if context.incident.traced or not context.has_failed or _NO_GRAPH not in message_of(context):
        return
    loops = {
        loop: file
        for file, statement in crash_places(context)
        for loop in file.around(statement)
        if isinstance(loop, (ast.For, ast.AsyncFor))
    }
    for loop, file in loops.items():
        for where, function in fed_by(loop, file, context.program):
            yield from ((where, one, 2.2) for one in _inside_of(function) if isinstance(one, ast.With))


def _inside_of(function: Function) -> Iterator[ast.AST]:
    return (one for statement in function.body for one in _inside(statement))


def _is_mode(block: ast.With, file: SourceFile, program: Program) -> bool:
    call = block.items[0].context_expr
    called = program.names(file).qualified(call.func) if isinstance(call, ast.Call) and not call.args else None
    return len(block.items) == 1 and called in GRAD_MODE_OFF and block.body[0].lineno > (call.end_lineno or 0)


def _is_plain(function: ast.FunctionDef) -> bool:
    """Whether nothing makes something else of a generator: what `contextmanager` decorates is to yield within its block."""
    return all((dotted_name(one) or "").rpartition(".")[2] in _METHODS for one in function.decorator_list)


def _yields(node: ast.AST) -> list[ast.Yield | ast.YieldFrom]:
    return [one for one in _inside(node) if isinstance(one, _YIELDS)]


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement, without those of functions and classes that it makes."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        for one in children(node):
            yield from _inside(one)


def _is_data(given: ast.Yield | ast.YieldFrom, file: SourceFile, context: Context) -> bool:
    """Whether what is yielded is not what a trained module computed, which the block alone keeps from its gradient.

    A module that the loss runs by itself gives its guesses here, on which it is trained there.
    """
    program = context.program
    if given.value is None:
        return False
    trace = provenance_of(program).trace(Value(given.value, file))
    if not any(all(cut.kind == GRAD_MODE for cut in chain) for chain in trace.chains):
        return not trace.live
    ran = list(modules_in(trace.sources, program))
    again = _modules_of_loss(file.enclosing(given, ast.FunctionDef), context)
    makers = resolver_of(program).constructors_of
    return bool(ran) and all(
        is_never_trained(one, program) or again & {made.node for made in makers(one)} for one in ran
    )


def _modules_of_loss(generator: ast.AST | None, context: Context) -> set[ast.expr]:
    """The calls that made the modules which the failing loss runs, but for those that run in the generator."""
    program = context.program
    found = set[ast.expr]()
    for file, statement in islice(crash_places(context), 1):
        losses = [loss_of(one, file, program) for one in walk(statement) if isinstance(one, ast.Call)]
        for loss in losses:
            sources = provenance_of(program).trace(Value(loss, file)).sources if loss is not None else ()
            own = [
                one for one in sources if program.names(program.file_of(one) or file).function_of(one) is not generator
            ]
            for module in modules_in(own, program):
                found |= {made.node for made in resolver_of(program).constructors_of(module)}
    return found


@dataclass
class _Spread:
    """A block that is spread over those statements in it that compute something and yield nothing.

    Of the lines of its body some move out, before others it opens anew; a `yield` of what is computed in its own line gets a name.
    """

    block: ast.With
    function: Function
    file: SourceFile
    program: Program
    moved: set[int] = field(default_factory=set)
    opened: set[int] = field(default_factory=set)
    named: dict[int, ast.Yield] = field(default_factory=dict)  # by the last line

    def edit(self) -> Edit | None:
        """The edit; None where a `yield` stands where the block cannot be closed before it."""
        body = self.block.body
        if not self._spread(body, _end(self.block.items[0].context_expr) + 1):
            return None
        start, end = self.file.line_start(self.block.lineno), self.file.line_start(_end(self.block) + 1)
        lines = [
            line for number in range(self.block.lineno + 1, _end(self.block) + 1) for line in self._written(number)
        ]
        return Edit(
            file=self.file.path, start=start, end=end, new="".join(f"{one}{self.file.newline}" for one in lines)
        )

    def _spread(self, body: Sequence[ast.stmt], first: int) -> bool:
        """One list of statements, of which the lines begin at `first`."""
        row: list[ast.stmt] = []
        line = first
        for one in body:
            if one.lineno < line:
                return False  # it shares a line
            if not _yields(one):
                row.append(one)
                continue
            given = one.value if isinstance(one, ast.Expr) else None
            if isinstance(given, ast.Yield) and given.value is not None and not self._is_light(given.value):
                self.named[_end(one)] = given
                row.append(one)
                self._close(row, line)
                row, line = [], _end(one) + 1
                continue
            if row:
                self._close(row, line)
                row, line = [], _end(row[-1]) + 1
            if not self._around_yield(one, line):
                return False
            line = _end(one) + 1
        if row:
            self._close(row, line)
        return True

    def _around_yield(self, one: ast.stmt, line: int) -> bool:
        """A statement that yields what is at hand, or a loop or a condition in which something is yielded."""
        if isinstance(one, ast.Expr) and isinstance(one.value, _YIELDS):
            self.moved |= set(range(line, _end(one) + 1))
            return one.value.value is not None and self._is_light(one.value.value)
        if not isinstance(one, (ast.For, ast.While, ast.If)):
            return False
        head = one.iter if isinstance(one, ast.For) else one.test
        if not self._is_light(head) or one.body[0].lineno <= _end(head):
            return False
        self.moved |= set(range(line, _end(head) + 1))
        if not self._spread(one.body, _end(head) + 1):
            return False
        behind = _end(one.body[-1]) + 1
        if not one.orelse:
            return True
        is_elif = isinstance(one, ast.If) and one.orelse[0].col_offset == one.col_offset
        self.moved |= set(range(behind, one.orelse[0].lineno)) if not is_elif else set()
        return self._spread(one.orelse, behind if is_elif else one.orelse[0].lineno)

    def _close(self, row: Sequence[ast.stmt], line: int) -> None:
        """A row of statements without a `yield` between: in a block of its own where it computes something."""
        lines = range(line, _end(row[-1]) + 1)
        if _end(row[-1]) in self.named or any(not self._is_light(one) for one in row):
            self.opened.add(next(one for one in lines if self.file.line(one).strip()))
        else:
            self.moved |= set(lines)

    def _is_light(self, node: ast.AST) -> bool:
        """Whether what runs in a statement or an expression computes nothing of weights, so that the block does nothing for it."""
        return all(self._is_light_call(one) for one in walk(node) if isinstance(one, ast.Call)) and not any(
            isinstance(one, ast.BinOp) and not any(isinstance(side, ast.Constant) for side in (one.left, one.right))
            for one in walk(node)
        )

    def _is_light_call(self, call: ast.Call) -> bool:
        names = self.program.names(self.file)
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in _LIGHT:
            return True
        root = (dotted_name(call.func) or "").partition(".")[0]
        is_own = resolver_of(self.program).function_of(call, Value(call, self.file)) is not None
        return root in names.imports and not is_own and not is_module(Value(call.func, self.file), self.program)

    def _written(self, number: int) -> Iterator[str]:
        """A line of the body as it is written behind the edit, with what comes before and behind it."""
        text = self.file.line(number).rstrip("\r\n")
        step = len(self.file.indent(self.block.body[0].lineno)) - len(self.file.indent(self.block.lineno))
        if number in self.opened:
            yield f"{self.file.indent(number)[step:]}with {self.file.segment(self.block.items[0].context_expr)}:"
        given = next((one for one in self.named.values() if one.lineno == number), None)
        if given is not None:
            text = text.replace("yield", f"{self._name} =", 1)
        yield text[step:] if number in self.moved and number not in self._strings and not text[:step].strip() else text
        if number in self.named:
            yield f"{self.file.indent(self.named[number].lineno)[step:]}yield {self._name}"

    @cached_property
    def _name(self) -> str:
        return free_name("result", self.function)

    @cached_property
    def _strings(self) -> set[int]:
        """The lines that begin within a string."""
        return {
            line
            for node in walk(self.block)
            if isinstance(node, (ast.Constant, ast.JoinedStr))
            for line in range(node.lineno + 1, _end(node) + 1)
        }


def _end(node: ast.stmt | ast.expr) -> int:
    return node.end_lineno or node.lineno
