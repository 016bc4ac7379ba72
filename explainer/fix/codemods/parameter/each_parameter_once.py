"""A parameter that two groups of an optimizer list stays in one of them: `[one for one in model.parameters() if id(one) not in taken]`.

Of a model and a part of it, the part keeps what it lists: it is there for options of its own. Of two parts that share a
weight (an embedding and the head tied to it) the one that is listed first keeps it where both have the same options; of two
that differ in weight decay alone, the one without: it lists by name or kind what is not to decay, the other all the rest.
Whose learning rate it gets is the author's to say; but what is added to an optimizer later takes only what that does not have yet,
and an optimizer of a model that is frozen in part is given what trains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import free_name, operand
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import find_freezes
from explainer.source.program import Program
from explainer.source.tree import end_of, start_of, walk
from explainer.source.value.binding import Bound, Value, bounds_of, scope_of
from explainer.source.value.resolve import resolver_of

_DEPTH = 4
_TWICE = "appear in more than one parameter group"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """What one group lists, without a `list(...)` around it, the module it is of where it says so, and its other options."""

    node: ast.expr
    file: SourceFile
    owner: str | None
    options: tuple[str, ...] = ()


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the groups of the optimizer that refused them."""
    program = context.program
    if _TWICE not in message_of(context):
        return
    for file, statement in list(raised_at(context))[:1]:
        groups = [one for node in walk(statement) for one in _groups_of_call(node, file, program)]
        repeated = next(filter(_is_repeated, groups), None)
        if repeated is not None and _are_the_rest([one for one in groups if one is not repeated]):
            yield _in_each_round(repeated)
            continue
        pair = _pair(groups, program)
        added = next((one for node in walk(statement) for one in _added(node, file)), None)
        whole = next((one for one in groups if one.owner and one.node not in set(walk(statement))), None)
        if added is not None and whole is not None and any(not one.is_on for one in find_freezes(program)):
            yield _that_train(whole)
            if any(one.options for one in groups if one is not whole):
                return  # what the optimizer has already would get none of the options
        if pair is None:
            yield from _tied(program) if added is None else (added,)
            continue
        kept, other, applicability = pair
        is_choice = applicability != "safe" and any(
            one.options != other.options and not _differ_in_decay(one, other) for one in kept
        )
        edits = () if is_choice else _edits(kept, other)
        if added is not None and not edits and not any(one.node in set(walk(statement)) for one in kept):
            yield added
            continue
        if edits or is_choice:
            names = " and ".join(f"`{one.file.segment(one.node)}`" for one in kept)
            yield Proposal(
                edits=edits,
                culprit=culprit_of(other.file, _made(other), f"lists parameters that {names} lists too"),
                belief=2.0,
                applicability=applicability,
            )


def _that_train(group: _Group) -> Proposal:
    """Of a model that is frozen in part the optimizer gets what trains, so that the rest can be added when it is thawed."""
    listed = f"[p for p in {group.file.segment(group.node)} if p.requires_grad]"
    why = "lists frozen parameters too, which are added once more when they are thawed"
    return Proposal(
        edits=(edit_of(group.file, group.node, listed),),
        culprit=culprit_of(group.file, group.node, why),
        belief=2.4,
        is_origin=True,
    )


def _added(node: ast.AST, file: SourceFile) -> Iterator[Proposal]:
    """`opt.add_param_group({"params": trainable()})` takes of these what no group has: backbones thawed in a later epoch."""
    is_call = (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_param_group"
    )
    if not is_call or not isinstance(node, ast.Call) or len(node.args) != 1:
        return
    held = node.args[0].id if isinstance(node.args[0], ast.Name) else None
    bound = [one.node for one in bounds_of(scope_of(node, file)) if one.name == held and not one.fills] if held else []
    written = bound[0] if len(bound) == 1 else node.args[0]
    if not isinstance(written, ast.Dict):
        return
    pairs = zip(written.keys, written.values, strict=True)
    given = next((one for key, one in pairs if getattr(key, "value", None) == "params"), None)
    if given is None:
        return
    owner, statement = file.segment(node.func.value), file.statement(node)  # type: ignore[attr-defined]
    scope = scope_of(node, file)
    name, group = free_name("taken", scope), free_name("group", scope)
    known = f'{name} = {{id(one) for {group} in {owner}.param_groups for one in {group}["params"]}}'
    rest = f'{held}["params"] = [one for one in {held}["params"] if id(one) not in {name}]'
    yield Proposal(
        edits=(
            (insert_before(file, statement, f"{known}\n{rest}"),)
            if held is not None
            else (insert_before(file, statement, known), _without(_Group(node=given, file=file, owner=None), name))
        ),
        culprit=culprit_of(
            file,
            _made(_Group(node=given, file=file, owner=None)),
            f"lists parameters that `{owner}` has already, beside those that it is to get",
        ),
        belief=2.0,
    )


