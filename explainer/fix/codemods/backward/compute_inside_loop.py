"""What is computed from trained weights before the loop is computed in each round of it, or detached where it is a constant.

So is what a loss is computed from that a helper runs the backward of, `update(policy, optimizer, loss)`. A value whose module
also runs in the loop on purpose (old log-probabilities beside new ones) is a constant: it is detached. A part of a module that
`__init__` computes from a parameter is computed in the method that reads it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, lines_of, remove_statement
from explainer.fix.data.run import modules_in, modules_run
from explainer.fix.text.rewrite import put_method, spell
from explainer.model.patch import Edit
from explainer.model.trace import ONCE_MADE
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.loop.backward import Backward, find_backwards, stepped
from explainer.source.loss.weighting import SETTINGS
from explainer.source.name import Function, bound_names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bounds_of
from explainer.source.value.flow import Reach, arguments_of, flow_of
from explainer.source.value.lineage import (
    before,
    binds,
    block_of,
    lineage,
    loops_of,
    reads,
    scope_of,
    sources,
    statements_of,
    value_of,
)
from explainer.source.value.nesting import nesting_of
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_RENEWED = "it may as well be a constant that each epoch renews: then it is computed under `no_grad`"
_FOR_LATER = "Give the loop's losses the value as data: `critic(fake.detach())`"
_TRAINED_BEHIND = "what made it is trained by the loss behind the loop, whose backward still has the graph"
_MODULES = ("torch.nn.", "torch.optim.")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each value that a loss in a loop takes from before the loop."""
    if not context.has_failed:
        return
    made = {statement for _, _, statement in traced_statements(ONCE_MADE, context, guesses=True)}
    for backward in find_backwards(context.program):
        yield from _from_before(backward, made, context.program)
        yield from _from_closure(backward, context.program)
        for call in _by_helper(backward, context.program):
            yield from _from_before(call, made, context.program)
    for file in context.program.parsed():
        for owner in context.program.names(file).classes.values():
            yield from _from_init(file, owner, context.program)


def _from_before(backward: Backward, made: set[ast.stmt], program: Program) -> Iterator[Proposal]:
    """Lines of a loss that stand before the innermost loop that runs its backward; those in `made` a trace knows to make a graph."""
    file = backward.file
    for loop in list(loops_of(backward.statement, file))[:2]:
        lines = sources(backward.loss, backward.statement, file, program)
        outside = [
            (one, part)
            for one, part in lines
            if before(one, loop) and (one in made or _is_graph(one, part, file, program))
        ]
        if not outside:
            continue
        moved = list(dict.fromkeys(one for one, _ in outside))
        names = set[str]().union(*(binds(one) for one in moved))
        if any(names & binds(one) for one, _ in lines if one not in moved):
            continue  # carried on from step to step
        if _takes_another(loop, names, file):
            return
        yield from _proposals(backward, loop, moved, names, program)
        return


def _by_helper(backward: Backward, program: Program) -> Iterator[Backward]:
    """The calls, in loops, of a function that runs the backward of a loss which it is given."""
    function = program.names(backward.file).function_of(backward.call)
    name = getattr(backward.loss, "id", None)
    if function is None or name not in all_parameters(function) or any(one.name == name for one in bounds_of(function)):
        return
    for file, call in resolver_of(program).calls_of(function, backward.file):
        loss = dict(arguments_of(call, function)).get(name)
        if loss is not None and loops_of(file.statement(call), file):
            yield Backward(file=file, call=call, loss=loss)


def _takes_another(loop: ast.For | ast.While, names: set[str], file: SourceFile) -> bool:
    """Whether each round takes another part as a whole, `losses[task.name]`: several losses of one graph, each used once."""
    targets = set(bound_names(loop)) if isinstance(loop, ast.For) else set()
    return any(
        isinstance(node, ast.Subscript)
        and dotted_name(node.value) in names
        and not isinstance(file.parents.get(node), ast.BinOp)
        and any(isinstance(one, ast.Name) and one.id in targets for one in walk(node.slice))
        for node in walk(loop)
    )


