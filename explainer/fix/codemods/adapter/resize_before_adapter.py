"""`base.resize_token_embeddings(len(tokens))` before saved weights with more tokens are loaded into `base`.

The message names the embedding and both sizes. How large is written as where the program resized the model that it saved; where
that cannot be said at the load, it is the number of rows in the file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.clue.crash import message_of, raised_at
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.text.rewrite import free_name
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, all_parameters, bounds_of, scope_of
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_RESIZE = "resize_token_embeddings"
_EMBEDDING = r"(?:embed_tokens|wte|word_embeddings|embed_in|embed_out|lm_head|shared|tok_embeddings)"
_MISMATCH = re.compile(
    rf"size mismatch for [\w.]*{_EMBEDDING}\.[\w.]*weight: copying a param\w* with shape torch\.Size\(\[(\d+), (\d+)\]\)"
    r" from checkpoint, the shape in current model is torch\.Size\(\[(\d+), (\d+)\]\)"
)
_LOADS = ("load_state_dict", "set_peft_model_state_dict")
_MODELS = ("transformers.", "peft.")


@dataclass(frozen=True, slots=True)
class _Load:
    """The call that wraps the base model or loads weights into it, and the model that has to be resized before it."""

    file: SourceFile
    call: ast.Call
    model: ast.expr


def propose(context: Context) -> Iterator[Proposal]:
    """A resize before the call that loads, where the file has more rows of the same width."""
    sizes = _MISMATCH.findall(message_of(context))
    rows = {(int(saved), int(own)) for saved, width, own, other in sizes if width == other}
    if len(rows) != 1 or len(rows) != len({(one[0], one[2]) for one in sizes}):
        return
    saved, own = rows.pop()
    if saved <= own:
        return
    for file, statement in list(raised_at(context))[:1]:
        load = _load_at(file, statement, context.program)
        if load is None or _is_resized(load, context.program):
            continue
        size = _size(load, saved, context.program)
        edits = _edits(load, size) if size is not None else ()
        if edits:
            why = f"loads {saved} rows of the embedding into a model that has {own}"
            yield Proposal(edits=edits, culprit=culprit_of(load.file, load.call, why), belief=2.0)


def _load_at(file: SourceFile, statement: ast.stmt, program: Program) -> _Load | None:
    """The load on the line that raised; weights that are put into a wrapped model need its base resized before the wrapping."""
    names = program.names(file)
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        called = names.qualified(call.func) or ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else called.rpartition(".")[2]
        if called.startswith("peft.") and last == "from_pretrained":
            model = next(iter(call.args), None) or _keyword(call, "model")
            return _Load(file, call, model) if model is not None else None
        if last == "load_adapter" and isinstance(call.func, ast.Attribute):
            return _Load(file, call, call.func.value)
        if last in _LOADS:
            model = (call.func.value if isinstance(call.func, ast.Attribute) else None) if last == _LOADS[0] else None
            model = model or next(iter(call.args), None)
            return _into(Value(model, file), call, program) if model is not None else None
    return None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _into(model: Value, call: ast.Call, program: Program) -> _Load | None:
    """Where a model that gets a state dict is resized: before it is wrapped, if it is; only a model that can be resized."""
    for one in resolver_of(program).behind(model):
        called = program.names(one.file).qualified(getattr(one.node, "func", None)) or ""
        if isinstance(one.node, ast.Call) and called.startswith("peft.") and one.node.args:
            return _Load(one.file, one.node, one.node.args[0])
    made = resolver_of(program).constructors_of(model)
    names = [program.names(one.file).qualified(getattr(one.node, "func", None)) or "" for one in made]
    return _Load(model.file, call, model.node) if names and all(one.startswith(_MODELS) for one in names) else None


def _is_resized(load: _Load, program: Program) -> bool:
    """Whether the model was resized before: here, in what made it, or in what it was handed to."""
    resolver = resolver_of(program)
    model = Value(load.model, load.file)
    name = dotted_name(load.model)
    makers = [model, *resolver.behind(model)]
    calls = [(one.node, one) for one in makers if isinstance(one.node, ast.Call)]
    if any((target := resolver.function_of(call, one)) is not None and _resizes(target[1]) for call, one in calls):
        return True
    for node in walk(scope_of(load.call, load.file)):
        if not isinstance(node, ast.Call) or name is None or start_of(node) >= start_of(load.call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == _RESIZE and dotted_name(node.func.value) == name:
            return True
        if any(dotted_name(one) == name for one in node.args):
            target = resolver.function_of(node, Value(node, load.file))
            if target is not None and _resizes(target[1]):
                return True
    return False


def _resizes(function: Function) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == _RESIZE for one in walk(function))


def _size(load: _Load, saved: int, program: Program) -> str | None:
    """The arguments of the resize: those of the program's own where they mean the same here, else the number of rows."""
    written = {
        text
        for file, call in resolver_of(program).calls_named(_RESIZE)
        if (text := _rewritten(call, file, load, saved, program)) is not None
    }
    return written.pop() if len(written) == 1 else str(saved)


