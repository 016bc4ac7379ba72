"""`model.set_adapter("reference")` for a reference's pass is followed by `model.set_adapter("policy")`, before the policy's backward.

    model.set_adapter("reference")
    with torch.no_grad():
        ref = logps(model, batch)
    model.set_adapter("policy")   # new

Where the call is there, and is given what is active by then, `model.set_adapter(model.active_adapter)`, that is read before the
reference's pass. Only where a run was seen to step an optimizer for an adapter that this line had replaced each time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.text.rewrite import free_name
from explainer.model.patch import Edit
from explainer.model.verification import SWITCHED
from explainer.source.file import SourceFile
from explainer.source.graph.cut import grad_state
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, bounds_of, parameters_of, walk_scope
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_SEEN = re.compile(rf"(\S+):(\d+) {re.escape(SWITCHED)}: `([^`]+)`, since `([^`]+)` is active")
_RESULTS = ("result", "output", "outcome")
_ACTIVE = ("active_adapter", "active_adapters")


class _Switch(NamedTuple):
    """A statement that makes another adapter the active one; `name` is the argument that says which."""

    file: SourceFile
    statement: ast.Expr
    call: ast.Call
    name: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each line that was seen to replace the adapter that trains."""
    found = [one for line in context.incident.log if (one := _SEEN.search(line.text))]
    for path, line, wanted, instead in (one.groups() for one in found):
        for switch in _switches(path, int(line), wanted, context.program):
            edits = _remembered(switch, context.program) or _restored(
                switch, _back(switch, wanted, context.program), context.program
            )
            if edits:
                yield Proposal(
                    edits=edits,
                    culprit=culprit_of(
                        switch.file, switch.call, f"leaves `{instead}` active when `{wanted}` is to get its gradients"
                    ),
                    belief=2.5,
                )


def _switches(path: str, line: int, wanted: str, program: Program) -> Iterator[_Switch]:
    """The call of `set_adapter` at a line; where its function is told which, the calls of that for another adapter than the wanted."""
    for file in program.parsed():
        for attribute in file.attributes.get("set_adapter", ()):
            call = file.parents.get(attribute)
            is_it = file.path.replace("\\", "/").rpartition("/")[2] == path and attribute.lineno <= line <= (
                attribute.end_lineno or 0
            )
            switch = (
                _switch(file, call, call.args[:1] + [one.value for one in call.keywords if one.arg == "adapter_name"])
                if is_it and isinstance(call, ast.Call) and call.func is attribute
                else None
            )
            if switch is None:
                continue
            function = program.names(file).function_of(switch.call)
            name = switch.name.id if isinstance(switch.name, ast.Name) else None
            if function is None or name not in parameters_of(function):
                yield switch
                continue
            for where, caller in resolver_of(program).calls_of(function, file):
                given = bind_call(caller, function, Value(caller, where)).get(name)
                one = _switch(where, caller, [given.node] if given is not None else [])
                if one is not None and not _is_word(one, wanted, program):
                    yield one


def _switch(file: SourceFile, call: ast.Call, given: list[ast.expr]) -> _Switch | None:
    statement = file.parents.get(call)
    is_one = (
        isinstance(statement, ast.Expr) and given and given[0] in (*call.args, *(one.value for one in call.keywords))
    )
    return _Switch(file, statement, call, given[0]) if is_one and isinstance(statement, ast.Expr) else None


def _is_word(switch: _Switch, word: str, program: Program) -> bool:
    """Whether an argument stands for a word, as far as the source tells."""
    values = [switch.name, *(one.node for one in resolver_of(program).behind(Value(switch.name, switch.file)))]
    return any(isinstance(one, ast.Constant) and one.value == word for one in values)


def _back(switch: _Switch, wanted: str, program: Program) -> str:
    """The call that makes the wanted adapter the active one again, by a name that the program has for it in sight."""
    file, call = switch.file, switch.call
    name = next(_names_for(switch, wanted, program), None)
    if name is None:
        quote = file.segment(switch.name)[:1] if isinstance(switch.name, ast.Constant) else '"'
        name = f"{quote}{wanted}{quote}"
    if (
        dotted_name(call.func) is not None
        and len(call.args) + len(call.keywords) > 1
        and "set_adapter" not in file.segment(call.func)
    ):
        start, _ = file.span(call)
        low, high = file.span(switch.name)
        text = file.segment(call)
        return f"{text[: low - start]}{name}{text[high - start :]}"
    return f"{file.segment(call.func)}({name})"