def _is_repeated(group: _Group) -> bool:
    """Whether a loop makes such a group in each of its rounds, of the parameters that its variables pick: `pattern.search(name)`."""
    loop = group.file.enclosing(group.node, ast.For)
    scope = scope_of(group.node, group.file)
    if not isinstance(loop, ast.For) or scope_of(loop, group.file) is not scope:
        return False
    inside = set(walk(loop))
    made = {one.name: one.node for one in bounds_of(scope) if one.statement in inside and one.statement is not loop}
    names = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    todo, seen, tests = [group.node], set[str](), list[ast.expr]()
    while todo:
        for node in walk(todo.pop()):
            tests += node.ifs if isinstance(node, ast.comprehension) else []
            if isinstance(node, ast.Name) and node.id in made and node.id not in seen:
                seen.add(node.id)
                todo.append(made[node.id])
    read = {one.id for test in tests for one in walk(test) if isinstance(one, ast.Name)}
    return bool(read & (names | seen)) and not any(_leaves_out(one) for one in tests)


def _leaves_out(test: ast.expr) -> bool:
    """`name not in claimed`."""
    return any(isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotIn) for node in walk(test))


def _are_the_rest(groups: Sequence[_Group]) -> bool:
    """Whether groups take only what no other has taken."""
    return all(
        any(isinstance(node, ast.comprehension) and any(map(_leaves_out, node.ifs)) for node in walk(_made(one)))
        for one in groups
    )


def _in_each_round(group: _Group) -> Proposal:
    """The line that picks the parameters of each group: two of the patterns fit one, and which group it gets is the author's."""
    root = next((one for one in walk(group.node) if isinstance(one, ast.Name)), None)
    made = _bounds(root, group.file) if root is not None else []
    node = made[0].node if len(made) == 1 else group.node
    why = "picks parameters for each group by itself: one that two groups pick is in both"
    return Proposal(edits=(), culprit=culprit_of(group.file, node, why), belief=2.0)


def _tied(program: Program) -> Iterator[Proposal]:
    """Where two parts are given one weight, for groups whose lists cannot be read: no edit, which of them trains it is not known."""
    for file in program.parsed():
        for node in file.walk():
            target = dotted_name(node.targets[0]) if isinstance(node, ast.Assign) else None
            source = dotted_name(node.value) if isinstance(node, ast.Assign) else None
            if target and source and target != source and all(one.endswith(".weight") for one in (target, source)):
                why = f"makes `{target}` the same parameter as `{source}`, which groups of both parts list"
                yield Proposal(edits=(), culprit=culprit_of(file, node, why), belief=1.0)


def _made(group: _Group) -> ast.expr:
    """Where a group's list is made: that is the line which lists too much."""
    made = _bounds(group.node, group.file) if isinstance(group.node, ast.Name) else []
    return made[0].node if len(made) == 1 else group.node


def _groups_of_call(node: ast.AST, file: SourceFile, program: Program) -> list[_Group]:
    """The groups of an optimizer that a call makes, or adds one to."""
    if not isinstance(node, ast.Call):
        return []
    if (program.names(file).qualified(node.func) or "").startswith("torch.optim."):
        given = node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "params"), None)
        return list(_groups(Value(given, file), program, 0)) if given is not None else []
    if isinstance(node.func, ast.Attribute) and node.func.attr == "add_param_group" and len(node.args) == 1:
        made = resolver_of(program).constructors_of(Value(node.func.value, file))
        before = [each for one in made for each in _groups_of_call(one.node, one.file, program)]
        return [*before, *_groups(Value(node.args[0], file), program, 0)]
    return []


def _groups(value: Value, program: Program, depth: int) -> Iterator[_Group]:
    """The groups that an expression holds, followed through names, lists and functions."""
    node, resolver = value.node, resolver_of(program)
    parts: Sequence[Value] = []
    if isinstance(node, ast.Dict):
        keys = [getattr(key, "value", None) for key in node.keys]
        pairs = list(zip(keys, node.values, strict=True))
        options = tuple(sorted(f"{key}={ast.unparse(one)}" for key, one in pairs if key != "params"))
        parts = [replace(value, node=one) for key, one in pairs if key == "params"]
        yield from (replace(_group(one), options=options) for one in parts)
        return
    if isinstance(node, ast.List) and any(isinstance(one, ast.Dict) for one in node.elts):
        parts = [replace(value, node=one) for one in node.elts]
    elif isinstance(node, ast.Name):
        made = [replace(value, node=one.node) for one in _bounds(node, value.file)] or list(resolver.behind(value))
        parts = [one for one in made if _holds_groups(one)]
    elif isinstance(node, ast.Call) and (target := resolver.function_of(node, value)) is not None:
        parts = resolver.returns_of(target, node, value)
    if not parts:
        yield _group(value)
    for one in parts if depth < _DEPTH else ():
        yield from _groups(one, program, depth + 1)


def _bounds(node: ast.expr, file: SourceFile) -> list[Bound]:
    return [one for one in bounds_of(scope_of(node, file)) if one.name == dotted_name(node)]


def _holds_groups(value: Value) -> bool:
    """Whether what a name is bound to has groups in it, or is made by a function that may return them."""
    is_parameters = isinstance(value.node, ast.Call) and _owner(value.node) is not None
    return not is_parameters and (
        isinstance(value.node, ast.Call) or any(isinstance(one, ast.Dict) for one in walk(value.node))
    )


