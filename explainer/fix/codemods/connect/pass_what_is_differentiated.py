"""Runs the network on the very tensor whose gradient is asked for.

`x = points[:, :1]; u = net(points)` with a gradient by `x` becomes `net(torch.cat([x, ...], dim=1))`; where one tensor is made
of the input, it takes the input's place; `grad(u, points[:, :1])` asks by the points and cuts the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, remove_statement
from explainer.fix.text.inline import written_at
from explainer.model.patch import Edit
from explainer.source.data.pieces import joined_pieces
from explainer.source.file import SourceFile
from explainer.source.graph.cut import asked_of_grad
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, calls_behind, scope_of
from explainer.source.value.callee import functions_called
from explainer.source.value.flow import arguments_of, flow_of
from explainer.source.value.lineage import binds, block_of

_GRAD = "torch.autograd.grad"


class _Asked(NamedTuple):
    """A gradient that is asked for: of an output by a tensor, with the expression that is the gradient."""

    file: SourceFile
    output: ast.expr
    wanted: ast.expr
    result: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the forward that reads the tensor from which the wanted one was made."""
    if not context.has_failed:
        return
    for asked in _asked(context):
        if (looked_up := _looked_up(asked)) is not None:
            yield from _embedded(asked, *looked_up)
        else:
            yield from _cut_at_once(asked) if isinstance(asked.wanted, ast.Subscript) else _pieces(asked, context)
            yield from _made_anew(asked, context.program)


def _asked(context: Context) -> Iterator[_Asked]:
    """The gradients on the lines that failed; where a helper asks for them, those that its callers want."""
    helpers: dict[ast.AST, tuple[str, str]] = {}
    program = context.program
    for file, statement in failing_statements(context):
        for call in (one for one in walk(statement) if isinstance(one, ast.Call)):
            target = flow_of(program).target_of(call, file)
            pair = asked_of_grad(call) if program.names(file).is_call(call, _GRAD) else None
            if target is not None and target[1] in helpers:
                given = dict(arguments_of(call, target[1]))
                output, wanted = (given.get(name) for name in helpers[target[1]])
                handed = _handed_on(call, output, wanted, file, program)
                if handed is not None:
                    helpers |= handed
                elif output is not None and wanted is not None:
                    yield _Asked(file, output, wanted, call)
            elif pair is not None:
                handed = _handed_on(call, *pair, file, program)
                if handed is not None:
                    helpers |= handed
                else:
                    above = file.parents.get(call)
                    yield _Asked(file, *pair, above if isinstance(above, ast.Subscript) else call)


def _handed_on(
    call: ast.Call, output: ast.expr | None, wanted: ast.expr | None, file: SourceFile, program: Program
) -> dict[ast.AST, tuple[str, str]] | None:
    """The function around a call, with the names of its parameters that are the output and what is wanted, if both are."""
    function = program.names(file).function_of(call)
    names = getattr(output, "id", ""), getattr(wanted, "id", "")
    return {function: names} if function is not None and set(names) <= all_parameters(function) else None


def _looked_up(asked: _Asked) -> tuple[ast.Call, str] | None:
    """`model.get_input_embeddings()(ids)`, where what is asked for is made of that alone, and `model`."""
    made = [
        one
        for one in bounds_of(scope_of(asked.wanted, asked.file))
        if one.name == dotted_name(asked.wanted) and not one.fills
    ]
    call = made[0].node if len(made) == 1 else None
    table = call.func if isinstance(call, ast.Call) and len(call.args) == 1 else None
    if not isinstance(call, ast.Call) or not isinstance(table, ast.Call) or not isinstance(table.func, ast.Attribute):
        return None
    owner = dotted_name(table.func.value)
    return (call, owner) if owner is not None and table.func.attr == "get_input_embeddings" else None