def _proposals(
    backward: Backward, loop: ast.For | ast.While, moved: list[ast.stmt], names: set[str], program: Program
) -> Iterator[Proposal]:
    file = backward.file
    readers = [one for one in loop.body if reads(one, graph=False) & names]
    why = f"is computed once, and its graph is gone after the first backward of the loop in line {loop.lineno}"
    culprit = culprit_of(file, moved[-1], why)
    detached = tuple(_constant(one, file, program) for one in moved[-1:] if isinstance(one, ast.Assign))
    is_constant = _runs_again(moved, loop, file)
    is_renewed = any(_is_renewed(one, backward, loop, program) for one in moved)
    cut = _cut_in_loop(backward, loop, names, program) if not is_constant else ()
    if cut:
        yield Proposal(edits=cut, culprit=culprit, belief=2.0, title=_FOR_LATER, because=_TRAINED_BEHIND)
    kind = "display" if is_renewed else None
    because = _RENEWED if is_renewed else None
    if readers and not is_constant and all(_only_for(loop, one, file, program) for one in moved):
        text = "\n".join(file.segment(one) for one in moved)
        edits = (*(remove_statement(file, one) for one in moved), insert_before(file, readers[0], text))
        yield Proposal(edits=edits, culprit=culprit, belief=1.6, applicability=kind, because=because)
    elif readers and not is_constant and all(isinstance(one, ast.Assign) for one in moved):
        # Others read it too, before the loop or behind it: it stays there, and is computed anew in each round.
        text = "\n".join(file.segment(one) for one in moved)
        edits = (insert_before(file, readers[0], text),)
        yield Proposal(edits=edits, culprit=culprit, belief=1.5, applicability=kind, because=because)
    if detached:
        yield Proposal(
            edits=detached,
            culprit=culprit,
            belief=1.7 if is_constant else 0.4,
            applicability=None if is_constant else kind or "unsafe",
            because="right where the value is a constant of the training; what made it gets no gradient from this loss",
            title="Detach it: a constant of the training",
        )


def _cut_in_loop(backward: Backward, loop: ast.For | ast.While, names: set[str], program: Program) -> tuple[Edit, ...]:
    """`.detach()` on each use in a loop that steps by itself, where a loss behind the loop goes back through the value as well.

    `critic(fake)` in the rounds of a critic: the generator learns of the loss that follows them.
    """
    file = backward.file
    block = list(block_of(loop, file))
    behind = block[block.index(loop) + 1 :] if loop in block else []
    later = [
        one
        for one in find_backwards(program)
        if one.file is file
        and one.statement in behind
        and any(
            each in behind and reads(part) & names for each, part in sources(one.loss, one.statement, file, program)
        )
    ]
    if not later or not any(stepped(one) for one in walk(loop) if isinstance(one, ast.stmt)):
        return ()
    uses = [
        one
        for one in walk(loop)
        if isinstance(one, ast.Name) and one.id in names and isinstance(one.ctx, ast.Load)
        and isinstance(file.parents.get(one), (ast.Call, ast.BinOp))
    ]  # fmt: skip
    read = [one for one in walk(loop) if isinstance(one, ast.Name) and one.id in names]
    return tuple(put_method(file, one, ".detach()") for one in uses) if len(uses) == len(read) else ()


def _is_renewed(statement: ast.stmt, backward: Backward, loop: ast.For | ast.While, program: Program) -> bool:
    """Whether each epoch runs a network on what its batches share, and the loss runs the same network on the batch as well.

    A catalogue that one tower encodes for all queries may be meant to train it, or as an index that is renewed now and then.
    """
    file = backward.file
    value = statement.value if isinstance(statement, ast.Assign) else None
    ran = list(modules_run(value, file, program)) if isinstance(value, ast.Call) else []
    if not ran or all(statement not in set(walk(outer)) for outer in loops_of(loop, file)):
        return False
    makers = resolver_of(program).constructors_of
    shared = {made.node for one in ran for made in makers(Value(one, file))}
    inside = set(walk(statement))
    sources = set(provenance_of(program).trace(Value(backward.loss, file)).sources) - inside
    return any(shared & {made.node for made in makers(one)} for one in modules_in(sources, program))


