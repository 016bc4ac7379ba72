"""A schedule is given the optimizer that steps: `StepLR(SGD(net.parameters(), lr=0.1), 10)` becomes `StepLR(optimizer, 10)`.

A run has seen which schedule moves the rate of an optimizer that never steps, and which one trains the same parameters. A helper
that makes both gets the other as a parameter; where the optimizer is made anew behind the schedule, that is made behind it too.
Nothing is edited where the optimizer that steps has no name at the schedule. Lightning refuses the schedule of an optimizer that
`configure_optimizers` does not return: there the source tells as much.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, lines_of, remove_statement
from explainer.fix.loop.idle_schedule import IdleSchedule, bound_name, hands_up, name_here, not_returned, seen_idle
from explainer.fix.text.rewrite import add_argument, free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.step import is_optimizer
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.binding import Value, bind_call, parameters_of, reaching
from explainer.source.value.lineage import binds, block_of, reads
from explainer.source.value.resolve import resolver_of

_NOT_RETURNED = "attached with an optimizer that wasn't returned"  # Lightning 2: `_validate_optimizers_attached`
_WHY = "makes the schedule of an optimizer that never steps"


def propose(context: Context) -> Iterator[Proposal]:
    """The line that makes the schedule, with the edit that gives it the other optimizer."""
    seen = seen_idle(context)
    if seen is not None:
        yield _proposal(seen)
    elif any(_NOT_RETURNED in one.message for one in context.incident.exceptions):
        yield from map(_proposal, not_returned(context.program))


def _proposal(seen: IdleSchedule) -> Proposal:
    return Proposal(edits=_given(seen), culprit=culprit_of(seen.file, seen.made, _WHY), belief=3.0, is_origin=True)


def _given(seen: IdleSchedule) -> tuple[Edit, ...]:
    name = name_here(seen)
    if seen.is_later:
        return _made_behind(seen, name) if name is not None else ()
    if name is not None:
        return tuple(_in_place_of_idle(seen, name))
    return _as_parameter(seen)


def _in_place_of_idle(seen: IdleSchedule, name: str) -> Iterator[Edit]:
    """The edits that put a name in place of the idle optimizer, which goes where nothing else reads it."""
    if seen.idle is seen.made:
        call = _made_inline(seen)
        if call is not None:
            yield edit_of(seen.file, call, name)
        return
    old = bound_name(seen.idle, seen.file, seen.program)
    if old is None or old == name:
        return
    read = _reads_of(old, seen)
    here = [one for one in read if seen.file.statement(one) is seen.made]
    is_only_given = all(isinstance(seen.file.parents.get(one), (ast.Call, ast.keyword)) for one in read)
    is_only_there = here == read or (is_only_given and "." not in old)
    if not here or (is_only_there and len(_bindings_of(old, seen)) > 1):
        return
    yield from (edit_of(seen.file, one, name) for one in (read if is_only_there else here))
    if is_only_there and isinstance(seen.idle, ast.Assign) and not isinstance(seen.idle.targets[0], ast.Tuple):
        yield remove_statement(seen.file, seen.idle)


def _made_inline(seen: IdleSchedule) -> ast.Call | None:
    """The call in the schedule's statement that makes its optimizer: an argument of another call."""
    like = {
        ast.dump(one.func) for _, statement in seen.stepping for one in walk(statement) if isinstance(one, ast.Call)
    }
    found = [
        one
        for one in walk(seen.made)
        if isinstance(one, ast.Call)
        and isinstance(above := seen.file.parents.get(one), (ast.Call, ast.keyword))
        and (
            is_optimizer(Value(one, seen.file), seen.program)
            or ast.dump(one.func) in like
            or getattr(above, "arg", "") == "optimizer"
        )
    ]
    whole = [one for one in found if all(each in set(walk(one)) for each in found)]
    return whole[0] if len(whole) == 1 else None


