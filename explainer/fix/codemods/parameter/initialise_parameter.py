"""A parameter made of memory that nobody filled gets its values where it is made.

`nn.Parameter(torch.empty(n))` that no initialiser reaches becomes `torch.ones(n)` where it scales, `torch.zeros(n)` where it
shifts, and a matrix is followed by `nn.init.xavier_uniform_`; a module after `to_empty` is followed by `reset_parameters()`.
A module that is built on the meta device, allocated and then loaded, whose file does not hold all of it, is built where it stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.trace import traced_places
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, remove_statement
from explainer.fix.text.rewrite import spell
from explainer.model.trace import NOT_FINITE
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import block_of

_EMPTY = ("torch.empty", "torch.Tensor", "torch.FloatTensor", "torch.empty_like")
_MEANING = "the author's own initial values are not known"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each parameter or module that is used as the allocator left it."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                yield from _of_parameter(node, node.value, file, context.program)
                yield from _of_module(node, node.value, file, context.program)
            elif isinstance(node, ast.With):
                yield from _on_meta(node, file, context)


def _of_parameter(node: ast.Assign, call: ast.Call, file: SourceFile, program: Program) -> Iterator[Proposal]:
    names = program.names(file)
    name = dotted_name(node.targets[0])
    made = (
        call.args[0]
        if call.args and names.is_call(call, "torch.nn.Parameter", "torch.nn.parameter.Parameter")
        else None
    )
    if not isinstance(made, ast.Call) or names.qualified(made.func) not in _EMPTY or name is None or not made.args:
        return
    if _is_filled(name, node, file, program):
        return
    culprit = culprit_of(file, node, f"makes `{name}` of memory that nothing initialises")
    if isinstance(made.args[0], (ast.List, ast.Tuple)) or len(made.args) > 1:
        init = f"{spell(names, 'torch.nn.init')}.xavier_uniform_({name})"
        yield Proposal(
            is_origin=True,
            edits=(insert_after(file, node, init),),
            culprit=culprit,
            belief=1.5,
            applicability="unsafe",
            because=_MEANING,
        )
        return
    value = "zeros" if _is_added(name, node, file, program) else "ones"
    edit = edit_of(file, made.func, spell(names, f"torch.{value}"))
    yield Proposal(edits=(edit,), culprit=culprit, belief=1.5, applicability="unsafe", because=_MEANING, is_origin=True)


def _is_filled(name: str, node: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether anything writes the parameter: an initialiser, a method that ends in `_`, a copy, a loaded state dict."""
    owner = program.names(file).class_of(node) or file.tree
    for one in walk(owner) if owner is not None else ():
        if not isinstance(one, ast.Call):
            continue
        if any(dotted_name(argument) == name for argument in one.args) and _writes(one):
            return True
        if isinstance(one.func, ast.Attribute) and _writes(one) and name in (dotted_name(one.func.value) or ""):
            return True
        if (
            isinstance(one.func, ast.Attribute)
            and one.func.attr == "parameters"
            and "self" in (dotted_name(one.func.value) or "")
        ):
            return True
    attribute = name.removeprefix("self.")
    return any(
        isinstance(one, ast.Call) and _writes(one) and attribute in (dotted_name(part) or "").split(".")
        for other in program.parsed()
        for one in other.walk()
        if isinstance(one, ast.Call)
        for part in (*one.args, getattr(one.func, "value", one.func))
    )


def _writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name.endswith("_") and not name.startswith("_") and name != "requires_grad_"


def _is_added(name: str, node: ast.Assign, file: SourceFile, program: Program) -> bool:
    """Whether the parameter is only added, as a bias is."""
    owner = program.names(file).class_of(node) or file.tree
    sums = [one for one in walk(owner) if isinstance(one, ast.BinOp)] if owner is not None else []
    kinds = {type(one.op) for one in sums for part in (one.left, one.right) if dotted_name(part) == name}
    return kinds == {ast.Add}


def _of_module(node: ast.Assign, call: ast.Call, file: SourceFile, program: Program) -> Iterator[Proposal]:
    name = dotted_name(node.targets[0])
    layer = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "to_empty" else None
    if name is None or not isinstance(layer, ast.Call):
        return
    made = program.names(file).qualified(layer.func) or ""
    if not made.startswith("torch.nn.") or made.endswith("Sequential") or _is_loaded(name, file):
        return
    yield Proposal(
        edits=(insert_after(file, node, f"{name}.reset_parameters()"),),
        culprit=culprit_of(file, node, f"leaves `{name}` with whatever the memory held"),
        belief=1.5,
    )


def _on_meta(block: ast.With, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """`with torch.device("meta"): m = M()`, then `m.to_empty(device=d)`: what no state dict fills keeps what the memory held."""
    names, made = context.program.names(file), block.items[0].context_expr
    if not (len(block.items) == len(block.body) == 1 and isinstance(made, ast.Call) and len(made.args) == 1):
        return
    is_meta = names.is_call(made, "torch.device") and getattr(made.args[0], "value", None) == "meta"
    built = block.body[0]
    name = dotted_name(built.targets[0]) if isinstance(built, ast.Assign) else None
    allocation = next(
        (
            one
            for one in block_of(block, file)
            if isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and dotted_name(one.value.func) == f"{name}.to_empty"
        ),
        None,
    )
    if (
        not is_meta
        or name is None
        or allocation is None
        or allocation not in [one for _, one in traced_places(NOT_FINITE, context)]
    ):
        return
    device = next((one.value for one in getattr(allocation.value, "keywords", ()) if one.arg == "device"), None)
    if device is None:
        return
    yield Proposal(
        edits=(edit_of(file, made.args[0], file.segment(device)), remove_statement(file, allocation)),
        culprit=culprit_of(file, allocation, f"leaves what `{name}` computed when it was built as the memory was"),
        belief=2.0,
        because="buffers that no state dict holds are computed when the module is built, and not on the meta device",
    )


def _is_loaded(name: str, file: SourceFile) -> bool:
    """Whether the module gets values afterwards."""
    return any(
        isinstance(one, ast.Call)
        and isinstance(one.func, ast.Attribute)
        and one.func.attr in ("reset_parameters", "load_state_dict", "apply", "copy_")
        and (dotted_name(one.func.value) or "").startswith(name)
        for one in file.walk()
    )