def _constant(statement: ast.Assign, file: SourceFile, program: Program) -> Edit:
    """The value detached; computed under `no_grad` where it may be a tuple or dictionary of tensors."""
    is_plain = (
        isinstance(statement.targets[0], ast.Name) and not nesting_of(statement.value, file, program).is_container
    )
    if is_plain and not isinstance(statement.value, ast.DictComp | ast.ListComp | ast.Dict | ast.List | ast.Tuple):
        return put_method(file, statement.value, ".detach()")
    torch = spell(program.names(file), "torch.no_grad")
    text = "\n".join(f"    {line}" for line in lines_of(file, statement).split("\n"))
    return edit_of(
        file, statement, f"with {torch}():\n{text}".replace("\n", file.newline + file.indent(statement.lineno))
    )


def _is_graph(statement: ast.stmt, part: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a line computes something of trained weights, rather than making a module, a parameter or data."""
    if not isinstance(statement, ast.Assign) or not isinstance(
        part, (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.UnaryOp)
    ):
        return False
    if not any(isinstance(node, (ast.Call, ast.BinOp)) for node in walk(part)):
        return False
    for node in walk(part):
        called = program.names(file).qualified(node.func) if isinstance(node, ast.Call) else None
        if called and (
            called == "torch.nn.Parameter" or (called.startswith(_MODULES) and called.rpartition(".")[2][:1].isupper())
        ):
            return False
        if called and program.find_class(called) is not None:
            return False
        if isinstance(node, ast.keyword) and node.arg == "requires_grad":
            return False
    if (
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Attribute)
        and part.func.attr in ("requires_grad_", "to", "cuda")
    ):
        return False
    if _reads_weights(part) or flow_of(program).reach_of(part, file) == Reach.SURE:
        return True
    return not is_without_grad(statement, file, program) and provenance_of(program).trace(Value(part, file)).live


def _reads_weights(part: ast.expr) -> bool:
    """Whether an expression computes with weights by name: `net.fc.weight`, `sum(p.pow(2).sum() for p in net.parameters())`."""
    for node in walk(part):
        if isinstance(node, ast.Attribute) and node.attr in ("weight", "bias"):
            return (dotted_name(node.value) or "").rpartition(".")[2] not in SETTINGS
        if isinstance(node, ast.comprehension) and isinstance(node.iter, ast.Call):
            return getattr(node.iter.func, "attr", "") == "parameters"
    return False


def _runs_again(moved: list[ast.stmt], loop: ast.AST, file: SourceFile) -> bool:
    """Whether the loop calls what made the value: then the value before it is the old one, kept on purpose."""
    del file
    made = {dotted_name(node.func) for one in moved for node in walk(one) if isinstance(node, ast.Call)}
    own = {name for name in made if name and not name.startswith(("torch.", "nn.", "F."))}
    again = {dotted_name(node.func) for node in walk(loop) if isinstance(node, ast.Call)}
    return bool({name for name in own & again if name and "." not in name.removeprefix("self.")})


def _only_for(loop: ast.AST, statement: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether nothing outside of the loop reads what the statement binds, but for statements that move with it."""
    scope = scope_of(statement, file, program)
    names = binds(statement)
    for one in statements_of(scope) if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) else ():
        is_inside = loop.lineno <= one.lineno <= (loop.end_lineno or 0)  # type: ignore[attr-defined]
        if is_inside or one is statement or not names & reads(value_of(one) or one, graph=False):
            continue
        if not before(one, loop) or not isinstance(one, ast.Assign):  # type: ignore[arg-type]
            return False
    return True


