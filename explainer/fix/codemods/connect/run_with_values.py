"""`torch.func.functional_call(net, weights, (x,))` for `net.load_state_dict(weights); net(x)`: the weights keep their graph.

What a network computes for another (a hypernetwork, an inner loop) is written into that one's parameters: `load_state_dict`,
`p.data = weights[name]` and `p.copy_(weights[name])` take the values alone, so that nothing trains what computed them. So do
`net.weight.data = weight` and `net.bias.data = bias`, which become `functional_call(net, {"weight": weight, "bias": bias}, (x,))`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.trace import traced_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, remove_statement
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.model.trace import STARVING_CUT
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Value, bind_call, bounds_of, parameters_of, scope_of
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_HARMLESS = ("train", "eval", "zero_grad", "parameters", "named_parameters", "to", "requires_grad_")


@dataclass(frozen=True, slots=True)
class _Load:
    """Statements that write `values` into the parameters of `net`, both as they are named where these stand.

    `reads` are the names in `values`, the last name of each with its dots.
    """

    file: SourceFile
    statements: tuple[ast.stmt, ...]
    net: str
    values: str
    reads: frozenset[str]

    @property
    def statement(self) -> ast.stmt:
        """The last of them."""
        return self.statements[-1]


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each traced line that writes computed values into parameters, and for the calls that follow."""
    done: set[ast.stmt] = set()
    for line, file, statement in traced_statements(STARVING_CUT, context):
        load = _load(statement, file) if statement not in done else None
        done.update(load.statements if load is not None else ())
        load = _at_its_caller(load, context.program) or load if load is not None else None
        edits = _edits(load, context.program) if load is not None else ()
        if edits:
            yield Proposal(edits=edits, culprit=culprit_of(file, statement, line.says), belief=2.0)


def _load(statement: ast.stmt, file: SourceFile) -> _Load | None:
    """`net.load_state_dict(weights)`, or a loop over `net.named_parameters()` that writes `weights[name]` into each."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict":
        net, values = dotted_name(call.func.value), dotted_name(call.args[0]) if call.args else None
        return _Load(file, (statement,), net, values, frozenset((values,))) if net and values else None
    if (found := _by_name(statement, file)) is not None:
        return found
    loop = file.parents.get(statement)
    if not isinstance(loop, ast.For) or len(loop.body) != 1 or not isinstance(loop.target, ast.Tuple):
        return None
    walked = loop.iter if isinstance(loop.iter, ast.Call) else None
    names = [dotted_name(one) for one in loop.target.elts]
    owner = walked.func if walked is not None and isinstance(walked.func, ast.Attribute) else None
    if owner is None or owner.attr != "named_parameters" or len(names) != 2:
        return None
    net, written = dotted_name(owner.value), _written(statement)
    if net is None or written is None or written[0] != names[1]:
        return None
    above = file.parents.get(loop)
    whole = above if isinstance(above, ast.With) and len(above.body) == 1 else loop
    name, value = names[0], written[1]
    values = dotted_name(value.value) if isinstance(value, ast.Subscript) else None
    if name is None or values is None or not isinstance(value, ast.Subscript):
        return None
    text = values if dotted_name(value.slice) == name else _of_each(name, value, net, file)
    return _Load(file, (whole,), net, text, frozenset((values,))) if text is not None else None


def _of_each(name: str, value: ast.Subscript, net: str, file: SourceFile) -> str | None:
    """Values that stand under other names, `weights[name.replace(".", "_")]`, under those of the parameters."""
    read = {one.id for one in walk(value.slice) if isinstance(one, ast.Name)}
    return f"{{{name}: {file.segment(value)} for {name}, _ in {net}.named_parameters()}}" if read == {name} else None


def _by_name(statement: ast.stmt, file: SourceFile) -> _Load | None:
    """`net.weight.data = weight` with the statements of its block that write the other parameters of the same network."""
    net = _named_in(statement)
    if net is None:
        return None
    block = list(block_of(statement, file))
    writes = [(one, _written(one)) for one in block if _named_in(one) == net]
    values = {(written[0] or "").rpartition(".")[2]: written[1] for _, written in writes if written is not None}
    if len(values) != len(writes):
        return None  # one parameter twice
    above = file.parents.get(statement)
    is_all = isinstance(above, ast.With) and len(writes) == len(block)
    whole = (above,) if isinstance(above, ast.With) and is_all else tuple(one for one, _ in writes)
    text = ", ".join(f'"{name}": {file.segment(value)}' for name, value in values.items())
    names = frozenset(name for value in values.values() for node in walk(value) if (name := dotted_name(node)))
    return _Load(file, whole, net, f"{{{text}}}", names)


def _named_in(statement: ast.stmt) -> str | None:
    """`self.net` of the statement `self.net.weight.data = weight`."""
    written = _written(statement)
    owner = (written[0] or "").rpartition(".")[0] if written is not None else ""
    return owner if owner not in ("", "self") else None


def _written(statement: ast.stmt) -> tuple[str | None, ast.expr] | None:
    """The parameter that a statement writes all of, and the value: `p.data = v`, `p.data.copy_(v)`, `p.copy_(v)`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        is_data = isinstance(target, ast.Attribute) and target.attr == "data"
        return (dotted_name(target.value), statement.value) if is_data and isinstance(target, ast.Attribute) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or call.func.attr != "copy_"
        or len(call.args) != 1
    ):
        return None
    owner = call.func.value
    owner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "data" else owner
    return dotted_name(owner), call.args[0]


