"""What NumPy, or a library that reads arrays, is given of a GPU is copied to the CPU: `x.cpu().numpy()`, `scores.append(x.cpu())`.

A list is mended where it is filled, also behind a call of a function that reads it; a bfloat16 value, which NumPy does not
know, becomes float32. Whether a graph may be cut is another question: `detach_for_numpy`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.clue.seen import SeenTensor, seen, seen_modules, seen_tensors
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.device_word import HOST
from explainer.fix.text.rewrite import put_method
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.loop.filling import ADDS, Use, find_uses, key_of, uses_in
from explainer.source.name import dotted_name
from explainer.source.tree import walk
from explainer.source.value.array_kind import ARRAY, kind_of
from explainer.source.value.binding import Value, all_parameters, bind_call, reaching
from explainer.source.value.lineage import root_of
from explainer.source.value.resolve import resolver_of

_SAID = "to numpy"
_TO_HOST = frozenset({"cpu", "numpy", "item", "tolist"})
_READERS = ("numpy.", "scipy.", "sklearn.", "pandas.", "matplotlib.", "evaluate.", "statistics.", "seaborn.")
_DISPLAYS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Constant)
_DEPTH = 4


def propose(context: Context) -> Iterator[Proposal]:
    """Edits of what the failing statement hands to NumPy."""
    if not context.has_failed or _SAID not in message_of(context):
        return
    for file, statement in failing_statements(context)[:1]:
        for node in walk(statement):
            if isinstance(node, ast.Call):
                yield from _tensors(node, file, context)
        yield from _lists(statement, file, context)


def _tensors(node: ast.Call, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`x.numpy()` becomes `x.cpu().numpy()`; an argument of a library that reads arrays `x.cpu()`."""
    read = [node.func.value] if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" else []
    read += [one for one in _given(node) if _reads(node, file, context) and _is_on_gpu(one, node, file, context)]
    if read:
        yield Proposal(
            edits=tuple(put_method(file, one, _copy(seen(one, context))) for one in read),
            culprit=culprit_of(file, node, "hands the memory of a GPU to NumPy, which reads the CPU's"),
            belief=2.0,
            title=f"Copy it to the CPU first: `{file.segment(read[0])}.cpu()`",
        )


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _reads(call: ast.Call, file: SourceFile, context: Context) -> bool:
    """Whether what is called may read arrays: no module, no function of torch's or of the program's own."""
    called = context.program.names(file).qualified(call.func) or ""
    if called.startswith(_READERS):
        return True
    value = Value(call.func, file)
    resolver = resolver_of(context.program)
    is_own = resolver.function_of(call, value) is not None or bool(resolver.classes_of(value))
    return not (called.startswith("torch.") or is_own or _is_module(call.func, context))


def _is_module(node: ast.expr, context: Context) -> bool:
    return (dotted_name(node) or "") in seen_modules(context)


def _is_on_gpu(node: ast.expr, call: ast.Call, file: SourceFile, context: Context) -> bool:
    """Whether an argument was seen there, or is computed of one that was: `(scores > 0) == labels` of a call of NumPy's."""
    known = seen(node, context)
    if known is not None:
        return known.device not in HOST
    names = context.program.names(file)
    is_computed = isinstance(node, (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Call))
    if not is_computed or not (names.qualified(call.func) or "").startswith(_READERS) or _leaves(node, file, context):
        return False
    if isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute) and not _is_module(node.func, context):
        return False
    seen_in = [found for one in walk(node) if isinstance(one, ast.expr) and (found := seen(one, context)) is not None]
    return any(one.device not in HOST for one in seen_in)


