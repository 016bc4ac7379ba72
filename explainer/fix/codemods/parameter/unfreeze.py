"""Freezes less: the part that was meant, not the whole module.

A name test that spares no layer names one that exists; a loop over the whole model takes its backbone; a head that was made
or switched on before the loop is switched on after it; a frozen module is not wrapped in DistributedDataParallel.
"""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Iterator

from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.freeze import Freeze, find_freezes, frozen_constructors
from explainer.source.network.idle_adapter import find_idle_adapters
from explainer.source.network.module import HEAD, head_of, is_module, parts_of, trained_constructors
from explainer.source.network.shared_module import alias_of
from explainer.source.network.wrapping import wraps_layers
from explainer.source.tree import walk
from explainer.source.value.binding import Value, scope_of, walk_scope
from explainer.source.value.lineage import block_of
from explainer.source.value.resolve import resolver_of

_NEW_HEAD = re.compile(
    r"For\w*(?:Classification|QuestionAnswering|MultipleChoice|Prediction|Detection|Segmentation|CTC)"
)
_LOADS = ("from_pretrained", "load_state_dict", "load_from_checkpoint", "load_model", "load_file", "create_model")
_ASKED = ("weights", "pretrained")
_WRAPPERS = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each switch that takes the parameters which should train as well."""
    if not context.has_failed:
        return
    yield from _unwrapped(context)
    yield from _flags_of_modules(context)
    if any(one.name == "live_shared_modules" for one in context.incident.facts):
        return  # what is frozen is meant to be; the other model needs modules of its own
    if context.program.once(find_idle_adapters):
        return  # an adapter was to train beside it
    for freeze in find_freezes(context.program):
        if freeze.is_on or not _concerns_training(freeze, context) or alias_of(freeze, context.program) is not None:
            continue
        if any(isinstance(one, (ast.Break, ast.Continue)) for one in walk(freeze.statement)):
            yield _unmet(freeze)
            continue
        yield from _spared(freeze, context) if freeze.test is not None else _narrowed(freeze, context)


def _flags_of_modules(context: Context) -> Iterator[Proposal]:
    """`model.fc.requires_grad = True` makes an attribute of a module and leaves its parameters as they are."""
    for file in context.program.parsed():
        for node in file.walk():
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if (
                not isinstance(target, ast.Attribute)
                or target.attr != "requires_grad"
                or not isinstance(node, ast.Assign)
            ):
                continue
            is_on = isinstance(node.value, ast.Constant) and node.value.value is True
            if is_on and is_module(Value(target.value, file), context.program):
                yield Proposal(
                    edits=(edit_of(file, node, f"{file.segment(target.value)}.requires_grad_(True)"),),
                    culprit=culprit_of(file, node, "sets an attribute of a module, whose parameters stay frozen"),
                    belief=2.2,
                )


def _concerns_training(freeze: Freeze, context: Context) -> bool:
    """Whether the frozen module is one whose parameters an optimizer gets; where none is known, whether it is any."""
    trained = trained_constructors(context.program)
    made = {one.node for one in resolver_of(context.program).constructors_of(Value(freeze.owner, freeze.file))}
    classes = {owner for _, owner in _classes(freeze, context)}
    resolver = resolver_of(context.program)
    files = {call: file for file in context.program.parsed() for call in trained if call in file.parents}
    trained_classes = {
        found[1]
        for call, file in files.items()
        if isinstance(call, ast.Call) and (found := resolver.find_class(call.func, file)) is not None
    }
    # One that is made beside what trains, of the same class, is another: a teacher.
    is_of_class = bool(classes & trained_classes) and not (made and trained & files.keys())
    return not trained or bool(made & trained) or is_of_class or bool(_listed(freeze, context))


def _classes(freeze: Freeze, context: Context) -> list[tuple[SourceFile, ast.ClassDef]]:
    if isinstance(freeze.owner, ast.Name) and freeze.owner.id == "self":
        owner = context.program.names(freeze.file).class_of(freeze.statement)
        return [(freeze.file, owner)] if owner is not None else []
    return resolver_of(context.program).classes_of(Value(freeze.owner, freeze.file))


def _parts(freeze: Freeze, context: Context) -> list[str]:
    found = _classes(freeze, context)
    return parts_of(found[0][1], found[0][0], context.program) if len(found) == 1 else []


def _listed(freeze: Freeze, context: Context) -> list[str]:
    """The parts of the frozen module whose parameters an optimizer gets."""
    found = _classes(freeze, context)
    if len(found) != 1:
        return []
    (file, owner), trained = found[0], trained_constructors(context.program)
    values = {one: context.program.names(file).attribute_value(owner, one) for one in _parts(freeze, context)}
    return [name for name, value in values.items() if value in trained]


def _spared(freeze: Freeze, context: Context) -> Iterator[Proposal]:
    """A condition on names that fits no part of the module: it is meant for the head."""
    parts = _parts(freeze, context)
    assert freeze.test is not None
    words = [one for one in walk(freeze.test) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if not parts or len(words) != 1:
        return
    word, text = words[0], str(words[0].value)
    if any(part in text or text.strip(".") in part for part in parts):
        return
    alike = difflib.get_close_matches(text.strip("."), parts, 1, 0.6)
    meant = alike[0] if alike else head_of(parts)
    quote = freeze.file.segment(word)[0]
    if meant is None or quote not in "'\"":
        return
    yield Proposal(
        edits=(edit_of(freeze.file, word, f"{quote}{meant}{'.' if text.endswith('.') else ''}{quote}"),),
        culprit=culprit_of(
            freeze.file,
            freeze.test,
            f'spares parameters of "{text}", which the model does not have: all are frozen',
        ),
        belief=2.0,
    )


def _narrowed(freeze: Freeze, context: Context) -> Iterator[Proposal]:
    """A module that is frozen as a whole, and never switched on again in part."""
    name = dotted_name(freeze.owner)
    on = [one for one in find_freezes(context.program) if one.is_on]
    early = [one for one in on if _is_part(one.owner, name) and one.statement.lineno < freeze.statement.lineno]
    if early and not _later(on, freeze):
        moved = early[0]
        text = moved.file.segment(moved.statement)
        yield _proposal(
            freeze,
            (remove_statement(moved.file, moved.statement), insert_after(freeze.file, freeze.statement, text)),
            2.0,
        )
        return
    if on:
        return
    if any(_is_wrapped(dotted_name(one), context) for _, one in _written(freeze, context)):
        yield from _before_wrapping(freeze, name, context)
        return
    earlier, later = _replaced(freeze, name, context)
    if later is not None:
        return
    if earlier is not None:
        yield _proposal(freeze, (insert_after(freeze.file, freeze.statement, f"{earlier}.requires_grad_(True)"),), 2.0)
        return
    yield from _restricted(freeze, context)


def _is_wrapped(name: str | None, context: Context) -> bool:
    """Whether the program puts modules of its own round layers of the model: they are what should train."""
    return name is not None and any(
        wraps_layers(one, name, file, context.program)
        for file in context.program.parsed()
        for scope in (file.tree, *context.program.names(file).functions)
        for one in (scope.body if scope is not None else ())
    )


def _before_wrapping(freeze: Freeze, name: str | None, context: Context) -> Iterator[Proposal]:
    """The switch moves before the statement of its block that wraps layers: `layer.query = LoRA(layer.query)`."""
    block = block_of(freeze.statement, freeze.file)
    before = block[: block.index(freeze.statement)] if freeze.statement in block else []
    wrapping = [one for one in before if name is not None and wraps_layers(one, name, freeze.file, context.program)]
    if wrapping:
        text = freeze.file.segment(freeze.statement)
        moved = insert_before(freeze.file, wrapping[0], textwrap.dedent(f"{' ' * freeze.statement.col_offset}{text}"))
        yield _proposal(freeze, (moved, remove_statement(freeze.file, freeze.statement)), 2.0)


def _later(on: list[Freeze], freeze: Freeze) -> bool:
    return any(one.statement.lineno > freeze.statement.lineno for one in on)


def _is_part(owner: ast.expr, name: str | None) -> bool:
    return name is not None and (dotted_name(owner) or "").startswith(f"{name}.")


def _replaced(freeze: Freeze, name: str | None, context: Context) -> tuple[str | None, str | None]:
    """The parts of the module that the program made anew before and after it froze all: `model.fc = nn.Linear(...)`."""
    later = earlier = None
    for node in walk_scope(scope_of(freeze.statement, freeze.file)):
        if not isinstance(node, ast.Assign) or name in (None, "self") or not _is_made(node.value, freeze.file, context):
            continue
        part = node.targets[0]
        while isinstance(part, ast.Subscript):  # one layer of a Sequential
            part = part.value
        if _is_part(part, name):
            if node.lineno < freeze.statement.lineno:
                earlier = freeze.file.segment(node.targets[0])
            else:
                later = freeze.file.segment(node.targets[0])
    return earlier, later


def _is_made(value: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether a value can be a module: what a call gives, but not a number of a configuration."""
    called = context.program.names(file).qualified(value.func) if isinstance(value, ast.Call) else None
    return isinstance(value, ast.Call) and called not in ("int", "float", "len", "str", "bool", "max", "min")


