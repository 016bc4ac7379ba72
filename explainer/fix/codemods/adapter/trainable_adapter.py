"""Makes an adapter train: loaded with `is_trainable=True`, put on after what freezes, made the active one, not disabled."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, remove_statement
from explainer.fix.graph.uncut import dedent
from explainer.fix.text.rewrite import add_argument
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.graph.write import is_without_grad
from explainer.source.name import Names, dotted_name
from explainer.source.network.freeze import find_freezes
from explainer.source.network.peft import CONFIGS, WRAPS
from explainer.source.tree import walk
from explainer.source.value.binding import bounds_of, scope_of
from explainer.source.value.lineage import block_of

_PREPARES = ("peft.prepare_model_for_kbit_training", "peft.prepare_model_for_int8_training")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each place that leaves an adapter without gradients."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        chooses = any(isinstance(one, ast.Attribute) and one.attr == "set_adapter" for one in file.walk())
        for node in file.walk():
            if isinstance(node, ast.Call):
                yield from _loaded(node, file, names)
                if not chooses:
                    yield from _inference(node, file, names)
                    yield from _inactive(node, file, names)
                yield from _left_active(node, file, context)
                yield from _left_disabled(node, file, context)
            elif isinstance(node, ast.With):
                yield from _disabled(node, file)
        yield from _frozen_after(file, context)


def _loaded(node: ast.Call, file: SourceFile, names: Names) -> Iterator[Proposal]:
    """`PeftModel.from_pretrained(model, path)` loads for inference."""
    called = names.qualified(node.func) or ""
    owner, _, method = called.rpartition(".")
    if not called.startswith("peft.") or method != "from_pretrained" or "Config" in owner:
        return
    flag = next((one for one in node.keywords if one.arg == "is_trainable"), None)
    if flag is not None and not (isinstance(flag.value, ast.Constant) and flag.value.value is False):
        return
    edit = edit_of(file, flag.value, "True") if flag is not None else add_argument(file, node, "is_trainable=True")
    yield Proposal(
        edits=(edit,),
        culprit=culprit_of(file, node, "loads the adapter for inference, with all of it frozen"),
        belief=2.0,
    )


def _inference(node: ast.Call, file: SourceFile, names: Names) -> Iterator[Proposal]:
    """A configuration with `inference_mode=True`."""
    if (names.qualified(node.func) or "").rpartition(".")[2] not in CONFIGS:
        return
    for keyword in node.keywords:
        if keyword.arg == "inference_mode" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            yield Proposal(
                edits=(edit_of(file, keyword.value, "False"),),
                culprit=culprit_of(file, keyword.value, "freezes the adapter that is made from this configuration"),
                belief=1.5,
            )


def _inactive(node: ast.Call, file: SourceFile, names: Names) -> Iterator[Proposal]:
    """`model.add_adapter("new", ...)` leaves the first adapter active."""
    func = node.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("add_adapter", "load_adapter"):
        return
    statement = file.statement(node)
    at = 0 if func.attr == "add_adapter" else 1
    named = next((one.value for one in node.keywords if one.arg == "adapter_name"), None)
    name = named or (node.args[at] if len(node.args) > at else None)
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not isinstance(statement, ast.Expr):
        return
    owner = file.segment(func.value)
    if _is_wrapped(func.value, file, names) and not _is_activated(node, file):
        text = f"{owner}.set_adapter({file.segment(name)})"
        yield Proposal(
            edits=(insert_after(file, statement, text),),
            culprit=culprit_of(file, node, f"adds {file.segment(name)} and leaves another adapter active"),
            belief=2.2,
        )


def _left_active(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`model.set_adapter("reference")` for what runs without gradients, and nothing sets the trained adapter again."""
    func = node.func
    if (
        not isinstance(func, ast.Attribute)
        or func.attr != "set_adapter"
        or not is_without_grad(node, file, context.program)
    ):
        return
    trained = _trained_adapter(context)
    values = [value for each in context.program.parsed() for one in each.walk() for value in _chosen(one)]
    if trained is None or None in values or trained in values:
        return
    block = [one for one in block_of(file.statement(node), file) if not isinstance(one, ast.Return)]
    if block:
        yield Proposal(
            edits=(insert_after(file, block[-1], f'{file.segment(func.value)}.set_adapter("{trained}")'),),
            culprit=culprit_of(file, node, f'leaves another adapter active than "{trained}", and freezes that one'),
            belief=2.2,
        )


