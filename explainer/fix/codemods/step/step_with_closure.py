"""LBFGS gets the closure that it evaluates several times a step: clear, compute the loss, go backward, return the loss.

The statements of the block between the forward and `opt.step()` become `def closure():`. What only reports the loss follows
the step, clipping goes into the closure. A scaler, two losses, or a value that is read afterwards and is not the loss: no edit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.backward import Backward, cleared, find_backwards
from explainer.source.loop.ownership import owned_by
from explainer.source.loop.step import made_by
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, reaching, scope_of
from explainer.source.value.lineage import block_of, changes, lineage, loops_of, reads, statements_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_MESSAGE = "step() missing 1 required positional argument: 'closure'"
_LBFGS = ("torch.optim.LBFGS", "torch.optim.lbfgs.LBFGS")
_CLIPS = ("torch.nn.utils.clip_grad_norm_", "torch.nn.utils.clip_grad_value_")
_LEAVES = (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Break, ast.Continue)
_REBINDS = (ast.Global, ast.Nonlocal, ast.Delete)
_REPORTS = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_NAMES = ("closure", "evaluate_loss")
_WHY = "steps LBFGS without the closure that it evaluates several times"
_CLIPPED = "the line search then sees clipped gradients, which are not those of its loss"
_NOT_CLEARED = "nothing clears the gradients: in the closure they are cleared before each evaluation"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A step that lacks its closure: the statements of its block from the forward on, and the one backward among them."""

    file: SourceFile
    statement: ast.Expr
    call: ast.Call
    optimizer: str
    region: tuple[ast.stmt, ...]
    backward: Backward

    @property
    def loss(self) -> str | None:
        """The name of the loss; None where an expression is sent back as it stands."""
        return dotted_name(self.backward.loss)


def propose(context: Context) -> Iterator[Proposal]:
    """The closure of the step that failed; its line alone where the statements make none."""
    message = next((one.message for one in context.incident.exceptions if _MESSAGE in one.message), None)
    for file, statement in failing_statements(context) if message is not None else ():
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            continue
        culprit = culprit_of(file, call, _WHY)
        ready = _made_closure(statement, call, file, context.program)
        if ready:
            yield Proposal(
                edits=ready, culprit=culprit, belief=2.5,
                because="an optimizer that takes one step calls it once, LBFGS as often as it needs",
            )  # fmt: skip
            return
        is_lbfgs = "LBFGS" in (message or "") or set(made_by(call.func.value, file, context.program)) & set(_LBFGS)
        step = _step(statement, call, file, context.program) if is_lbfgs else None  # type: ignore[arg-type]
        found = _closure(step, context.program) if step is not None else None
        if found is None:
            yield Proposal(edits=(), culprit=culprit, belief=2.0)
            return
        edits, doubt = found
        risk = "unsafe" if doubt else None
        yield Proposal(edits=edits, culprit=culprit, belief=2.5, applicability=risk, because=doubt)
        return


def _made_closure(statement: ast.stmt, call: ast.Call, file: SourceFile, program: Program) -> tuple[Edit, ...]:
    """`loss = opt.step(closure)` for `loss = closure()` right before `opt.step()`, where the function clears and goes back."""
    block = list(block_of(statement, file))
    above = block[block.index(statement) - 1] if statement in block and block.index(statement) else None
    made = above.value if isinstance(above, (ast.Assign, ast.Expr)) else None
    if above is None or not isinstance(made, ast.Call) or made.args or made.keywords or call.args or call.keywords:
        return ()
    target = resolver_of(program).function_of(made, Value(made, file))
    methods = (
        {getattr(one.func, "attr", "") for one in walk(target[1]) if isinstance(one, ast.Call)} if target else set()
    )
    returns = any(isinstance(one, ast.Return) and one.value is not None for one in walk(target[1])) if target else False
    if not {"zero_grad", "backward"} <= methods or "step" in methods or not returns:
        return ()
    step = f"{file.segment(call.func)}({file.segment(made.func)})"
    return (edit_of(file, made, step), remove_statement(file, statement))


def _step(statement: ast.Expr, call: ast.Call, file: SourceFile, program: Program) -> _Step | None:
    """The step with its loss; None where the block has no backward before it, or several."""
    assert isinstance(call.func, ast.Attribute)
    optimizer = dotted_name(call.func.value)
    block = block_of(statement, file)
    before = block[: block.index(statement)] if statement in block else []
    here = [one for one in find_backwards(program) if one.file is file]
    inside = [one for one in here if _holder(one.call, before, file) is not None]
    if optimizer is None or call.args or call.keywords or len(inside) != 1:
        return None
    (backward,) = inside
    if not backward.is_plain or backward.statement not in before or _is_scaled(backward):
        return None
    live = [_holder(one, before, file) for one in _live(backward, program)]
    first = min((before.index(one) for one in live if one is not None), default=before.index(backward.statement))
    region = tuple(before[first:])
    return _Step(file=file, statement=statement, call=call, optimizer=optimizer, region=region, backward=backward)