def _leaves(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether an expression takes something out of torch by itself, or is what NumPy has computed."""
    names = context.program.names(file)
    return any(
        isinstance(one, ast.Call)
        and (
            (isinstance(one.func, ast.Attribute) and one.func.attr in _TO_HOST)
            or (names.qualified(one.func) or "").startswith(_READERS)
        )
        for one in walk(node)
    )


def _copy(known: SeenTensor | None) -> str:
    """The copy of a value to the CPU, as NumPy can read it."""
    return ".float().cpu()" if known is not None and known.dtype == "bfloat16" else ".cpu()"


def _lists(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """What is put into the lists that the failing statement reads, each piece as it is put there."""
    edits: list[Edit] = []
    read: list[Edit] = []
    culprit = None
    for value in _read_lists(statement, file, context):
        element = _element(value.node, context)
        copy = _copy(element)
        if element is not None and value.pick is None and isinstance(file.parents.get(value.node), ast.Call):
            read.append(edit_of(file, value.node, f"[each{copy} for each in {file.segment(value.node)}]"))
        for where, piece in _filled(value, context):
            edit = put_method(where, piece, copy)
            if edit not in edits:
                edits.append(edit)
                culprit = culprit or culprit_of(
                    where, piece, "collects tensors of a GPU for NumPy, which reads the CPU's"
                )
    if culprit is not None:
        yield Proposal(
            edits=tuple(edits),
            culprit=culprit,
            belief=1.8,
            title="Copy to the CPU what is collected for NumPy: `.cpu()`",
            is_origin=True,
        )
    if read:  # where the list is read on the GPU as well, or it is not seen who fills it
        yield Proposal(
            edits=tuple(read),
            culprit=culprit_of(file, statement, "hands tensors of a GPU to NumPy, which reads the CPU's"),
            belief=1.0,
            title="Copy what the list holds to the CPU first",
        )


def _read_lists(statement: ast.stmt, file: SourceFile, context: Context) -> Iterator[Value]:
    """The lists that the failing statement's calls are given, and hold tensors of a GPU as far as was seen.

    `[score for score, _ in seen]` reads a part of each element.
    """
    names = context.program.names(file)
    for node in walk(statement):
        is_reader = isinstance(node, ast.Call) and (names.qualified(node.func) or "").startswith(_READERS)
        for one in _given(node) if isinstance(node, ast.Call) else ():
            value = _walked(one, file) if isinstance(one, (ast.ListComp, ast.GeneratorExp)) else Value(one, file)
            if value is None or root_of(value.node) is None or seen(value.node, context) is not None:
                continue
            element = _element(value.node, context)
            # Of a name the elements are seen, of what an object or a dictionary holds they are not.
            if element.device not in HOST if element is not None else is_reader and _is_held(value):
                yield value


def _is_held(value: Value) -> bool:
    return value.pick is not None or not isinstance(value.node, ast.Name)


def _walked(node: ast.ListComp | ast.GeneratorExp, file: SourceFile) -> Value | None:
    """The list that a comprehension hands on as it is, or a part of each of its elements."""
    target, first = node.generators[0].target, node.generators[0]
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    names = [one.id if isinstance(one, ast.Name) else None for one in parts]
    if len(node.generators) > 1 or not isinstance(node.elt, ast.Name) or node.elt.id not in names:
        return None
    return Value(first.iter, file, pick=names.index(node.elt.id) if len(parts) > 1 else None)


def _element(node: ast.expr, context: Context) -> SeenTensor | None:
    """A tensor that a list was seen to hold, one of a GPU before others."""
    prefix = f"{ast.unparse(node)}["
    found = [one for name, one in seen_tensors(context).items() if name.startswith(prefix) and name.count("[") == 1]
    return next((one for one in found if one.device not in HOST), found[0] if found else None)


def _filled(value: Value, context: Context, depth: int = 0) -> Iterator[tuple[SourceFile, ast.expr]]:
    """The expressions that are put into a list, where a program still has them on the GPU."""
    node, file = value.node, value.file
    if isinstance(node, ast.ListComp):
        yield from _piece(node.elt, value, context)
    elif isinstance(node, ast.List):
        for one in node.elts:
            yield from _piece(one, value, context)
    elif depth < _DEPTH:
        uses = _uses(node, file, context)
        for use in uses:
            added = Value(use.value, use.file, pick=value.pick) if use.value is not None else None
            if added is not None and isinstance(added.node, (ast.List, ast.ListComp)):
                yield from _filled(added, context, _DEPTH)
            elif added is not None and use.kind == ADDS:
                yield from _piece(added.node, added, context)
        for before in () if uses else _handed_in(value, context):
            yield from _filled(before, context, depth + 1)


def _uses(node: ast.expr, file: SourceFile, context: Context) -> list[Use]:
    """The statements that make or fill a list: a name, an attribute, an entry of a dictionary as the file spells it."""
    if not isinstance(node, ast.Subscript):
        return find_uses(context.program).get(key_of(node, file, context.program), [])
    every = (one for each in file.walk() if isinstance(each, ast.stmt) for one in uses_in(each, file))
    return [one for one in every if one.kind == ADDS and ast.unparse(one.target) == ast.unparse(node)]


def _handed_in(value: Value, context: Context) -> Iterator[Value]:
    """What a name was before: its binding in the function, or the argument that each caller gives for it."""
    name = dotted_name(value.node)
    bound = [one for one in reaching(name, value.node, value.file) if not one.fills] if name is not None else []
    if bound or name is None:
        plain = (one for one in bound if one.pick is None and not one.is_element)
        yield from (replace(value, node=one.node) for one in plain)
        return
    function = context.program.names(value.file).function_of(value.node)
    if function is None or name not in all_parameters(function):
        return
    for where, call in resolver_of(context.program).calls_of(function, value.file):
        given = bind_call(call, function, Value(call, where)).get(name)
        if given is not None:
            yield replace(given, pick=value.pick)


def _piece(node: ast.expr, value: Value, context: Context) -> Iterator[tuple[SourceFile, ast.expr]]:
    """One value that is put into a list, or the part of it that is read, if it can be a tensor of a GPU."""
    if value.pick is not None:
        parts = node.elts if isinstance(node, ast.Tuple) else []
        node = parts[value.pick] if isinstance(value.pick, int) and value.pick < len(parts) else ast.Tuple(elts=[])
    is_host = isinstance(node, _DISPLAYS) or _leaves(node, value.file, context)
    if not is_host and kind_of(Value(node, value.file), context.program) != ARRAY:
        yield value.file, node
