"""What a constructor makes for the size of a full batch is made for the batch that came, in the method that reads it.

`self.mask = torch.eye(2 * batch_size)` becomes `batch_size = a.size(0)` and `mask = torch.eye(2 * batch_size, device=a.device)`
in `forward(self, a, b)`. Only where no other method reads it, and the method's tensors were seen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from explainer.fix.clue.crash import raised_at
from explainer.fix.clue.seen import seen
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import parameters_of
from explainer.source.value.flow import arguments_of
from explainer.source.value.resolve import resolver_of

_SIZE = re.compile(r"(?:\w+_)?(?:batch_?size|bsz?|batch|n_?batch)(?:_\w+)?", re.IGNORECASE)
_FACTORIES = tuple(
    f"torch.{name}" for name in ("eye", "zeros", "ones", "arange", "full", "rand", "randn", "empty", "tensor")
)
_DRAWS = re.compile(
    r"(?:^|\.)(?:rand\w*|normal_?|uniform_?|multinomial|bernoulli_?|empty|xavier\w*|kaiming\w*|choice|shuffle)$"
)
_STATE = "what it registers is in older state dicts, and in new ones no more"


@dataclass(slots=True)
class _Made:
    """What a constructor makes for a batch size: `size` is its parameter, `local` and `attributes` are in the order of the text."""

    size: str
    file: SourceFile
    names: Names
    local: dict[str, ast.Assign] = field(default_factory=dict)
    attributes: dict[str, tuple[ast.stmt, ast.expr]] = field(default_factory=dict)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the method that raised."""
    if not context.has_failed:
        return
    for file, statement in list(raised_at(context))[:1]:
        names = context.program.names(file)
        owner, method = names.class_of(statement), names.function_of(statement)
        maker = next((one for one in owner.body if getattr(one, "name", "") == "__init__"), None) if owner else None
        if owner is None or method is None or not isinstance(maker, ast.FunctionDef) or method is maker:
            continue
        made = _made(maker, file, context.program)
        reads = _reads(method, made) if made is not None else {}
        rows = _rows(method, context)
        taken = set(parameters_of(method)) | {one.id for one in walk(method) if isinstance(one, ast.Name)}
        if made is None or not reads or rows is None or _is_read_elsewhere(owner, {maker, method}, reads):
            continue
        if any(_is_written(one, file) for nodes in reads.values() for one in nodes):
            continue  # a state, which is to last from batch to batch
        if any(_is_once(made.attributes[one][1], names) for one in reads):
            continue  # what is trained, or drawn once
        if {made.size, *made.local, *reads} & taken:
            continue
        first = made.attributes[next(iter(reads))][0]
        is_kept = any("register_buffer" in file.segment(made.attributes[one][0]) for one in reads)
        yield Proposal(
            edits=(*_brought(made, reads, rows, method), *_taken(made, reads, maker)),
            culprit=culprit_of(file, first, "is made once, for the size of a full batch"),
            belief=2.5,
            applicability="unsafe" if is_kept else None,
            because=_STATE if is_kept else None,
        )


def _made(maker: ast.FunctionDef, file: SourceFile, program: Program) -> _Made | None:
    """What a constructor makes for the one parameter that is a batch size; None where it uses that for anything else."""
    sizes = {one for one in parameters_of(maker) if _SIZE.fullmatch(one)}
    for _, call in resolver_of(program).calls_of(maker, file):
        given = arguments_of(call, maker)
        sizes |= {name for name, value in given if _SIZE.fullmatch((dotted_name(value) or "").rpartition(".")[2])}
    if len(sizes) != 1:
        return None
    found = _Made(sizes.pop(), file, program.names(file))
    for one in maker.body:
        sized = {found.size, *found.local}
        if not sized & {node.id for node in walk(one) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}:
            continue
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        attribute = _attribute(one)
        if isinstance(target, ast.Name) and isinstance(one, ast.Assign):
            found.local[target.id] = one
        elif attribute is not None:
            found.attributes[attribute[0]] = (one, attribute[1])
        else:
            return None
    return found


