"""Takes out the cut that a trace saw on the way to the loss, where the source alone does not show that a tensor comes by.

`torch.tensor([float(x) for x in losses])` in a helper may be given numbers: that these were tensors which required grad is
what the trace adds. The line is read as in `reconnect_graph`, which follows the loss itself. With `options["steps"]` the
hard decisions of the line give way to what they decide on: of several losses that a name may stand for, one takes them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.graph.beside_entry import beside_entry, records_at
from explainer.fix.graph.detachment import PUTS
from explainer.fix.graph.uncut import uncut
from explainer.fix.loss.pooled import find_pooled
from explainer.fix.splice import splice
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.model.trace import CUT, CUT_STATE, DEAD_TERM, STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.graph.cut import ARRAY, COPY, DATA, DETACH, LIBRARY, STEP, VALUE, Cut, cut_of
from explainer.source.graph.write import is_container
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import children, walk
from explainer.source.value.binding import Value, all_parameters
from explainer.source.value.resolve import resolver_of

_VALUES = frozenset((DETACH, DATA, VALUE, ARRAY, COPY, LIBRARY))
_ON_PURPOSE = re.compile(
    r"target|teacher|label|baseline|old|ema|momentum|advantage|next|prev|frozen|reference|ref_|anchor|log|print|metric",
    re.IGNORECASE,
)
_PROBABILITY = re.compile(r"sigmoid|softmax|prob")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that takes values out of the graph."""
    is_of_terms, is_of_states = bool(context.options.get("terms")), bool(context.options.get("states"))
    if context.options.get("steps"):
        yield from _softened(context)
        return
    # A term of the loss changes the gradients of all that goes into it, and the other fix says so.
    seen = set() if is_of_terms else {statement for _, _, statement in traced_statements(DEAD_TERM, context)}
    for kind in (DEAD_TERM,) if is_of_terms else (CUT_STATE,) if is_of_states else (CUT, STARVING_CUT):
        for line, file, statement in traced_statements(kind, context, guesses=kind == CUT):
            if line.is_guess and not _converts(statement, file, context.program):
                continue
            if statement in seen or (kind == STARVING_CUT and _is_write(statement, file, context.program)):
                continue  # what a write goes through: `write_parameter_seen` asks whether torch allows it without
            seen.add(statement)
            if _is_record(statement, file, context.program):
                continue  # `copy_beside_entry` leaves the record its copy
            if kind == STARVING_CUT and any(find_pooled(statement, file, context.program)):
                continue  # a pool that outlives the step is right to hold no graph: `train_on_what_was_made`
            cuts = list(_cuts(statement, file, context.program))
            again = _made_tensors_again(statement, file, context.program) if cuts else []
            edits = _uncut([*cuts, *again], context.program)
            if edits and _is_idle(statement, edits, file):
                edits = (remove_statement(file, statement),)
            if edits and again:
                edits += tuple(_numbers_elsewhere(statement, again, file, context.program))
            elif edits and kind == DEAD_TERM:
                edits += tuple(_numbers_kept(statement, file, context.program))
            if edits:
                belief = 0.5 - (1.5 if _ON_PURPOSE.search(file.line(line.line)) else 0.0)
                yield Proposal(edits=edits, culprit=culprit_of(file, statement, line.says), belief=belief)


