"""A step of a trainer returns its loss: under the key `loss` beside its other results, as a tensor, or at all.

    return {"objective": objective, "kl": kl.detach()}
    return {"loss": objective, "objective": objective, "kl": kl.detach()}

Only where one value alone still has a graph, or is called the loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.value.binding import Value, bounds_of, walk_scope
from explainer.source.value.provenance import provenance_of
from explainer.source.value.resolve import resolver_of

_NUMBERS = frozenset({"item", "detach", "cpu", "numpy", "tolist"})
_RESULTS = {"training_step": "loss", "compute_loss": "(loss, outputs) if return_outputs else loss"}


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each step that does not return its loss."""
    if not context.has_failed and not context.incident.warnings:
        return
    for file, function in context.program.functions():
        if function.name in _RESULTS and context.program.names(file).class_of(function) is not None:
            returns = [one for one in walk_scope(function) if isinstance(one, ast.Return) and one.value is not None]
            if not returns and "automatic_optimization" not in file.text:  # by hand nothing is to be returned
                yield from _returned(function, file, context)
            for one in returns if function.name == "training_step" else ():
                yield from _named(one, file, context)
            for one in returns:
                yield from _as_number(one, file, context)


def _as_number(returned: ast.Return, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`return loss.item()` and `return float(loss)` for `return loss`: a number has no graph."""
    node = whole = returned.value
    while isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _NUMBERS and not node.args
        if is_method and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif dotted_name(node.func) == "float" and len(node.args) == 1:
            node = node.args[0]
        else:
            break
    if (
        whole is not None
        and node is not None
        and node is not whole
        and provenance_of(context.program).trace(Value(node, file)).live
    ):
        yield Proposal(
            edits=(edit_of(file, whole, file.segment(node)),),
            culprit=culprit_of(
                file, returned, f"returns `{file.segment(whole)}`, which has no graph to go back through"
            ),
            belief=2.0,
        )


def _returned(function: Function, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """A `return` at the end, for what the step binds to `loss`."""
    names = {one.name for one in bounds_of(function)}
    needed = {"loss"} | ({"outputs"} if function.name == "compute_loss" else set())
    bound = [one for one in bounds_of(function) if one.name == "loss"]
    is_live = any(provenance_of(context.program).trace(Value(one.node, file)).live for one in bound)
    if needed <= names and is_live and not isinstance(function.body[-1], ast.Return):
        yield Proposal(
            edits=(insert_after(file, function.body[-1], f"return {_RESULTS[function.name]}"),),
            culprit=culprit_of(file, function, "computes a loss and returns nothing"),
            belief=1.5,
        )


def _named(returned: ast.Return, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """The entry `loss` of a dictionary that is returned, for the one value with a graph."""
    assert returned.value is not None
    values = [Value(returned.value, file), *resolver_of(context.program).behind(Value(returned.value, file))]
    made = next((one for one in values if isinstance(one.node, ast.Dict) and one.node.keys), None)
    if made is None or not isinstance(made.node, ast.Dict):
        yield from _of_helper(returned.value, values, file, context)
        return
    keys = [one.value for one in made.node.keys if isinstance(one, ast.Constant)]
    if len(keys) != len(made.node.keys) or "loss" in keys:
        return
    provenance = provenance_of(context.program)
    live = [one for one in made.node.values if provenance.trace(Value(one, made.file)).live]
    if len(live) != 1 or dotted_name(live[0]) is None:
        return
    start, _ = made.file.span(made.node)
    quote = made.file.segment(made.node.keys[0])[-1]  # type: ignore[arg-type]
    text = f"{quote}loss{quote}: {made.file.segment(live[0])}, "
    yield Proposal(
        edits=(Edit(file=made.file.path, start=start + 1, end=start + 1, new=text),),
        culprit=culprit_of(made.file, made.node, "returns what is to be minimised under another name than `loss`"),
        belief=1.8,
    )


def _of_helper(given: ast.expr, values: list[Value], file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`{**out, "loss": out["val_loss"]}` for `out`, the dictionary that a step of training shares with one of validation."""
    resolver, provenance = resolver_of(context.program), provenance_of(context.program)
    for one in values:
        target = resolver.function_of(one.node, one) if isinstance(one.node, ast.Call) else None
        if target is None or not isinstance(one.node, ast.Call):
            continue
        made = [each for each in resolver.returns_of(target, one.node, one) if isinstance(each.node, ast.Dict)]
        pairs = [] if len(made) != 1 else list(zip(made[0].node.keys, made[0].node.values, strict=True))  # type: ignore[attr-defined]
        names = [key.value for key, _ in pairs if isinstance(key, ast.Constant)]
        live = [key for key, value in pairs if provenance.trace(Value(value, made[0].file, made[0].arguments)).live]
        if len(names) != len(pairs) or "loss" in names or len(live) != 1:
            return
        text, key = file.segment(given), repr(live[0].value).replace("'", '"')
        new = f'{{**{text}, "loss": {text}[{key}]}}' if isinstance(given, ast.Name) else f"{text}[{key}]"
        yield Proposal(
            edits=(edit_of(file, given, new),),
            culprit=culprit_of(file, given, f"returns what is to be minimised under {key} and not under `loss`"),
            belief=1.8,
        )
        return