def _holder(node: ast.AST, block: Sequence[ast.stmt], file: SourceFile) -> ast.stmt | None:
    """The statement of a block that is a node or holds it, not in a function of its own."""
    above: ast.AST | None = node
    while above is not None and not isinstance(above, _SCOPES):
        if above in block:
            return above  # type: ignore[return-value]
        above = file.parents.get(above)
    return None


def _is_scaled(backward: Backward) -> bool:
    """`scaler.scale(loss).backward()`: GradScaler takes no closure."""
    receiver = backward.call.func.value if isinstance(backward.call.func, ast.Attribute) else None
    return isinstance(receiver, ast.Call) and getattr(receiver.func, "attr", "") == "scale"


def _live(backward: Backward, program: Program) -> Iterator[ast.stmt]:
    """The statements through which a parameter reaches the loss: the data that they start from are made once a step."""
    provenance = provenance_of(program)
    for one in lineage(backward.loss, backward.statement, backward.file, program):
        value = getattr(one, "value", None)
        if isinstance(value, ast.expr) and provenance.trace(Value(value, backward.file)).live:
            yield one


def _closure(step: _Step, program: Program) -> tuple[tuple[Edit, ...], str | None] | None:
    """The edits that put the evaluation into a closure, and what is doubtful of them; None where it cannot be one."""
    kept, later = _parted(step, program)
    zeros = _zeros(step, program)
    name = next((one for one in _NAMES if not _is_known(one, step.file)), None)
    if zeros is None or name is None or not _is_whole(step, kept, later):
        return None
    clips = [one for one in kept if _is_clip(one, step, program)]
    moved = [one for one in zeros if one not in kept]
    edits = (_written(step, kept, later, zeros, name), *(remove_statement(step.file, one) for one in moved))
    return edits, _CLIPPED if clips else None if zeros else _NOT_CLEARED


def _parted(step: _Step, program: Program) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What the evaluation needs of the region, and the rest."""
    needed = lineage(step.backward.loss, step.backward.statement, step.file, program)
    kept = {one for each in needed if (one := _holder(each, step.region, step.file)) is not None}
    kept |= {one for one in step.region if one is step.backward.statement or _is_clip(one, step, program)}
    kept |= {one for one in step.region if cleared(one) is not None}
    before = 0
    while len(kept) > before:
        before = len(kept)
        wanted = {name for one in kept for name in reads(one, graph=False)}
        kept |= {one for one in step.region if (_stored(one) | changes(one)) & wanted and one not in kept
                 and one.lineno < step.backward.statement.lineno and not isinstance(one, ast.AugAssign)}  # fmt: skip
    return [one for one in step.region if one in kept], [one for one in step.region if one not in kept]


def _is_clip(statement: ast.stmt, step: _Step, program: Program) -> bool:
    """Whether a statement clips the gradients that the step is about to use."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    return program.names(step.file).is_call(value, *_CLIPS) and statement.lineno > step.backward.statement.lineno


def _zeros(step: _Step, program: Program) -> list[ast.stmt] | None:
    """What clears the gradients of the step in its block; empty where nothing does, None where it is done elsewhere."""
    file = step.file
    owned = owned_by(step.optimizer, step.call, file, program)
    scope = program.names(file).function_of(step.call) or file.tree
    loops = list(loops_of(step.statement, file))
    block = block_of(step.statement, file)
    known = [one for one in statements_of(scope) if cleared(one) is not None] if scope is not None else []
    own = [one for one in known if cleared(one) == step.optimizer or cleared(one) in owned]
    here = [one for one in own if one in block]
    others = [one for one in own if one not in block and any(loop in loops for loop in loops_of(one, file))]
    is_other = any(one in step.region and one not in here for one in known)
    return None if others or is_other or len(here) > 1 else here


def _is_known(name: str, file: SourceFile) -> bool:
    """Whether a file uses a name already."""
    functions = {node.name for node in file.walk() if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return bool(file.plain_names.get(name)) or name in functions


def _is_whole(step: _Step, kept: Sequence[ast.stmt], later: Sequence[ast.stmt]) -> bool:
    """Whether the closure can hold the statements: nothing leaves it but the loss, and nothing goes on from call to call."""
    file = step.file
    nodes = [node for one in (*kept, *later) for node in walk(one)]
    if any(isinstance(node, (*_LEAVES, *_REBINDS, *_SCOPES[:3])) for node in nodes) or not _on_own_lines(step):
        return False
    if any(isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno for node in nodes):
        return False
    if any(isinstance(node, ast.Call) and getattr(node.func, "id", "") == "next" for one in kept for node in walk(one)):
        return False
    bound = {name for one in kept for name in _stored(one)}
    if _reads_before_binding(kept, bound) or any(_leaves(name, step, kept) for name in bound if name != step.loss):
        return False
    if step.loss is None and file.plain_names.get("loss"):
        return False
    return all(_is_report(one, kept, bound - {step.loss or ""}) for one in later)


def _stored(statement: ast.stmt) -> set[str]:
    """The plain names that a statement binds, those of comprehensions left out."""
    own = {
        name.id for one in walk(statement) if isinstance(one, ast.comprehension)
        for name in walk(one.target) if isinstance(name, ast.Name)
    }  # fmt: skip
    return {one.id for one in walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)} - own