def _from_closure(backward: Backward, program: Program) -> Iterator[Proposal]:
    """A closure that calls backward on a loss made outside of it: the lines of the loss move into it."""
    file, function = backward.file, program.names(backward.file).function_of(backward.call)
    name = dotted_name(backward.loss)
    if function is None or name is None or lineage(backward.loss, backward.statement, file, program):
        return
    if name in {one.arg for one in function.args.args}:
        return
    outer = scope_of(function, file, program)
    at = function if outer is not None else None
    made = (
        [one for one in sources(backward.loss, at, file, program) if _is_graph(*one, file, program)]
        if at is not None
        else []
    )
    moved = list(dict.fromkeys(one for one, _ in made))
    if not moved or any(not isinstance(one, ast.Assign) for one in moved):
        return
    text = "\n".join(file.segment(one) for one in moved)
    yield Proposal(
        edits=(*(remove_statement(file, one) for one in moved), insert_before(file, backward.statement, text)),
        culprit=culprit_of(
            file, moved[-1], f"is computed once, and `{function.name}` calls backward on it again and again"
        ),
        belief=1.6,
    )


def _from_init(file: SourceFile, owner: ast.ClassDef, program: Program) -> Iterator[Proposal]:
    """`self.scale = self.log_scale.exp()` of a constructor becomes a local of the method that reads it."""
    init = next((one for one in owner.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    for statement in statements_of(init) if init is not None else ():
        names = [name for name in binds(statement) if name.startswith("self.")]
        if (
            len(names) != 1
            or not isinstance(statement, ast.Assign)
            or not _is_derived(statement.value, init, owner, file, program)
        ):
            continue
        methods = [
            one
            for one in owner.body
            if isinstance(one, ast.FunctionDef) and one is not init and names[0] in reads(one, graph=False)
        ]
        if not methods or any(names[0] in binds(one) for method in methods for one in statements_of(method)):
            continue
        yield Proposal(
            edits=_inlined(file, statement, names[0], methods),
            culprit=culprit_of(file, statement, f"computes `{names[0]}` once, from a parameter that each step changes"),
            belief=1.6,
        )


def _is_derived(
    value: ast.expr, init: Function | None, owner: ast.ClassDef, file: SourceFile, program: Program
) -> bool:
    """Whether a value of the constructor is computed from a parameter or a module's weights."""
    names = {name for name in reads(value) if name.startswith("self.")}
    if not names or init is None or isinstance(value, (ast.Attribute, ast.Name)):
        return False
    called = program.names(file).qualified(value.func) if isinstance(value, ast.Call) else ""
    if called and called.startswith("torch.") and called.rpartition(".")[2][:1].isupper():
        return False  # a layer or an optimizer, which is made once
    for name in names:
        made = program.names(file).attribute_value(owner, name.removeprefix("self."))
        kind = program.names(file).qualified(made.func) if isinstance(made, ast.Call) else ""
        if kind in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return True
        is_run = any(isinstance(node, ast.Call) and (dotted_name(node.func) or "") == name for node in walk(value))
        is_read = any(isinstance(node, ast.Attribute) and node.attr in ("weight", "bias") and dotted_name(node.value) == name
                      for node in walk(value))  # fmt: skip
        if kind and kind.startswith("torch.nn.") and (is_run or is_read):
            return True
    return False


def _inlined(file: SourceFile, statement: ast.Assign, name: str, methods: list[ast.FunctionDef]) -> tuple[Edit, ...]:
    """The value as a local of each method, before its first reader."""
    edits = [remove_statement(file, statement)]
    local = name.removeprefix("self.")
    for method in methods:
        readers = [one for one in method.body if name in reads(one, graph=False)]
        edits.append(insert_before(file, readers[0], f"{local} = {file.segment(statement.value)}"))
        edits += [edit_of(file, node, local) for node in walk(method)
                  if isinstance(node, ast.Attribute) and dotted_name(node) == name]  # fmt: skip
    return tuple(edits)