def _reads_of(name: str, seen: IdleSchedule) -> list[ast.expr]:
    """What reads a name of the schedule's function; of an attribute, what reads one of that name anywhere."""
    if "." not in name:
        around: ast.AST | None = seen.function or seen.file.tree
        nodes = walk(around) if around is not None else ()
        return [one for one in nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Load)]
    last = name.partition(".")[2]
    found = [one for file in seen.program.parsed() for one in file.attributes.get(last, ())]
    return [one for one in found if isinstance(one.ctx, ast.Load)]


def _bindings_of(name: str, seen: IdleSchedule) -> list[ast.expr]:
    """The places that give a local name a value."""
    around: ast.AST | None = seen.function or seen.file.tree
    nodes = walk(around) if around is not None and "." not in name else ()
    return [one for one in nodes if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)]


def _made_behind(seen: IdleSchedule, name: str) -> tuple[Edit, ...]:
    """The schedule is made behind the optimizer that comes later, where nothing on the way needs it or changes what it reads."""
    file, stepping = seen.stepping[0]
    block = list(block_of(seen.made, file))
    old = bound_name(seen.idle, file, seen.program) if seen.idle is not seen.made else None
    if stepping not in block or len(seen.schedule) != 1 or not isinstance(seen.made, ast.Assign) or old != name:
        return ()
    between = block[block.index(seen.made) + 1 : block.index(stepping) + 1]
    given, needs = binds(seen.made), reads(seen.made.value, graph=False) - {name}
    if any(given & (reads(one, graph=False) | binds(one)) or needs & binds(one) for one in between):
        return ()
    return remove_statement(file, seen.made), insert_after(file, stepping, lines_of(file, seen.made))


def _as_parameter(seen: IdleSchedule) -> tuple[Edit, ...]:
    """A helper that makes the schedule with an optimizer of its own is given the one that steps."""
    function = seen.function
    if len(seen.schedule) != 2 or not isinstance(function, ast.FunctionDef):
        return ()
    (file, statement), (where, stepping) = seen.schedule[0], seen.stepping[0]
    resolver = resolver_of(seen.program)
    calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
    mine = [one for one in calls if resolver.function_of(one, Value(one, file)) == (seen.file, function)]
    name = bound_name(stepping, where, seen.program) if hands_up(seen, 0) else None
    if name is None or len(mine) != 1 or len(resolver.calls_of(function, seen.file)) != 1 or where is not file:
        return ()
    if [one.statement for one in reaching(name, mine[0], file)] != [stepping]:
        return ()
    bound = bind_call(mine[0], function, Value(mine[0], file))
    known = next((one for one, given in bound.items() if dotted_name(given.node) == name), None)
    if known is not None:
        return tuple(_in_place_of_idle(seen, known))
    new = free_name("optimizer", function) if "optimizer" not in parameters_of(function) else ""
    edits = tuple(_in_place_of_idle(seen, new)) if new else ()
    return (
        (*edits, *_new_parameter(seen, function, new), _argument(file, mine[0], function, f"{new}={name}", name))
        if edits
        else ()
    )


def _new_parameter(seen: IdleSchedule, function: ast.FunctionDef, name: str) -> Iterator[Edit]:
    """The edit that gives a function one more parameter, by keyword where one before it has a default."""
    given = function.args
    last = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    values = [one for one in (*given.defaults, *given.kw_defaults) if one is not None]
    head = seen.file.span(function)[0] + len(f"def {function.name}(")
    end = max([head, *(seen.file.span(one)[1] for one in (*last, *values))])
    is_keyword = bool(given.defaults) and not (given.vararg or given.kwonlyargs)
    lead = "" if not last else ", *, " if is_keyword else ", "
    yield Edit(file=seen.file.path, start=end, end=end, new=f"{lead}{name}")


def _argument(file: SourceFile, call: ast.Call, function: ast.FunctionDef, by_name: str, plain: str) -> Edit:
    """The edit of the call: by place where all before it are given so."""
    given = function.args
    is_plain = not (call.keywords or given.defaults or given.kwonlyargs or given.vararg or given.kwarg)
    is_plain &= len(call.args) == len(parameters_of(function))
    return add_argument(file, call, plain if is_plain else by_name)
