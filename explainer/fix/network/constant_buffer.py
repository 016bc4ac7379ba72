"""Constants that a module keeps in plain attributes, which `module.to(device)` does not move, as buffers.

`self.table = torch.cumprod(1 - betas, 0)` becomes `self.register_buffer("table", torch.cumprod(1 - betas, 0))`. A constant is what
torch makes of numbers and of other constants, in this function or in those that it calls; or what was seen to be a tensor on the
CPU when its frame failed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.blame import crash_frames
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.source.file import SourceFile
from explainer.source.name import Function, dotted_name
from explainer.source.network.module import inherits_module
from explainer.source.program import Program
from explainer.source.tree import start_of, walk
from explainer.source.value.binding import Value, bounds_of
from explainer.source.value.constant_tensor import constants_of
from explainer.source.value.resolve import resolver_of

_LAYER = re.compile(r"torch\.nn\.(?:[a-z]\w*\.)*[A-Z]")
_LOADS = ("load_state_dict", "load_from_checkpoint", "from_pretrained", "load_checkpoint")
_Read = dict[str, bool]  # the attributes that the failing statement reads, and whether each was seen on the CPU


def propose_buffers(context: Context) -> Iterator[Proposal]:
    """An edit for all such constants of the modules that failed, and one for each."""
    done: set[ast.ClassDef] = set()
    for file, owner, read in (*_read_by_failure(context), *_around_failure(context)):
        if owner not in done and _is_module(owner, file, context.program):
            done.add(owner)
            yield from _buffers(owner, file, read, context)


def _read_by_failure(context: Context) -> Iterator[tuple[SourceFile, ast.ClassDef, _Read]]:
    """The classes whose attributes the failing statement reads."""
    program, known = context.program, seen_tensors(context)
    found: dict[ast.ClassDef, tuple[SourceFile, _Read]] = {}
    for file, statement in failing_statements(context)[:1]:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for node in walk(statement):
            if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
                continue
            base = dotted_name(node.value)
            own = program.names(file).class_of(statement) if base == "self" else None
            owners = [(file, own)] if own else []
            if not owners and base is not None and f"{base}.{node.attr}" in known:
                owners = [*resolver_of(program).classes_of(Value(node.value, file))]
            for where, owner in owners:
                seen = known.get(f"{base}.{node.attr}")
                is_left = seen is not None and seen.device == "cpu" and bool(seen.shape)
                found.setdefault(owner, (where, {}))[1][node.attr] = is_left
    yield from ((where, owner, read) for owner, (where, read) in found.items())


def _around_failure(context: Context) -> Iterator[tuple[SourceFile, ast.ClassDef, _Read]]:
    """The classes that a frame of the failure stands in."""
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for owner in context.program.names(file).classes.values():
            if any(owner.lineno <= line <= (owner.end_lineno or 0) for line in frames):
                yield file, owner, {}


def _is_module(owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    names = program.names(file)
    named = any(
        (names.qualified(base) or "").rpartition(".")[2] in ("Module", "LightningModule") for base in owner.bases
    )
    return named or inherits_module(owner, file, program)


def _buffers(owner: ast.ClassDef, file: SourceFile, read: _Read, context: Context) -> Iterator[Proposal]:
    keep = ", persistent=False" if _loads_state(context.program) else ""
    kept = _constants(owner, file, read, context)
    found = [_buffer(nodes, name, file, keep, is_read=read.get(name, False)) for name, nodes in kept.items()]
    if len(found) > 1:  # the ones that a constant is computed of, and others beside it, are read as well
        edits = tuple(edit for one in found for edit in one.edits)
        first = max(found, key=lambda one: one.belief)
        yield replace(first, edits=edits, belief=first.belief + 0.1)
    yield from found


def _buffer(nodes: list[ast.Assign], attribute: str, file: SourceFile, keep: str, *, is_read: bool) -> Proposal:
    because = "the buffer becomes part of the state dict, so that older state dicts lack it (`persistent=False` leaves it out)"
    if keep:
        because = "`persistent=False` leaves the state dict as it is: others that are loaded still fit"
    return Proposal(
        edits=tuple(
            edit_of(file, one, f'self.register_buffer("{attribute}", {file.segment(one.value)}{keep})') for one in nodes
        ),
        culprit=culprit_of(file, nodes[-1], "is a plain attribute, which `module.to(device)` does not see"),
        belief=2.0 if is_read else 1.6,
        applicability="unsafe",
        because=because,
        title=f'Register constants of a module as buffers: `self.register_buffer("{attribute}", ...)`',
    )


def _constants(owner: ast.ClassDef, file: SourceFile, read: _Read, context: Context) -> dict[str, list[ast.Assign]]:
    """The assignments that give an attribute a constant as the module is made, where nothing else is assigned to it then."""
    made = list(_makers(owner))
    found: dict[str, list[ast.Assign]] = {}
    others: set[str] = set()
    for method in (one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))):
        known = constants_of(method, file, context.program)
        for node in sorted((one for one in walk(method) if isinstance(one, ast.Assign)), key=start_of):
            name = dotted_name(node.targets[0]) or ""
            attribute = name.removeprefix("self.")
            if not name.startswith("self.") or "." in attribute:
                continue
            is_constant = known.is_tensor(node.value) or read.get(attribute, False) or _is_none(node.value)
            is_free = (
                is_constant and not _is_number(node.value) and not _may_train(node.value, owner, file, context.program)
            )
            if method in made and len(node.targets) == 1 and is_free:
                found.setdefault(attribute, []).append(node)
            elif method in made:  # before it is registered, a name must be free; later it may be given another tensor
                others.add(attribute)
    return {
        attribute: nodes
        for attribute, nodes in found.items()
        if attribute not in others and not _is_none(nodes[-1].value)
    }


def _makers(owner: ast.ClassDef) -> Iterator[Function]:
    """`__init__`, and the methods that it calls."""
    methods = {one.name: one for one in owner.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    made = methods.get("__init__")
    if made is None:
        return
    yield made
    for node in walk(made):
        name = (dotted_name(node.func) or "").removeprefix("self.") if isinstance(node, ast.Call) else ""
        if name in methods and name != "__init__":
            yield methods[name]


def _is_none(value: ast.expr) -> bool:
    """Whether an attribute is only declared: a buffer may be None until it is made."""
    return isinstance(value, ast.Constant) and value.value is None


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is not None


def _may_train(value: ast.expr, owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether a value may be trained, or have the graph of what is: a parameter, what reads one or runs a layer."""
    names = program.names(file)
    layers = {
        bound.name
        for method in owner.body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
        for bound in bounds_of(method)
        if isinstance(bound.node, ast.Call) and _LAYER.match(names.qualified(bound.node.func) or "")
    }
    for node in walk(value):
        if isinstance(node, ast.keyword) and node.arg == "requires_grad":
            return True
        if isinstance(node, (ast.Attribute, ast.Name)):
            name = dotted_name(node) or ""
            if name in layers or name.rpartition(".")[2] in ("Parameter", "weight", "bias", "parameters"):
                return True
    return False


def _loads_state(program: Program) -> bool:
    return any(name in file.attributes for file in program.parsed() for name in _LOADS)