def _remembered(switch: _Switch, program: Program) -> tuple[Edit, ...]:
    """The edits that read which adapter is active before another call of the function switches, where this one reads it too late."""
    file, call = switch.file, switch.call
    read = switch.name.value if isinstance(switch.name, ast.Subscript) else switch.name
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_own = isinstance(read, ast.Attribute) and owner is not None and ast.dump(read.value) == ast.dump(owner)
    function = program.names(file).function_of(call)
    if not is_own or not isinstance(read, ast.Attribute) or read.attr not in _ACTIVE or function is None:
        return ()
    others = (
        one for one in walk_scope(function) if isinstance(one, ast.Call) and ast.dump(one.func) == ast.dump(call.func)
    )
    before = [one for one in others if one.lineno < call.lineno]
    if not before:
        return ()
    name = free_name("trained", function)
    text = f"{name} = {file.segment(switch.name)}"
    return insert_before(file, file.statement(before[0]), text), edit_of(file, switch.name, name)


def _names_for(switch: _Switch, wanted: str, program: Program) -> Iterator[str]:
    """`self.policy`, which the same class gives to `set_adapter` elsewhere; a constant of the module that is the adapter's name."""
    file = switch.file
    owner = program.names(file).class_of(switch.call)
    own = {
        file.segment(one.args[0])
        for one in (walk(owner) if owner is not None else ())
        if isinstance(one, ast.Call) and one is not switch.call and one.args and ast.dump(one.func) == ast.dump(switch.call.func)
        and (dotted_name(one.args[0]) or "").startswith("self.")
    } - {file.segment(switch.name)}  # fmt: skip
    if len(own) == 1:
        yield own.pop()
    for bound in bounds_of(file.tree) if file.tree is not None else ():
        if isinstance(bound.node, ast.Constant) and bound.node.value == wanted and bound.pick is None:
            yield bound.name


def _restored(switch: _Switch, text: str, program: Program) -> tuple[Edit, ...]:
    """The edits that put the call behind the reference's pass: the block or statement that follows, or the end of a function for it."""
    file, statement = switch.file, switch.statement
    function = program.names(file).function_of(switch.call)
    if function is not None and (_is_without_grad(function, file, program) or _yields(function)):
        return _at_the_ends(switch, function, text)
    above = file.parents.get(statement)
    if isinstance(above, ast.With) and _enters_no_grad(above, file, program):
        return _behind(file, above.body[-1], text, inside=True) if above.body[-1] is not statement else ()
    block = list(block_of(statement, file))
    rest = block[block.index(statement) + 1 :]
    if not rest or any(_goes_backward(one) for one in walk(rest[0])):
        return ()
    if (
        isinstance(rest[0], ast.With)
        and _enters_no_grad(rest[0], file, program)
        and isinstance(rest[0].body[-1], ast.Return)
    ):
        return _behind(file, rest[0].body[-1], text)
    return _behind(file, rest[0], text)


def _behind(file: SourceFile, statement: ast.stmt, text: str, *, inside: bool = False) -> tuple[Edit, ...]:
    """The text behind a statement; where that returns, what it returns is kept over it."""
    if not isinstance(statement, ast.Return):
        is_kind = inside or isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.With, ast.For))
        return (insert_after(file, statement, text),) if is_kind else ()
    if statement.value is None or isinstance(statement.value, (ast.Name, ast.Constant)):
        return (insert_before(file, statement, text),)
    function = file.enclosing(statement, ast.FunctionDef, ast.AsyncFunctionDef)
    taken = {name for one in walk_scope(function) for name in bound_names(one)} if function is not None else set()
    name = next((one for one in _RESULTS if one not in taken), None)
    if name is None:
        return ()
    start, _ = file.span(statement)
    kept = Edit(file=file.path, start=start, end=start + len("return"), new=f"{name} =")
    return kept, insert_after(file, statement, f"{text}\nreturn {name}")


def _at_the_ends(switch: _Switch, function: Function, text: str) -> tuple[Edit, ...]:
    """Before each return behind the switch, and at the end of a function that goes on to it."""
    file, last = switch.file, function.body[-1]
    ends = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.lineno > switch.call.lineno]
    parts = [_behind(file, one, text) for one in ends]
    if not isinstance(last, (ast.Return, ast.Raise)) and last is not switch.statement:
        parts.append((insert_after(file, last, text),))
    return tuple(edit for part in parts for edit in part) if all(parts) else ()


def _is_without_grad(function: Function, file: SourceFile, program: Program) -> bool:
    return any(grad_state(one, program.names(file)) is False for one in function.decorator_list)


def _enters_no_grad(block: ast.With, file: SourceFile, program: Program) -> bool:
    return any(grad_state(one.context_expr, program.names(file)) is False for one in block.items)


def _yields(function: Function) -> bool:
    """Whether a function is a generator: the reference's pass runs where it yields."""
    return any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk_scope(function))


def _goes_backward(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("backward", "step")