def _restricted(freeze: Freeze, context: Context) -> Iterator[Proposal]:
    """The loop takes the one part that is no head; with several such parts the head is switched on again.

    Where an optimizer gets some of the parts, it is they that should train.
    """
    parts, listed = _parts(freeze, context), _listed(freeze, context)
    listed = listed if len(listed) < len(parts) else []  # all of them say nothing
    loaded = [one for one in parts if one in _loaded(context)] if not any(map(HEAD.search, parts)) else []
    if listed or not loaded:
        body = [one for one in parts if (one not in listed if listed else not HEAD.search(one))]
    else:
        body = loaded  # what was trained before
    made = resolver_of(context.program).constructors_of(Value(freeze.owner, freeze.file))
    if not parts and made and all(_is_transformers(one, context) for one in made):
        body, parts = ["base_model"], ["base_model", "head"]
    if len(parts) < 2:
        called = [
            context.program.names(one.file).qualified(one.node.func) or ""
            for one in made
            if isinstance(one.node, ast.Call)
        ]
        is_own = bool(made) and {one.node for one in made} <= trained_constructors(context.program)
        if is_own and all(one.startswith("torch.nn.") for one in called) and not _has_loaded(context):
            yield _proposal(freeze, (remove_statement(freeze.file, freeze.statement),), 1.0)
        return
    if len(body) == 1:
        for file, owner in _written(freeze, context):
            for edit in _of_part(owner, body[0], file):
                yield _proposal(freeze, (edit,), 1.5)
    elif dotted_name(freeze.owner) is not None:
        on = listed or [one for one in parts if HEAD.search(one)][-1:]
        if not on and not loaded and not _has_loaded(context):
            # Nothing is known to have been trained before, and no part is called a head: all of it is to train.
            yield _proposal(freeze, (remove_statement(freeze.file, freeze.statement),), 1.0)
        heads = [f"{dotted_name(freeze.owner)}.{one}.requires_grad_(True)" for one in on]
        if heads:
            yield _proposal(freeze, (insert_after(freeze.file, freeze.statement, "\n".join(heads)),), 1.0)