def _embedded(asked: _Asked, call: ast.Call, owner: str) -> Iterator[Proposal]:
    """`embeds = model.get_input_embeddings()(ids)` beside `model(**batch)`, which embeds the ids anew, goes in as `inputs_embeds`."""
    file, wanted, ids = asked.file, dotted_name(asked.wanted), call.args[0]
    scope = scope_of(asked.wanted, file)
    runs = [
        one for one in walk(scope)
        if isinstance(one, ast.Call) and dotted_name(one.func) == owner and one.lineno > call.lineno
    ]  # fmt: skip
    edits = _given_embeds(runs[0], ids, str(wanted), file) if len(runs) == 1 else ()
    if edits:
        yield Proposal(
            edits=edits,
            culprit=culprit_of(file, runs[0], f"embeds the ids anew; `{wanted}` has no part in the result"),
            belief=2.4,
            title="Run the model on the embeddings whose gradient is asked for: `model(inputs_embeds=embeds, ...)`",
            applicability="unsafe",
            because="the same embeddings, looked up once; a head that looks for padding in the ids (GPT-2, LLaMA) then finds none",
        )


def _given_embeds(run: ast.Call, ids: ast.expr, wanted: str, file: SourceFile) -> tuple[Edit, ...]:
    """The edits of `model(input_ids=ids, ...)`, `model(ids, ...)` or `model(**batch)` with `ids` an item of the batch."""
    text = ast.unparse(ids)
    for keyword in run.keywords:
        if keyword.arg == "input_ids" and ast.unparse(keyword.value) == text:
            return (edit_of(file, keyword, f"inputs_embeds={wanted}"),)
    if len(run.args) == 1 and ast.unparse(run.args[0]) == text:
        return (edit_of(file, run.args[0], f"inputs_embeds={wanted}"),)
    if not isinstance(ids, ast.Subscript) or run.args:
        return ()
    batch = ast.unparse(ids.value)
    whole = next((one for one in run.keywords if one.arg is None and ast.unparse(one.value) == batch), None)
    if whole is None:
        return ()
    rest = f"**{{key: value for key, value in {batch}.items() if key != {file.segment(ids.slice)}}}"
    return (edit_of(file, whole, f"inputs_embeds={wanted}, {rest}"),)


def _made_anew(asked: _Asked, program: Program) -> Iterator[Proposal]:
    """`model(ids)`, which is `self.classify(self.embed(ids))`, beside `embedded = model.embed(ids)`: `model.classify(embedded)`."""
    file, wanted = asked.file, dotted_name(asked.wanted)
    made = [one for one in bounds_of(scope_of(asked.wanted, file)) if one.name == wanted and not one.fills]
    if wanted is None or len(made) != 1 or made[0].pick is not None or not isinstance(made[0].node, ast.Call):
        return
    text = ast.unparse(made[0].node)
    for call in calls_behind(asked.output, file):
        targets = functions_called(call, Value(call, file), program) if call.lineno > made[0].node.lineno else []
        where, function = targets[0] if len(targets) == 1 else (file, None)
        last = (
            function.body[-1] if function is not None and len(function.body) - _has_docstring(function) == 1 else None
        )
        value = last.value if isinstance(last, ast.Return) else None
        if function is None or value is None:
            continue
        own = [
            one
            for one in walk(value)
            if isinstance(one, ast.Call) and _is_same(written_at(Value(one, where), function, call, file), text)
        ]
        new = written_at(Value(value, where), function, call, file, {own[0]: wanted}) if len(own) == 1 else None
        if new is not None:
            why = f"makes what `{wanted}` is anew; `{wanted}` itself has no part in the result"
            yield Proposal(
                edits=(edit_of(file, call, new),),
                culprit=culprit_of(file, call, why),
                belief=2.4,
                title=f"Go on from the tensor whose gradient is asked for: `{new}`",
                because="the same values, computed once",
            )


def _has_docstring(function: Function) -> bool:
    return ast.get_docstring(function) is not None


def _is_same(written: str | None, text: str) -> bool:
    try:
        return written is not None and ast.unparse(ast.parse(written, mode="eval")) == text
    except SyntaxError:
        return False


