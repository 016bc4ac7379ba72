"""Switches grad mode on where a gradient is taken inside of somebody's `no_grad`: `with torch.enable_grad():`.

An attack or a saliency map in an evaluation, a model whose output is a derivative (forces of an energy, the residual of an
equation), also where it is a library that evaluates. What needs the graph gets the block, from the leaf on; a method that does
nothing behind it the decorator. An evaluation that leaves grad mode off behind it gets `no_grad` as its decorator instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from explainer.fix.clue.crash import has_stepped
from explainer.fix.clue.failure import backward_roots, failing_statements, statements_at
from explainer.fix.codemod import Context, Proposal, culprit_of, insert_before, remove_statement
from explainer.fix.graph.differentiated import Part, asks_for_gradient, find_part, reaches_backward
from explainer.fix.graph.inference_mode import inference_modes, without_inference
from explainer.fix.text.rewrite import in_block, put_method, spell
from explainer.model.incident import Frame
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.cut import Cut, asks_for, grad_mode_cut, grad_state
from explainer.source.loop.backward import find_backwards
from explainer.source.name import bound_names
from explainer.source.tree import walk
from explainer.source.value.binding import Value, walk_scope
from explainer.source.value.lineage import binds, block_of, loops_of, reads
from explainer.source.value.provenance import provenance_of

# What a library calls its evaluation; `torch.optim.swa_utils.update_bn` and its like are decorated.
_EVALUATES = re.compile(
    r"_?(?:run_)?(?:eval|evaluate|evaluation|predict|prediction|validate|validation|val|test)(?:_\w+)?|inference\w*",
    re.IGNORECASE,
)
_DECORATED = "decorate_context"
# Where torch itself runs a program's code without grad mode, and another edit is right.
_OWN_MODES = ("torch/utils/checkpoint.py", "torch/autograd/function.py")
_BACKWARD = ("backward", "vjp")  # of a custom Function: what it differentiates is computed there once more
_LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
_HOOK = "cannot register a hook on a tensor"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit round the computation whose gradient is asked for, and one for each switch that is left off."""
    is_hook = any(_HOOK in one.message for one in context.incident.exceptions)
    if not context.has_failed or (is_hook and has_stepped(context)):
        return  # in training a hook that a forward registers was taken
    provenance = provenance_of(context.program)
    if _is_seen_off(context) or all(provenance.trace(one).live for one in backward_roots(context)):
        yield from _under_callers(context)
        yield from _left_off(context)


def _is_seen_off(context: Context) -> bool:
    """Whether the live program had grad mode off where it failed."""
    fact = context.incident.fact("live_grad_enabled")
    return fact is not None and fact.value == "no"


def _under_callers(context: Context) -> Iterator[Proposal]:
    """The innermost frame computes a loss; a frame outside of it, or a library that evaluates, has switched grad mode off."""
    places = failing_statements(context)
    cuts = [
        (at, cut) for at, (file, one) in enumerate(places) if at and (cut := grad_mode_cut(one, file, context.program))
    ]
    if any(_holds_backward(cut, context) for _, cut in cuts):
        return  # the switch is the fault: what it covers is to be trained
    inside, is_told = (places[: cuts[0][0] + 1], True) if cuts else _inside_library(context)
    if not inside or any(_is_enabled(one, file, context) for file, one in inside[: 1 if cuts else None]):
        return
    part = find_part(inside, context.program)
    if part is None and (cuts or (is_told and asks_for_gradient(inside[0][1], inside[0][0], context.program, depth=0))):
        part = _by_provenance(*inside[0], context)
    edits = _switched_on(part, context) if part is not None else ()
    if part is None or not edits:
        return
    if cuts and part.is_handed_out and reaches_backward(places[cuts[0][0] :], context.program):
        kept = _detached(part, places[cuts[0][0]])
        if kept is None:
            return  # the loss would go back through what was meant to be a constant
        edits = (*edits, kept)
    yield Proposal(
        edits=(*edits, *(edit for _, cut in cuts for edit in _left_inference(cut, context))),
        culprit=culprit_of(
            part.file, part.statements[0], "computes what is differentiated while the caller has switched grad mode off"
        ),
        belief=2.0 if is_told else 1.2,
        because="the memory of these activations, during this call only",
        is_origin=not cuts,
    )


def _holds_backward(cut: Cut, context: Context) -> bool:
    """Whether what switches grad mode off covers a backward of its own function."""
    return any(
        one.file is cut.file
        and (found := grad_mode_cut(one.statement, one.file, context.program))
        and found.node is cut.node
        for one in find_backwards(context.program)
    )


def _detached(part: Part, caller: tuple[SourceFile, ast.stmt]) -> Edit | None:
    """The tensor that a call gives in the block without grad, detached; None where it gives more than one."""
    file, statement = caller
    name = part.function.name
    calls = [one for one in walk(statement) if isinstance(one, ast.Call)]
    calls = [one for one in calls if name in ("forward", "__call__", ast.unparse(one.func).rpartition(".")[2])]
    returns = [one.value for one in walk(part.function) if isinstance(one, ast.Return) and one.value is not None]
    value = statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None
    is_unpacked = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List))
    if value is None or is_unpacked or len(calls) != 1:
        return None
    is_item = isinstance(value, ast.Subscript) and value.value is calls[0]
    is_tensor = value is calls[0] and all(_is_tensor(one) for one in returns)
    return put_method(file, value, ".detach()") if is_item or is_tensor else None