def _attribute(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """`mask` and its value, of `self.mask = ...` and of `self.register_buffer("mask", ...)`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        owner, _, name = (dotted_name(statement.targets[0]) or "").rpartition(".")
        return (name, statement.value) if owner == "self" else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and dotted_name(call.func) == "self.register_buffer" and len(call.args) > 1:
        key = call.args[0]
        return (key.value, call.args[1]) if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


def _reads(method: Function, made: _Made) -> dict[str, list[ast.Attribute]]:
    """Where a method reads what was made, by its name, in the order in which it was made."""
    found: dict[str, list[ast.Attribute]] = {}
    for node in walk(method):
        if (
            isinstance(node, ast.Attribute)
            and dotted_name(node) == f"self.{node.attr}"
            and node.attr in made.attributes
        ):
            found.setdefault(node.attr, []).append(node)
    return {name: found[name] for name in made.attributes if name in found}


def _is_read_elsewhere(owner: ast.ClassDef, own: set[ast.AST], reads: dict[str, list[ast.Attribute]]) -> bool:
    others = (one for part in owner.body if part not in own for one in walk(part))
    return any(isinstance(one, ast.Attribute) and one.attr in reads for one in others)


def _is_once(value: ast.expr, names: Names) -> bool:
    """Whether a value is not the same when it is made again: a parameter, a layer, a draw."""
    calls = [names.qualified(one.func) or ast.unparse(one.func) for one in walk(value) if isinstance(one, ast.Call)]
    is_layer = any(one.startswith("torch.nn.") and not one.startswith("torch.nn.functional.") for one in calls)
    return is_layer or any(_DRAWS.search(one) for one in calls)


def _is_written(node: ast.Attribute, file: SourceFile) -> bool:
    """Whether a method binds an attribute anew or changes what it holds: `self.state = ...`, `self.state[0] = x`, `self.state.zero_()`."""
    inner: ast.expr = node
    above = file.parents.get(inner)
    while isinstance(above, ast.Subscript) and above.value is inner:
        inner, above = above, file.parents.get(above)
    is_method = isinstance(above, ast.Attribute) and above.attr.endswith("_") and not above.attr.startswith("_")
    is_target = isinstance(above, ast.AugAssign) and above.target is inner
    return is_method or is_target or not isinstance(inner.ctx, ast.Load)  # type: ignore[attr-defined]


def _rows(method: Function, context: Context) -> str | None:
    """The first argument of a method that is a tensor with a row for each sample, which the method does not bind anew."""
    stored = {one.id for one in walk(method) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    for one in method.args.args[1:]:
        tensor = seen(ast.Name(id=one.arg, ctx=ast.Load()), context)
        if tensor is not None and tensor.shape and one.arg not in stored:
            return one.arg
    return None


def _brought(made: _Made, reads: dict[str, list[ast.Attribute]], rows: str, method: Function) -> Iterator[Edit]:
    """The edits of the method: what it reads is made at its beginning."""
    file = made.file
    needed = _needed(made, reads)
    lines = [f"{made.size} = {rows}.size(0)", *(file.segment(made.local[one]) for one in made.local if one in needed)]
    for name, nodes in reads.items():
        value = made.attributes[name][1]
        is_size = isinstance(value, ast.Name) and value.id == made.size
        if not is_size:
            lines.append(f"{name} = {_on_device(value, rows, made)}")
        yield from (edit_of(file, one, made.size if is_size else name) for one in nodes)
    body = method.body
    is_told = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    yield insert_before(file, body[1] if is_told else body[0], "\n".join(lines))


def _taken(made: _Made, reads: dict[str, list[ast.Attribute]], maker: ast.FunctionDef) -> Iterator[Edit]:
    """The edits of the constructor: what is made elsewhere goes, with the names that nothing else reads."""
    needed, moved = _needed(made, reads), {made.attributes[one][0] for one in reads}
    kept = [one for one in maker.body if one not in moved]
    for name in reversed(made.local):
        others = [one for one in kept if one is not made.local[name]]
        read = {node.id for one in others for node in walk(one) if isinstance(node, ast.Name)}
        if name in needed and name not in read:
            kept = others
    yield from (remove_statement(made.file, one) for one in maker.body if one not in kept)


def _needed(made: _Made, reads: dict[str, list[ast.Attribute]]) -> set[str]:
    """The names that what is read is made of, and those that these are made of."""
    found: set[str] = set()
    left = [node for one in reads for node in walk(made.attributes[one][0])]
    while left:
        node = left.pop()
        if isinstance(node, ast.Name) and node.id in made.local and node.id not in found:
            found.add(node.id)
            left.extend(walk(made.local[node.id].value))
    return found


def _on_device(value: ast.expr, rows: str, made: _Made) -> str:
    """What was made, on the device of the rows: a buffer was moved there with its module."""
    text = made.file.segment(value)
    is_number = not any(isinstance(one, ast.Call) for one in walk(value))
    if is_number or "device" in text:
        return text
    if isinstance(value, ast.Call) and made.names.is_call(value, *_FACTORIES):
        return f"{text[:-1].rstrip().removesuffix(',')}, device={rows}.device)"
    return f"{text}.to({rows}.device)" if isinstance(value, (ast.Call, ast.Name)) else f"({text}).to({rows}.device)"