def _has_loaded(context: Context) -> bool:
    """Whether a program takes weights that were trained before: some of what is frozen then was meant to be."""
    files = list(context.program.parsed())
    asked = (one.arg for file in files for one in file.walk() if isinstance(one, ast.keyword))
    return any(file.attributes.get(name) for file in files for name in _LOADS) or any(one in _ASKED for one in asked)


def _loaded(context: Context) -> set[str]:
    """The parts that take weights which were trained before: `net.encoder.load_state_dict(...)`."""
    calls = (one for file in context.program.parsed() for one in file.attributes.get("load_state_dict", ()))
    return {(dotted_name(one.value) or "").rpartition(".")[2] for one in calls}


def _of_part(owner: ast.expr, part: str, file: SourceFile) -> Iterator[Edit]:
    """The module's part in its place; `net = freeze(net)` becomes `freeze(net.body)`, as the helper gives back what it is given."""
    text = f"{file.segment(owner)}.{part}"
    call, statement = file.parents.get(owner), file.statement(owner)
    is_given = isinstance(call, ast.Call) and owner in call.args
    if not is_given or isinstance(statement, ast.Expr):
        yield edit_of(file, owner, text)
        return
    name = dotted_name(owner)
    if isinstance(statement, ast.Assign) and statement.value is call and dotted_name(statement.targets[0]) == name:
        start, end = file.span(statement.targets[0])[0], file.span(call)[0]
        at, after = file.span(owner)
        new = file.text[end:at] + text + file.text[after : file.span(statement)[1]]
        yield Edit(file=file.path, start=start, end=file.span(statement)[1], new=new)