def _left_disabled(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`model.disable_adapter_layers()` for what the base model says, and nothing enables the adapter again."""
    func, statement = node.func, file.statement(node)
    if (
        not isinstance(func, ast.Attribute)
        or func.attr != "disable_adapter_layers"
        or not isinstance(statement, ast.Expr)
    ):
        return
    is_enabled = any(
        isinstance(one, ast.Attribute) and one.attr in ("enable_adapter_layers", "enable_adapters")
        for each in context.program.parsed()
        for one in each.walk()
    )
    owner = dotted_name(func.value)
    block = list(block_of(statement, file))
    runs = [
        one
        for one in block[block.index(statement) + 1 :]
        if any(
            isinstance(each, ast.Call) and dotted_name(each.func) in (owner, f"{owner}.forward") for each in walk(one)
        )
    ]
    if is_enabled or owner is None or not runs or isinstance(runs[-1], ast.Return):
        return
    is_script = context.program.names(file).function_of(node) is None  # what runs last there may be the training
    last = runs[0] if is_script else runs[-1]
    yield Proposal(
        edits=(insert_after(file, last, f"{owner}.enable_adapter_layers()"),),
        culprit=culprit_of(file, node, "switches the adapter off, and nothing switches it on again"),
        belief=2.2,
    )


def _chosen(node: ast.AST) -> Iterator[object]:
    """The name that a `set_adapter` is given; None for one that is computed."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "set_adapter":
        yield from (getattr(one, "value", None) for one in node.args[:1])


def _trained_adapter(context: Context) -> str | None:
    """The adapter that a program's one `get_peft_model` makes."""
    found = [
        next((one.value for one in node.keywords if one.arg == "adapter_name"), None)
        for file in context.program.parsed()
        for node in file.walk()
        if context.program.names(file).is_call(node, *WRAPS) and isinstance(node, ast.Call)
    ]
    name = getattr(found[0], "value", "default") if len(found) == 1 else None
    return name if isinstance(name, str) else None


def _is_wrapped(owner: ast.expr, file: SourceFile, names: Names) -> bool:
    """Whether a name is a PEFT model, whose `add_adapter` does not activate; that of a transformers model does."""
    name = dotted_name(owner)
    return any(
        bound.name == name
        and isinstance(bound.node, ast.Call)
        and (names.qualified(bound.node.func) or "").startswith("peft.")
        for bound in bounds_of(scope_of(owner, file))
    )


def _is_activated(node: ast.Call, file: SourceFile) -> bool:
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("set_adapter", "set_adapters", "add_weighted_adapter")
        and one.lineno > node.lineno
        for one in walk(scope_of(node, file))
    )


def _disabled(node: ast.With, file: SourceFile) -> Iterator[Proposal]:
    """The forward that is trained stands under `with model.disable_adapter():`."""
    context = node.items[0].context_expr
    is_off = (
        isinstance(context, ast.Call)
        and isinstance(context.func, ast.Attribute)
        and context.func.attr == "disable_adapter"
    )
    runs = any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr == "backward"
        for one in walk(scope_of(node, file))
        if getattr(one, "lineno", 0) >= node.lineno
    )
    if not is_off or not runs or len(node.items) != 1 or node.body[0].lineno == node.lineno:
        return
    head = Edit(file=file.path, start=file.line_start(node.lineno), end=file.line_start(node.body[0].lineno), new="")
    yield Proposal(
        edits=(head, *dedent(file, node.body, file.indent(node.lineno))),
        culprit=culprit_of(file, context, "switches the adapter off for what it runs"),
        belief=0.5,
    )


def _frozen_after(file: SourceFile, context: Context) -> Iterator[Proposal]:
    """What freezes the model, preparation or loop, stands after `get_peft_model`: the two change places."""
    names = context.program.names(file)
    freezing: list[tuple[ast.stmt, str | None]] = [
        (one.statement, dotted_name(one.owner))
        for one in find_freezes(context.program)
        if one.file is file and not one.is_on and one.test is None
    ]
    freezing += [
        (node, dotted_name(node.targets[0]))
        for node in file.walk()
        if isinstance(node, ast.Assign) and names.is_call(node.value, *_PREPARES)
    ]
    for statement, name in freezing:
        wrap = _wrap_before(statement, name, file, names)
        if wrap is not None:
            yield Proposal(
                edits=(
                    remove_statement(file, wrap),
                    *_of_base(statement, name, wrap, file),
                    insert_after(file, statement, _text(wrap, file)),
                ),
                culprit=culprit_of(
                    file, statement, "freezes all parameters, those of the adapter too, which was put on before"
                ),
                belief=2.2,
            )


def _of_base(statement: ast.stmt, name: str | None, wrap: ast.stmt, file: SourceFile) -> list[Edit]:
    """The freeze speaks of the model as it was called before the adapter: `state.model` of `model = get_peft_model(state.model)`."""
    call = getattr(wrap, "value", None)
    given = (
        next((one.value for one in call.keywords if one.arg == "model"), None) if isinstance(call, ast.Call) else None
    )
    base = call.args[0] if isinstance(call, ast.Call) and call.args else given
    if base is None or dotted_name(base) == name:
        return []
    meant = [one for one in walk(statement) if isinstance(one, (ast.Name, ast.Attribute)) and dotted_name(one) == name]
    return [edit_of(file, one, file.segment(base)) for one in meant if isinstance(one.ctx, ast.Load)]


def _wrap_before(statement: ast.stmt, name: str | None, file: SourceFile, names: Names) -> ast.stmt | None:
    """`model = get_peft_model(model, ...)` earlier in the same block."""
    above = file.parents.get(statement)
    for block in (getattr(above, "body", None), getattr(above, "orelse", None)):
        if isinstance(block, list) and statement in block:
            for one in block[: block.index(statement)]:
                is_wrap = isinstance(one, ast.Assign) and names.is_call(one.value, *WRAPS)
                if is_wrap and dotted_name(one.targets[0]) == name:
                    assert isinstance(one, ast.stmt)
                    return one
    return None


def _text(statement: ast.stmt, file: SourceFile) -> str:
    """A statement's lines without its indentation."""
    indent = file.indent(statement.lineno)
    lines = file.segment(statement).splitlines()
    return "\n".join([lines[0], *(one.removeprefix(indent) for one in lines[1:])])