def _is_tensor(value: ast.expr) -> bool:
    """Whether what a function returns is no tuple, dictionary or object of a class of outputs."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
        return False
    return isinstance(value, (ast.Name, ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript))


def _inside_library(context: Context) -> tuple[list[tuple[SourceFile, ast.stmt]], bool]:
    """The statements that run inside of the library's evaluation which has switched grad mode off, and whether a frame tells it.

    None where grad mode was not seen to be off either.
    """
    records = [one for one in context.incident.exceptions if any(frame.library is None for frame in one.frames)]
    frames = records[-1].frames if records else ()
    if _is_own_mode(frames) or _is_inference(frames, context):
        return [], False
    others = [at for at, one in enumerate(frames) if one.library not in (None, "torch", "python")]
    evaluating = [at for at in others if _EVALUATES.fullmatch(frames[at].function or "")]
    evaluating += [at for at, one in enumerate(frames) if one.library == "torch" and one.function == _DECORATED]
    if not evaluating and not _is_seen_off(context):
        return [], False
    last = max(evaluating or others, default=-1)
    return statements_at([one for one in frames[last + 1 :] if one.library is None], context), bool(evaluating)


def _is_own_mode(frames: Sequence[Frame]) -> bool:
    """Whether torch runs the program's code without grad mode, and not as the backward of a custom Function."""
    inside = [at for at, one in enumerate(frames) if one.file.replace("\\", "/").endswith(_OWN_MODES)]
    return any(getattr(next(iter(frames[at + 1 :]), None), "function", None) not in _BACKWARD for at in inside)


def _is_inference(frames: Sequence[Frame], context: Context) -> bool:
    """Whether Lightning runs it in inference mode, which no `enable_grad` ends."""
    return any(one.library in _LIGHTNING for one in frames) and not any(
        isinstance(node, ast.Call) and asks_for(node, "inference_mode", value=False)
        for file in context.program.parsed()
        for node in file.walk()
    )


def _by_provenance(file: SourceFile, failing: ast.stmt, context: Context) -> Part | None:
    """From the first module that runs for what a statement differentiates, where no leaf is made beside it.

    A loop whose next round takes up what this one makes of the gradient is the part as a whole.
    """
    function = context.program.names(file).function_of(failing)
    block = list(block_of(failing, file))
    if function is None or not block:
        return None
    statements = block[_first(block, failing, file, context) : block.index(failing) + 1]
    read = {name for one in statements for name in reads(one)}
    for loop in loops_of(failing, file):
        later = [one for one in walk(loop) if isinstance(one, ast.stmt) and one.lineno > failing.lineno]
        if any(binds(one) & read for one in later):
            statements = [loop]
    return Part(file, function, statements)


def _switched_on(part: Part, context: Context) -> tuple[Edit, ...]:
    """The statements in a block; the decorator on a method that ends with them."""
    file, function = part.file, part.function
    mode = f"{spell(context.program.names(file), 'torch.enable_grad')}()"
    if part.is_to_the_end and isinstance(function, ast.FunctionDef) and not function.decorator_list:
        return (insert_before(file, function, f"@{mode}"),)
    return in_block(file, part.statements, f"with {mode}:")


def _left_inference(cut: Cut, context: Context) -> Iterator[Edit]:
    """`torch.no_grad` for inference mode, which stays on whatever is enabled in it."""
    contexts = [one.context_expr for one in cut.node.items] if isinstance(cut.node, ast.With) else [cut.node]
    for use in inference_modes(cut.file, context.program):
        if any(use is node for one in contexts for node in walk(one)):
            yield from without_inference(cut.file, use)


def _is_enabled(node: ast.AST, file: SourceFile, context: Context) -> bool:
    """Whether the failing statement has switched grad mode on for itself, or off."""
    names = context.program.names(file)
    above = file.parents.get(node)
    while above is not None and not isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if isinstance(above, ast.With) and any(grad_state(one.context_expr, names) is not None for one in above.items):
            return True
        above = file.parents.get(above)
    decorators = getattr(above, "decorator_list", ())
    return any(grad_state(one, names) is not None for one in decorators)


def _first(block: list[ast.stmt], failing: ast.stmt, file: SourceFile, context: Context) -> int:
    """The index of the first statement of the block that runs a module for what the failing one differentiates."""
    end = block.index(failing)
    wanted = {one.id for one in walk(failing) if isinstance(one, ast.Name)}
    first = end
    for at in range(end - 1, -1, -1):
        statement = block[at]
        value = getattr(statement, "value", None)
        if not wanted & set(bound_names(statement)) or value is None:
            continue
        trace = provenance_of(context.program).trace(Value(value, file))
        runs = any(isinstance(one, ast.Call) and one in trace.sources for one in walk(statement))
        is_leaf = isinstance(value, ast.Call) and getattr(value.func, "attr", "") in ("requires_grad_", "detach")
        if trace.live and runs and not is_leaf:
            first = at
            wanted |= {one.id for one in walk(statement) if isinstance(one, ast.Name)}
    return first


def _left_off(context: Context) -> Iterator[Proposal]:
    """A function that calls `torch.set_grad_enabled(False)` and never switches it on again."""
    for file, function in context.program.functions():
        names = context.program.names(file)
        switches = [
            one
            for one in walk_scope(function)
            if isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and grad_state(one.value, names) is not None
        ]
        is_off = len(switches) == 1 and grad_state(switches[0].value, names) is False
        if not is_off or _has_backward(function) or function.name == "__enter__":
            continue
        if any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in walk_scope(function)):
            continue  # a decorator ends where a generator is made
        torch = next((alias for alias, target in names.imports.items() if target == "torch"), None)
        if torch is not None:
            yield Proposal(
                edits=(remove_statement(file, switches[0]), insert_before(file, function, f"@{torch}.no_grad()")),
                culprit=culprit_of(
                    file, switches[0], "switches grad mode off for all that follows, not only for this function"
                ),
                belief=2.0,
            )


def _has_backward(function: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in walk_scope(function))