def _group(value: Value) -> _Group:
    node = _listed(value.node)
    made = [_listed(one.node) for one in _bounds(node, value.file)] if isinstance(node, ast.Name) else [node]
    return _Group(node=node, file=value.file, owner=_owner(made[0]) if len(made) == 1 else None)


def _listed(node: ast.expr) -> ast.expr:
    """What a `list(...)` is made of."""
    while isinstance(node, ast.Call) and dotted_name(node.func) in ("list", "tuple", "iter") and len(node.args) == 1:
        node = node.args[0]
    return node


def _owner(node: ast.expr) -> str | None:
    """`model.head` of `model.head.parameters()`, `model[-1]` of `model[-1].parameters()`."""
    func = node.func if isinstance(node, ast.Call) else None
    is_listed = isinstance(func, ast.Attribute) and func.attr == "parameters"
    return ast.unparse(func.value) if is_listed and isinstance(func, ast.Attribute) else None


def _pair(groups: Sequence[_Group], program: Program) -> tuple[list[_Group], _Group, str] | None:
    """What keeps its parameters, what leaves them out, and whether that is what the groups say; None where it is not seen."""
    for whole in groups:
        parts = [
            one
            for one in groups
            if one.owner and whole.owner and one.owner.startswith((f"{whole.owner}.", f"{whole.owner}["))
        ]
        if parts:
            return parts, whole, "safe"
    if len(groups) == 2:
        kept, other = sorted(groups, key=_decays) if _differ_in_decay(*groups) else groups
        return [kept], other, "unsafe"
    for at, later in enumerate(groups):
        tied = [one for one in groups[:at] if _are_tied(one, later, program)]
        if tied:
            return tied, later, "unsafe"
    return None


def _differ_in_decay(one: _Group, other: _Group) -> bool:
    """Whether one of two groups does not decay, and nothing else tells them apart."""
    apart = set(one.options) ^ set(other.options)
    return all(each.startswith("weight_decay=") for each in apart) and _decays(one) != _decays(other)


def _decays(group: _Group) -> bool:
    return not {"weight_decay=0", "weight_decay=0.0"} & set(group.options)


def _are_tied(one: _Group, other: _Group, program: Program) -> bool:
    """Whether an assignment of the program gives a module of one group a weight of the other's."""
    names = {(each.owner or "").rpartition(".")[2] for each in (one, other)} - {""}
    for file in program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = dotted_name(node.targets[0]) or "", dotted_name(node.value) or ""
                sides = [set(each.split(".")) & names for each in (target, value)]
                if len(names) == 2 and target.endswith(".weight") and all(sides) and sides[0] != sides[1]:
                    return True
    return False


def _edits(kept: Sequence[_Group], other: _Group) -> tuple[Edit, ...]:
    """The names of what is kept, before the statement that lists the other; none where they cannot be read there."""
    file, statement = other.file, other.file.statement(other.node)
    scope = scope_of(other.node, file)
    if any(
        one.file is not file or scope_of(one.node, file) is not scope or not _can_be_read(one, statement)
        for one in kept
    ):
        return ()
    name = free_name("taken", scope)
    texts = [file.segment(one.node) for one in kept]
    listed = texts[0] if len(texts) == 1 else f"({', '.join(f'*{one}' for one in texts)})"
    return (
        insert_before(file, statement, f"{name} = {{id(one) for one in {listed}}}"),
        _without(other, name),
    )


def _can_be_read(group: _Group, at: ast.stmt) -> bool:
    """Whether what a group lists can be listed once more before a statement: a generator that has a name cannot."""
    if not isinstance(group.node, ast.Name):
        return isinstance(group.node, ast.ListComp) or _owner(group.node) is not None
    bounds = _bounds(group.node, group.file)
    return bool(bounds) and all(
        end_of(one.statement) <= start_of(at) and (one.fills or _is_list(one.node)) for one in bounds
    )


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.ListComp)) or _listed(node) is not node


def _without(group: _Group, taken: str) -> Edit:
    """What a group lists without what is taken: one more condition of a comprehension, or a comprehension of its own."""
    file, node = group.file, group.node
    parts = node.generators if isinstance(node, (ast.ListComp, ast.GeneratorExp)) else []
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)) and isinstance(node.elt, ast.Name) and len(parts) == 1:
        test = f"id({node.elt.id}) not in {taken}"
        if not parts[0].ifs:
            return edit_of(file, parts[0].iter, f"{file.segment(parts[0].iter)} if {test}")
        last = parts[0].ifs[-1]
        old = file.segment(last) if isinstance(last, (ast.Compare, ast.Attribute)) else operand(file, last)
        return edit_of(file, last, f"{old} and {test}")
    above = file.parents.get(node)
    whole = above if isinstance(above, ast.Call) and dotted_name(above.func) in ("list", "tuple", "iter") else node
    return edit_of(file, whole, f"[one for one in {file.segment(node)} if id(one) not in {taken}]")