def _at_its_caller(load: _Load, program: Program) -> _Load | None:
    """The one call of a helper that does nothing else, with what it is given."""
    function = program.names(load.file).function_of(load.statement)
    if function is None or not {load.net, load.values} <= set(parameters_of(function)):
        return None
    body = [one for one in function.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))]
    calls = resolver_of(program).calls_of(function, load.file)
    if len(body) != 1 or len(calls) != 1:
        return None
    (file, call) = calls[0]
    statement = file.statement(call)
    bound = bind_call(call, function, Value(call, file))
    net, values = (dotted_name(bound[one].node) if one in bound else None for one in (load.net, load.values))
    is_alone = isinstance(statement, ast.Expr) and statement.value is call
    return _Load(file, (statement,), net, values, frozenset((values,))) if is_alone and net and values else None


def _edits(load: _Load, program: Program) -> tuple[Edit, ...]:
    """Each call of the network behind the load is given the values; none where it is not called there, or they change.

    The load goes where nothing else of the file uses the network.
    """
    file = load.file
    scope = program.names(file).function_of(load.statement) or file.tree
    calls = [
        node
        for node in (walk(scope) if scope is not None else ())
        if isinstance(node, ast.Call)
        and dotted_name(node.func) == load.net
        and start_of(node) >= end_of(load.statement)
    ]
    if not calls or any(isinstance(one, ast.Starred) for call in calls for one in call.args):
        return ()
    last = max(start_of(one) for one in calls)
    own = {id(one) for one in load.statements}
    bound = [one for one in bounds_of(scope_of(load.statement, file)) if one.name in (load.net, *load.reads)]
    first = end_of(load.statements[0])
    if any(first <= start_of(one.statement) < last and id(one.statement) not in own for one in bound):
        return ()
    spelled = spell(program.names(file), "torch.func.functional_call")
    edits = tuple(edit_of(file, one, _called(one, load, spelled)) for one in calls)
    if _is_used_elsewhere(load, calls):
        return edits
    return (*(remove_statement(file, one) for one in load.statements), *edits)


def _is_used_elsewhere(load: _Load, calls: Sequence[ast.Call]) -> bool:
    """Whether the file reads a network's weights in another way than by these calls: then they must still be written."""
    file, known = (
        load.file,
        {id(one) for statement in load.statements for one in walk(statement)} | {id(one.func) for one in calls},
    )
    last = load.net.rpartition(".")[2]
    for node in file.walk():
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in known or not isinstance(node.ctx, ast.Load):
            continue
        if (dotted_name(node) or "").rpartition(".")[2] != last:
            continue
        above = file.parents.get(node)
        if not isinstance(above, ast.Attribute) or above.attr not in _HARMLESS:
            return True
    return False


def _called(call: ast.Call, load: _Load, spelled: str) -> str:
    given = ", ".join(load.file.segment(one) for one in call.args)
    text = f"{spelled}({load.net}, {load.values}, ({given}{',' if len(call.args) == 1 else ''})"
    if not call.keywords:
        return f"{text})"
    named = ", ".join(
        f'"{one.arg}": {load.file.segment(one.value)}' if one.arg else f"**{load.file.segment(one.value)}"
        for one in call.keywords
    )
    return f"{text}, {{{named}}})"