def _cut_at_once(asked: _Asked) -> Iterator[Proposal]:
    """`grad(u, p[:, :1])[0]` asks by a new tensor: `grad(u, p)[0][:, :1]` is that column's."""
    assert isinstance(asked.wanted, ast.Subscript)
    source, file = dotted_name(asked.wanted.value), asked.file
    is_one = isinstance(asked.result, ast.Call) or isinstance(getattr(asked.result, "slice", None), ast.Constant)
    is_used = any(dotted_name(argument) == source for _, argument in _forwards(asked.output, file))
    is_tuple = isinstance(asked.result, ast.Call) and (dotted_name(asked.result.func) or "").endswith("grad")
    if source is None or not is_one or not is_used or is_tuple:
        return
    cut = file.segment(asked.wanted)[len(file.segment(asked.wanted.value)) :]
    end = file.span(asked.result)[1]
    yield Proposal(
        edits=(edit_of(file, asked.wanted, source), Edit(file=file.path, start=end, end=end, new=cut)),
        culprit=culprit_of(file, asked.wanted, f"is cut of `{source}` after that has entered the forward"),
        belief=2.0,
    )


def _forwards(output: ast.expr, file: SourceFile) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that an output is made by, with each of their arguments."""
    return ((call, one) for call in calls_behind(output, file) for one in call.args)


def _pieces(asked: _Asked, context: Context) -> Iterator[Proposal]:
    file, wanted = asked.file, dotted_name(asked.wanted)
    scope = scope_of(asked.wanted, file)
    made = [one for one in bounds_of(scope) if one.name == wanted and not one.fills]
    torch = next((alias for alias, target in context.program.names(file).imports.items() if target == "torch"), None)
    if wanted is None or len(made) != 1 or torch is None:
        return
    sources = {one.id for one in walk(made[0].node) if isinstance(one, ast.Name)}
    for call, argument in _forwards(asked.output, file):
        source = dotted_name(argument)
        if source is None or source not in sources or file.statement(call) is made[0].statement:
            continue
        if _is_part_of(made[0].node, call):
            continue  # `embedded = model.embed(ids)` is no input of `model(ids)`
        is_piece = isinstance(made[0].node, ast.Subscript) or made[0].pick is not None
        joined = joined_pieces(source, scope, torch) if is_piece else (wanted, made[0].statement)
        edits = _run_on(joined, call, argument, file) if joined is not None else ()
        if edits:
            yield Proposal(
                edits=edits,
                culprit=culprit_of(
                    file, call, f"runs on `{source}`; `{wanted}` was made of it and has no part in the result"
                ),
                belief=2.0,
            )
            return


def _is_part_of(made: ast.expr, run: ast.Call) -> bool:
    """Whether a value is computed by a part of the network that a call runs."""
    name = dotted_name(made.func) if isinstance(made, ast.Call) else None
    owner = dotted_name(run.func)
    return name is not None and owner is not None and name.startswith(f"{owner}.")


def _run_on(joined: tuple[str, ast.AST], call: ast.Call, argument: ast.expr, file: SourceFile) -> tuple[Edit, ...]:
    """The forward on the joined pieces; behind what makes them, where it stood before that."""
    text, last = joined
    statement = file.statement(call)
    if not isinstance(last, ast.stmt) or statement is None:
        return ()
    if statement.lineno > last.lineno:
        return (edit_of(file, argument, text),)
    block = list(block_of(statement, file))
    if not isinstance(statement, ast.Assign) or last not in block or statement not in block:
        return ()
    between = block[block.index(statement) + 1 : block.index(last) + 1]
    bound = set(binds(statement))
    if any(isinstance(node, ast.Name) and node.id in bound for one in between for node in walk(one)):
        return ()
    start = file.span(statement)[0]
    low, high = (at - start for at in file.span(argument))
    whole = file.segment(statement)
    return (remove_statement(file, statement), insert_after(file, last, whole[:low] + text + whole[high:]))