def _converts(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement makes a tensor by its type, in which torch reads numbers of tensors without telling what came of them."""
    calls = (node for node in walk(statement) if isinstance(node, ast.Call))
    return any(program.names(file).is_call(one, "torch.FloatTensor", "torch.Tensor") for one in calls)


def _softened(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line whose hard decisions are all of probabilities, which are their soft form."""
    for line, file, statement in traced_statements(CUT, context):
        cuts = list(_cuts(statement, file, context.program, frozenset((STEP,))))
        edits = _uncut(cuts, context.program)
        if edits and all(_is_of_probability(one, context.program) for one in cuts):
            yield Proposal(edits=edits, culprit=culprit_of(file, statement, line.says), belief=1.5)


def _is_of_probability(cut: Cut, program: Program) -> bool:
    if not isinstance(cut.node, ast.Compare):
        return False
    decided = Value(cut.node.left, cut.file)
    made = [decided, *resolver_of(program).behind(decided)]
    return any(_PROBABILITY.search(_made_by(one.node)) for one in made)


def _made_by(node: ast.AST) -> str:
    """The name of a value, or of the call that makes it, whatever views are taken of it: `sigmoid` of `torch.sigmoid(x)[:, 0]`."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        inner = node.value if isinstance(node, ast.Subscript) else node.func
        if isinstance(inner, ast.Attribute) and (_PROBABILITY.search(inner.attr) or isinstance(inner.value, ast.Name)):
            return inner.attr
        node = inner.value if isinstance(inner, ast.Attribute) else inner
    return (dotted_name(node.func if isinstance(node, ast.Call) else node) or "").rpartition(".")[2]


def _is_write(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement writes a tensor in place; not one that puts it into a dictionary or list."""
    if isinstance(statement, ast.Assign):
        parts = [one for one in statement.targets if isinstance(one, ast.Subscript)]
        return any(not is_container(one, file, program) for one in parts)
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
    return is_method or isinstance(statement, ast.AugAssign)


def _is_record(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a statement makes a copy that a record is to have, and an edit leaves the entry beside it as it was."""
    return any(beside_entry([one], program) for one in records_at(statement, file, program))


def _is_idle(statement: ast.stmt, edits: tuple[Edit, ...], file: SourceFile) -> bool:
    """Whether a statement says nothing once it is edited: `h = h`, `state = tuple(part for part in state)`, `h`."""
    start, end = file.span(statement)
    own = [replace(one, start=one.start - start, end=one.end - start) for one in edits]
    if not isinstance(statement, (ast.Assign, ast.Expr)) or any(
        one.start < 0 or one.end > end - start or one.file != file.path for one in own
    ):
        return False
    text = splice(file.text[start:end], own)
    left = ast.parse(text).body[0] if text is not None else statement
    if isinstance(left, ast.Assign) and len(left.targets) == 1:
        value = left.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("tuple", "list"):
            value = value.args[0] if len(value.args) == 1 else value
        if isinstance(value, (ast.GeneratorExp, ast.ListComp)) and len(value.generators) == 1:
            turn = value.generators[0]
            value = turn.iter if ast.unparse(turn.target) == ast.unparse(value.elt) and not turn.ifs else value
        return ast.unparse(left.targets[0]) == ast.unparse(value)
    return isinstance(left, ast.Expr) and isinstance(left.value, (ast.Name, ast.Attribute))


def _cuts(statement: ast.stmt, file: SourceFile, program: Program, kinds: frozenset[str] = _VALUES) -> Iterator[Cut]:
    queue: list[ast.AST] = [statement]
    while queue:
        node = queue.pop(0)
        cut = cut_of(node, file, program) if isinstance(node, ast.expr) else None
        if cut is not None and cut.kind in kinds:
            yield cut
        queue.extend(one for one in children(node) if not isinstance(one, ast.stmt))


def _made_tensors_again(statement: ast.stmt, file: SourceFile, program: Program) -> list[Cut]:
    """`torch.tensor(values)` further down, of the name that a statement binds numbers to."""
    copies = (cut_of(one, file, program) for one in _function_of(statement, file, program) if isinstance(one, ast.Call))
    return [
        one
        for one in copies
        if one is not None and one.kind == COPY and isinstance(one.node, ast.Call) and one.node.args
        and _is_of(one.node.args[0], statement)
    ]  # fmt: skip


def _numbers_elsewhere(statement: ast.stmt, tensors: list[Cut], file: SourceFile, program: Program) -> Iterator[Edit]:
    """What else is done with those numbers, a log above all, is done with numbers still."""
    again = {id(one.node.args[0]) for one in tensors if isinstance(one.node, ast.Call)}
    if not again or not isinstance(statement, ast.Assign):
        return
    is_list = isinstance(statement.value, (ast.ListComp, ast.List))
    for node in _function_of(statement, file, program):
        if _is_of(node, statement) and id(node) not in again and isinstance(getattr(node, "ctx", None), ast.Load):
            name = file.segment(node)
            yield edit_of(file, node, f"[one.item() for one in {name}]" if is_list else f"{name}.item()")


def _is_handed_back(statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether the function returns the very name that a statement binds."""
    return any(
        isinstance(one, ast.Return) and one.value is not None and _is_of(one.value, statement)
        for one in _function_of(statement, file, program)
    )


def _numbers_kept(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[Edit]:
    """What adds those numbers up or stores them keeps numbers: tensors would keep the graph of each step."""
    function = program.names(file).function_of(statement)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return
    if all(one.kind != VALUE for one in _cuts(statement, file, program)) or not _is_handed_back(
        statement, file, program
    ):
        return  # what is put away may itself be what the loss reads
    may_be_number = function is not None and statement.targets[0].id in all_parameters(function)
    for node in _function_of(statement, file, program):
        if not _is_of(node, statement) or not isinstance(getattr(node, "ctx", None), ast.Load):
            continue
        other, call = file.statement(node), file.enclosing(node, ast.Call)
        is_put = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in PUTS
        if is_put or (isinstance(other, ast.AugAssign) and not isinstance(other.target, ast.Name)):
            name = file.segment(node)
            number = f"{spell(program.names(file), 'torch.as_tensor')}({name})" if may_be_number else name
            yield edit_of(file, node, f"{number}.item()")


def _is_of(node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a node is the name that a statement binds, further down."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name) or not isinstance(node, ast.Name):
        return False
    return node.id == target.id and node.lineno > (statement.end_lineno or 0)


def _function_of(statement: ast.stmt, file: SourceFile, program: Program) -> Iterator[ast.AST]:
    """The nodes of the function that a statement stands in."""
    return walk(program.names(file).function_of(statement) or file.tree or statement)


def _uncut(cuts: list[Cut], program: Program) -> tuple[Edit, ...]:
    """The edits of all cuts of a line; none where one of them has no form that keeps the graph."""
    edits: list[Edit] = []
    for cut in cuts:
        found = uncut(cut, program)
        if found is None:
            return ()
        edits += [one for one in found if one not in edits]
    return tuple(edits)