def _rewritten(call: ast.Call, file: SourceFile, load: _Load, saved: int, program: Program) -> str | None:
    """The arguments of another resize, as they are written at the load; None where they mean something else there."""
    if not call.args:
        return None
    number = number_of(call.args[0], program.names(file))
    if number is not None and number != saved:
        return None
    start, end = file.span(call)
    text = file.text[file.span(call.args[0])[0] : end - 1].strip().removesuffix(",")
    here = {one.id: one for one in walk(call) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    here.pop("len", None)
    for name, node in here.items():
        if node is _root(call.func):
            continue
        other = _same(Value(node, file), load, program)
        if other is None:
            return None
        text = re.sub(rf"(?<![\w.]){re.escape(name)}\b", other, text)
    return text if start < end and "\n" not in text else None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def _same(value: Value, load: _Load, program: Program) -> str | None:
    """The name that stands at the load for what another place calls something: made by the same call, or the same constant."""
    assert isinstance(value.node, ast.Name)
    resolver = resolver_of(program)
    made = {one.node for one in resolver.constructors_of(value)}
    for name in [value.node.id, *sorted(_visible(load, program) - {value.node.id})]:
        if name not in _visible(load, program):
            continue
        node = ast.copy_location(ast.Name(id=name, ctx=ast.Load()), load.call)
        load.file.parents[node] = load.call
        other = {one.node for one in resolver.constructors_of(Value(node, load.file))}
        if other == made and (made or (name == value.node.id and _is_global(value, load))):
            return name
    return None


def _is_global(value: Value, load: _Load) -> bool:
    """Whether a name is the same constant in both places: no function of theirs binds it, and they are in one file."""
    assert isinstance(value.node, ast.Name)
    scopes = (scope_of(value.node, value.file), scope_of(load.call, load.file))
    local = any(
        value.node.id in {bound.name for bound in bounds_of(scope)}
        or (not isinstance(scope, ast.Module) and value.node.id in all_parameters(scope))
        for scope in scopes
        if not isinstance(scope, ast.Module)
    )
    return value.file is load.file and not local


def _visible(load: _Load, program: Program) -> set[str]:
    """The plain names that are bound before the load: in its function, as its parameters, in its file."""
    scope = scope_of(load.call, load.file)
    found = {
        bound.name for bound in bounds_of(scope) if getattr(bound.statement, "lineno", 0) < load.call.lineno
    } | set(program.names(load.file).imports)
    if not isinstance(scope, ast.Module):
        found |= all_parameters(scope)
        found |= {bound.name for bound in bounds_of(load.file.tree)} if load.file.tree is not None else set()
    return {one for one in found if "." not in one}


def _edits(load: _Load, size: str) -> tuple[Edit, ...]:
    """The statement before the load; a model that is made in the call gets a name first."""
    statement = load.file.statement(load.call)
    name = dotted_name(load.model)
    if name is not None:
        return (insert_before(load.file, statement, f"{name}.{_RESIZE}({size})"),)
    if not isinstance(load.model, ast.Call) or load.file.tree is None:
        return ()
    fresh = free_name("base", scope_of(load.call, load.file))
    if any(bound.name == fresh for bound in bounds_of(load.file.tree)):
        return ()
    text = load.file.segment(load.model)
    if "\n" in text:
        return ()
    lines = f"{fresh} = {text}\n{fresh}.{_RESIZE}({size})"
    return (insert_before(load.file, statement, lines), edit_of(load.file, load.model, fresh))