def _is_transformers(made: Value, context: Context) -> bool:
    """Whether a model of transformers has a head that is trained for each task: not one whose head is the language's."""
    called = context.program.names(made.file).qualified(made.node.func) if isinstance(made.node, ast.Call) else None
    return (called or "").startswith("transformers.") and _NEW_HEAD.search(called or "") is not None


def _written(freeze: Freeze, context: Context) -> list[tuple[SourceFile, ast.expr]]:
    """Where the module is written: in the loop, or, where a helper freezes what it is given, in the helper's call."""
    scope = scope_of(freeze.owner, freeze.file)
    if (
        not isinstance(freeze.owner, ast.Name)
        or freeze.owner.id == "self"
        or isinstance(scope, (ast.Module, ast.Lambda))
    ):
        return [(freeze.file, freeze.owner)]
    behind = list(resolver_of(context.program).behind(Value(freeze.owner, freeze.file)))
    given = [one for one in behind if one.statement is None and dotted_name(one.node) is not None]
    return [(given[0].file, given[0].node)] if len(given) == 1 else [(freeze.file, freeze.owner)]


def _unmet(freeze: Freeze) -> Proposal:
    """A loop that was to stop at a parameter, or to pass some over, and met none of them: which is meant its author says."""
    why = "is met by no parameter, so that all are frozen: which were meant its author says"
    leaves = (one for one in walk(freeze.statement) if isinstance(one, (ast.Break, ast.Continue)))
    asked = next((one for leave in leaves if isinstance(one := freeze.file.parents.get(leave), ast.If)), None)
    return Proposal(edits=(), culprit=culprit_of(freeze.file, asked.test if asked else freeze.flag, why), belief=1.0)


def _proposal(freeze: Freeze, edits: tuple[Edit, ...], belief: float) -> Proposal:
    what = freeze.file.segment(freeze.owner)
    why = f"switches off all of `{what}`, the part that should train as well"
    return Proposal(edits=edits, culprit=culprit_of(freeze.file, freeze.flag, why), belief=belief)


def _unwrapped(context: Context) -> Iterator[Proposal]:
    """`teacher = DDP(teacher)` of a module that is frozen on purpose: it stays as it is."""
    frozen = frozen_constructors(context.program)
    for file, statement in failing_statements(context):
        call = getattr(statement, "value", None)
        names = context.program.names(file)
        if (
            not isinstance(statement, ast.Assign)
            or not isinstance(call, ast.Call)
            or not names.is_call(call, *_WRAPPERS)
        ):
            continue
        made = (
            {one.node for one in resolver_of(context.program).constructors_of(Value(call.args[0], file))}
            if call.args
            else set()
        )
        if not made or not made <= frozen:
            continue
        inner = file.segment(call.args[0])
        same = dotted_name(statement.targets[0]) == inner
        yield Proposal(
            edits=(remove_statement(file, statement) if same else edit_of(file, call, inner),),
            culprit=culprit_of(file, statement, f"wraps `{inner}`, which is frozen and has no gradient to reduce"),
            belief=2.5,
        )