def _reads_before_binding(kept: Sequence[ast.stmt], bound: set[str]) -> bool:
    """Whether a name that the closure binds is read in it before: it would carry on from evaluation to evaluation."""
    known: set[str] = set()
    for one in kept:
        is_added = isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name) and one.target.id not in known
        inner = _stored(one) if isinstance(one, (ast.With, ast.For)) else set()
        if is_added or (reads(one, graph=False) & bound) - known - inner:
            return True
        known |= _stored(one)
    return False


def _leaves(name: str, step: _Step, kept: Sequence[ast.stmt]) -> bool:
    """Whether what the closure binds to a name is read outside of it."""
    inside = {node for one in kept for node in walk(one)}
    scope = scope_of(step.call, step.file)
    for one in step.file.plain_names.get(name, ()):
        if one in inside or not isinstance(one.ctx, ast.Load):
            continue
        around = scope_of(one, step.file)
        if around is scope and any(each.statement in inside for each in reaching(name, one, step.file)):
            return True
        is_parameter = not isinstance(around, ast.Module) and name in all_parameters(around)
        is_own = is_parameter or bool(reaching(name, one, step.file))
        if around is not scope and not is_own and _is_within(around, scope, step.file):
            return True
    return False


def _is_within(inner: ast.AST, outer: ast.AST, file: SourceFile) -> bool:
    above: ast.AST | None = inner
    while above is not None and above is not outer:
        above = file.parents.get(above)
    return above is outer


def _is_report(statement: ast.stmt, kept: Sequence[ast.stmt], bound: set[str]) -> bool:
    """Whether a statement only tells of the loss, so that it may follow the step."""
    if not isinstance(statement, _REPORTS) or reads(statement, graph=False) & bound:
        return False
    wanted = {name for one in kept for name in reads(one, graph=False)}
    acts = {node.attr for node in walk(statement) if isinstance(node, ast.Attribute)}
    is_act = any("grad" in one or one in ("step", "backward", "update") for one in acts)
    return not is_act and not (_stored(statement) | changes(statement)) & wanted


def _on_own_lines(step: _Step) -> bool:
    """Whether no two statements share a line."""
    end = 0
    for one in (*step.region, step.statement):
        if one.lineno <= end or step.file.line(one.lineno)[: one.col_offset].strip():
            return False
        end = one.end_lineno or one.lineno
    return True


def _written(
    step: _Step, kept: Sequence[ast.stmt], later: Sequence[ast.stmt], zeros: Sequence[ast.stmt], name: str
) -> Edit:
    """The region and the step as the closure, the step that is given it, and what reports the loss."""
    file, newline = step.file, step.file.newline
    indent, unit = file.indent(step.statement.lineno), _unit(step)
    loss = step.loss or "loss"
    cleared_first = [file.segment(one) for one in zeros if one not in kept] or (
        [f"{step.optimizer}.zero_grad()"] if not zeros else []
    )
    lines = [f"{indent}def {name}():", *(f"{indent}{unit}{one}" for one in cleared_first)]
    for one in kept:
        lines += [f"{unit}{line}" if line.strip() else line for line in _text(one, step, loss)]
    value = f"{step.optimizer}.step({name})"
    is_read = step.loss is not None and ("." in loss or _leaves(loss, step, kept))
    lines += [f"{indent}{unit}return {loss}", "", *_text(step.statement, step, loss)[:-1]]
    lines += [f"{indent}{loss} = {value}" if is_read else f"{indent}{value}"]
    for one in later:
        lines += _text(one, step, loss)
    start = file.line_start(step.region[0].lineno)
    end = file.line_start((step.statement.end_lineno or 0) + 1)
    tail = newline if file.text[start:end].endswith(("\n", "\r")) else ""
    return Edit(file=file.path, start=start, end=end, new=newline.join(lines) + tail)


def _text(statement: ast.stmt, step: _Step, loss: str) -> list[str]:
    """The lines of a statement, with the comments over it; the backward of an expression as two lines."""
    file = step.file
    ends = [one.end_lineno or one.lineno for one in step.region if one.lineno < statement.lineno]
    first = max(ends) + 1 if ends else statement.lineno
    lines = [file.line(at).rstrip("\r\n") for at in range(first, (statement.end_lineno or 0) + 1)]
    lines = [line for line in lines[: statement.lineno - first] if line.strip()] + lines[statement.lineno - first :]
    if statement is step.backward.statement and step.loss is None:
        start, end = file.span(step.backward.loss)
        begin, stop = file.span(statement)
        indent = file.indent(statement.lineno)
        made = f"{indent}{loss} = {file.text[start:end]}"
        return [*made.split(file.newline), f"{indent}{file.text[begin:start]}{loss}{file.text[end:stop]}"]
    return lines


def _unit(step: _Step) -> str:
    """One step of indentation, as the block around has it."""
    indent = step.file.indent(step.statement.lineno)
    above = step.file.parents.get(step.statement)
    outer = step.file.indent(above.lineno) if isinstance(above, ast.stmt) else ""
    return indent.removeprefix(outer) or ("\t" if "\t" in step.file.text else "    ")
