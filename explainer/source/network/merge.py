"""Where a program merges an adapter into the model that it goes on training: `merge_and_unload` between two epochs.

PEFT merges in place: the layers of the model itself become plain ones with frozen weights (read on PEFT 0.21).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.loop.carried import training_loops
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, all_parameters, bind_call, bounds_of, scope_of
from explainer.source.value.lineage import block_of, loops_of
from explainer.source.value.resolve import resolver_of

_MERGES = frozenset({"merge_and_unload", "unload"})
_DEPTH = 4
# What hands on the module that it is given or called on.
_HANDS_ON = frozenset({"unwrap_model", "to", "train", "eval", "cuda", "cpu", "half", "float", "bfloat16"})
_WRAPS = frozenset({"get_peft_model", "add_adapter", "load_adapter", "inject_adapter_in_model"})
_HOOKS = frozenset(
    {"on_epoch_end", "on_step_end", "on_substep_end", "on_evaluate", "on_save", "on_train_epoch_end", "on_train_batch_end"}
    | {"on_validation_epoch_end", "on_validation_end", "on_validation_start", "validation_step", "on_validation_epoch_start"}
)  # fmt: skip
_TRAINERS = ("transformers.", "trl.", "lightning", "pytorch_lightning")
_LAST = re.compile(r"last|final|done|finish|stop", re.IGNORECASE)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A call that merges the adapter of `owner`, a model that trains on; `loop` runs both, None where a trainer's hook does."""

    file: SourceFile
    call: ast.Call
    owner: ast.expr
    loop: ast.For | ast.While | None
    within: SourceFile


def find_merges(program: Program) -> tuple[Merge, ...]:
    """Every merge of a model that is trained after it, in the order of the files."""
    return program.once(_find_merges)


def _find_merges(program: Program) -> Iterator[Merge]:
    for file in program.parsed():
        if "unload" not in file.text:
            continue
        for node in file.walk():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MERGES:
                is_known = node.func.attr == "merge_and_unload" or _uses_peft(program)
                if is_known and not _is_wrapped_again(node, file, program):
                    yield from _merge(node, file, program)


def _uses_peft(program: Program) -> bool:
    return any(
        target.startswith("peft") for file in program.parsed() for target in program.names(file).imports.values()
    )


def _merge(node: ast.Call, file: SourceFile, program: Program) -> Iterator[Merge]:
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    if _is_hook(node, owner, file, program):
        yield Merge(file=file, call=node, owner=owner, loop=None, within=file)
        return
    found = next(_loops_above(node, owner, file, program, 0), None)
    if found is not None:
        yield Merge(file=file, call=node, owner=owner, loop=found[1], within=found[0])


def _loops_above(
    node: ast.Call, owner: ast.expr, file: SourceFile, program: Program, depth: int
) -> Iterator[tuple[SourceFile, ast.For | ast.While]]:
    """The training loop round a call, or round a call of its function, where each round finds the same model."""
    statement = file.statement(node)
    loops = {loop for _, loop, _ in training_loops(program)}
    around = next((loop for loop in loops_of(statement, file) if loop in loops), None)
    name = _model_name(owner, statement, file, around)
    if name is None or _is_at_the_end(statement, file, around):
        return
    if around is not None:
        yield file, around
        return
    function = scope_of(statement, file)
    if depth >= _DEPTH or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    root = name.partition(".")[0]
    for where, call in resolver_of(program).calls_of(function, file):
        given: ast.expr | None = None
        if root == "self" and isinstance(call.func, ast.Attribute):
            given = call.func.value
        elif root in all_parameters(function):
            given = getattr(bind_call(call, function, Value(call, where)).get(root), "node", None)
        if given is not None:
            yield from _loops_above(call, given, where, program, depth + 1)


def _model_name(owner: ast.expr, statement: ast.stmt, file: SourceFile, loop: ast.For | ast.While | None) -> str | None:
    """The name of the model that outlives the call, seen through what hands it on; None for a copy or one that is made for it."""
    scope = scope_of(statement, file)
    inside = set(walk(loop)) if loop is not None else None
    for _ in range(_DEPTH):
        name = dotted_name(owner)
        if name is None:
            handed = _handed_on(owner)
            if handed is None:
                return None
            owner = handed
            continue
        root = name.partition(".")[0]
        made = [
            one.node
            for one in bounds_of(scope)
            if one.name in (name, root) and not one.fills and (inside is None or one.statement in inside)
            and not _is_merge(one.node) and one.statement is not loop
        ]  # fmt: skip
        if not made:
            return name
        handed = _handed_on(made[0]) if len(made) == 1 else None
        if handed is None or dotted_name(handed) == name:
            return None
        owner = handed
    return None


def _handed_on(node: ast.expr) -> ast.expr | None:
    """`model` of `accelerator.unwrap_model(model)`, `model.eval()` and of another name for it."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _HANDS_ON:
        return None
    return node.args[0] if node.func.attr == "unwrap_model" and node.args else node.func.value


def _is_merge(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MERGES


def _is_at_the_end(statement: ast.stmt, file: SourceFile, loop: ast.For | ast.While | None) -> bool:
    """Whether the rounds end behind a statement: a `break` follows, or a test asks for the last of them."""
    above: ast.AST | None = statement
    while above is not None and above is not loop and not isinstance(above, _SCOPES):
        if isinstance(above, ast.stmt):
            block = block_of(above, file)
            later = block[block.index(above) + 1 :] if above in block else ()
            ends = (ast.Break, ast.Return, ast.Raise) if loop is not None else ()
            if any(isinstance(one, ends) for one in later):
                return True
        if isinstance(above, ast.If) and _asks_for_last(above.test):
            return True
        above = file.parents.get(above)
    return False


def _asks_for_last(test: ast.expr) -> bool:
    """`epoch == epochs - 1`, `step >= steps`, `is_last`; not `epoch % 5 == 0`."""
    if any(isinstance(one, (ast.Name, ast.Attribute)) and _LAST.search(dotted_name(one) or "") for one in walk(test)):
        return True
    return any(
        isinstance(one, ast.Compare)
        and isinstance(one.ops[0], (ast.Eq, ast.GtE, ast.Gt))
        and not any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in walk(one))
        for one in walk(test)
    )


def _is_hook(node: ast.Call, owner: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether a trainer runs the call again and again: a hook of its callback, with the model that it trains."""
    function = file.enclosing(node, ast.FunctionDef)
    if not isinstance(function, ast.FunctionDef) or function.name not in _HOOKS:
        return False
    around = program.names(file).class_of(node)
    bases: Sequence[ast.expr] = around.bases if around is not None else ()
    is_trainers = any((program.names(file).qualified(one) or "").startswith(_TRAINERS) for one in bases)
    statement = file.statement(node)
    return (
        is_trainers
        and _model_name(owner, statement, file, None) is not None
        and not _is_at_the_end(statement, file, None)
    )


def _is_wrapped_again(node: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether the function puts an adapter on again: what is merged then is a stage of the training."""
    return any(
        isinstance(one, ast.Call) and one.lineno > node.lineno and _wraps(program.names(file).qualified(one.func) or "")
        for one in walk(scope_of(node, file))
    )


def _wraps(called: str) -> bool:
    last = called.rpartition(".")[2]
    return last in _WRAPS or (called.startswith("peft.") and last == "from_pretrained")
