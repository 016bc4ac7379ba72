"""A gradient gets the form of what it belongs to: `p.grad = piece.view_as(p)`, and a loss of one number needs none at all.

Only a flat piece is viewed: one of two dimensions may be transposed, and a view would hide that. A gradient that is not one
(`-1` in a Wasserstein loss) keeps its value and loses its dimension. A tensor of weights for a list of losses becomes a list. Ones
for each of as many outputs take the shape of the output: `torch.ones_like(energy)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import crash_places, message_of
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.argument import drop_argument
from explainer.fix.text.rewrite import put_method, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import definitions, scope_of, value_of

_FLAT = re.compile(r"assign a gradient of size '\[\d+\]'")
_SCALAR = re.compile(
    r"grad_output\[0\] has a shape of torch\.Size\(\[1\]\) and output\[0\] has a shape of torch\.Size\(\[\]\)"
)
_OF_EACH = re.compile(
    r"grad_output\[0\] has a shape of torch\.Size\(\[\d+\]\) and output\[0\] has a shape of torch\.Size\(\[\]\)"
)
_BOTH = re.compile(
    r"grad_output\[0\] has a shape of torch\.Size\(\[([\d, ]*)\]\) and output\[0\] has a shape of torch\.Size\(\[([\d, ]*)\]\)"
)
_ENGINES = {"torch.autograd.backward": ("grad_tensors", 1), "torch.autograd.grad": ("grad_outputs", 2)}
_DEPTH = 4
_MADE_OF = ("torch.tensor", "torch.FloatTensor", "torch.Tensor")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the line that raised, where the message shows the two shapes."""
    if not context.has_failed:
        return
    message = message_of(context)
    for file, statement in crash_places(context):
        if _FLAT.search(message):
            yield from _assigned(file, statement)
        elif _SCALAR.search(message):
            yield from _given(file, statement, context.program)
        if _OF_EACH.search(message):
            yield from _of_each(file, statement, context.program)
        if _is_as_many(message):
            yield from _ones(file, statement, context.program)
        return


def _is_as_many(message: str) -> bool:
    """Whether the two shapes differ by axes of 1 alone: the same numbers in the same order."""
    found = _BOTH.search(message)
    shapes = [re.findall(r"\d+", one) for one in found.groups()] if found is not None else [[], ["0"]]
    return (
        shapes[0] != shapes[1]
        and [one for one in shapes[0] if one != "1"] == [one for one in shapes[1] if one != "1"] != []
    )


def _ones(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Proposal]:
    """Ones that are given for an output: they are the same in whatever shape."""
    names = program.names(file)
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        keyword, place = _ENGINES.get(names.qualified(call.func) or "", ("gradient", 0))
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "backward" and keyword == "gradient"
        if keyword == "gradient" and not is_method:
            continue
        assert isinstance(call.func, ast.Attribute) or not is_method
        output = call.func.value if is_method and isinstance(call.func, ast.Attribute) else next(iter(call.args), None)
        given = next((one.value for one in call.keywords if one.arg == keyword), None)
        given = given or (call.args[place] if len(call.args) > place else None)
        if given is None or dotted_name(output) is None or not _is_one(given, statement, file, program):
            continue
        assert output is not None
        text = f"{spell(names, 'torch.ones_like')}({file.segment(output)})"
        yield Proposal(
            edits=(edit_of(file, given, text),),
            culprit=culprit_of(file, given, f"gives ones in another shape than `{file.segment(output)}` has"),
            belief=2.0,
            title=f"Pass ones of the output's own shape: `{text}`",
            because="ones are the same in any shape; each element of the output counts once, as it was meant",
        )


def _of_each(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Proposal]:
    """One tensor for several losses is taken for the gradient of the first: `list(weights)` gives each its own number."""
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        keyword, place = _ENGINES.get(program.names(file).qualified(call.func) or "", ("", 0))
        if not keyword or not call.args or _is_one_tensor(call.args[0], statement, file, program):
            continue
        given = next((one.value for one in call.keywords if one.arg == keyword), None)
        given = given or (call.args[place] if len(call.args) > place else None)
        is_list = isinstance(given, ast.Call) and dotted_name(given.func) in ("list", "tuple")
        if isinstance(given, (ast.Name, ast.Attribute, ast.Call)) and not is_list:
            yield Proposal(
                edits=(edit_of(file, given, f"list({file.segment(given)})"),),
                culprit=culprit_of(
                    file, call, "gives several losses one tensor as their gradients, where each wants its own"
                ),
                belief=1.5,
            )


def _is_one_tensor(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether what is differentiated is not known to be a list."""
    name, scope = dotted_name(node), scope_of(at, file, program)
    made = definitions(name, at, scope) if name and scope is not None else []
    value = value_of(made[-1], name or "") if made else None if name else node
    return not isinstance(value, (ast.List, ast.Tuple, ast.ListComp))


def _assigned(file: SourceFile, statement: ast.stmt) -> Iterator[Proposal]:
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute) or target.attr != "grad":
        return
    owner = file.segment(target.value)
    if f"view_as({owner})" not in file.segment(statement.value):
        yield Proposal(
            edits=(put_method(file, statement.value, f".view_as({owner})"),),
            culprit=culprit_of(file, statement, f"gives `{owner}` a flat gradient"),
            belief=1.5,
        )


def _given(file: SourceFile, statement: ast.stmt, program: Program) -> Iterator[Proposal]:
    for call in (node for node in walk(statement) if isinstance(node, ast.Call)):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward" or len(call.args) != 1:
            continue
        given = call.args[0]
        made = _root(given, statement, file, program)
        inner = made.args[0] if made is not None else None
        if isinstance(inner, ast.Constant):
            continue  # a number, without a dimension
        part = inner.elts[0] if isinstance(inner, ast.List) and len(inner.elts) == 1 else None
        number = part.value if isinstance(part, ast.Constant) else None
        uses = sum(1 for one in file.walk() if _is_given(one))
        if made is not None and isinstance(number, (int, float)) and uses > 1:
            new = f"{spell(program.names(file), 'torch.tensor')}({float(number)})"
            yield Proposal(
                edits=(edit_of(file, made, new),),
                culprit=culprit_of(
                    file, made, "makes a gradient with a dimension, for losses that are one number each"
                ),
                belief=1.8,
            )
        if isinstance(given, ast.Call) and getattr(given.func, "attr", "") == "squeeze":
            continue
        is_one = _is_one(given, statement, file, program)
        edit: Edit = drop_argument(file, call, given) if is_one else put_method(file, given, ".squeeze()")
        loss = file.segment(call.func.value)
        yield Proposal(
            edits=(edit,),
            culprit=culprit_of(file, call, f"gives `{loss}`, one number, a gradient with a dimension"),
            belief=1.5,
        )


def _is_given(node: ast.AST) -> bool:
    """Whether a node is a backward that is given a gradient by name."""
    is_backward = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    return is_backward and len(node.args) == 1 and isinstance(node.args[0], ast.Name)  # type: ignore[attr-defined]


def _root(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program, depth: int = 0) -> ast.Call | None:
    """The call that made the tensor behind a gradient such as `one * -1`."""
    if isinstance(node, ast.BinOp):
        names = [one for one in (node.left, node.right) if isinstance(one, (ast.Name, ast.Attribute))]
        return _root(names[0], at, file, program, depth) if len(names) == 1 else None
    if isinstance(node, ast.UnaryOp):
        return _root(node.operand, at, file, program, depth)
    if isinstance(node, ast.Call):
        return node if program.names(file).is_call(node, *_MADE_OF) and len(node.args) == 1 else None
    name, scope = dotted_name(node), scope_of(at, file, program)
    made = definitions(name, at, scope) if name and scope is not None and depth < _DEPTH else []
    value = value_of(made[-1], name or "") if len(made) == 1 else None
    return _root(value, made[-1], file, program, depth + 1) if value is not None else None


def _is_one(node: ast.expr, at: ast.stmt, file: SourceFile, program: Program) -> bool:
    """Whether a gradient is 1 by what it was made of."""
    name, scope = dotted_name(node), scope_of(at, file, program)
    made = definitions(name, at, scope) if name and scope is not None else []
    value = value_of(made[-1], name or "") if len(made) == 1 else None if name else node
    if not isinstance(value, ast.Call):
        return False
    if program.names(file).is_call(value, "torch.ones"):
        return True
    inner = value.args[0] if len(value.args) == 1 and program.names(file).is_call(value, *_MADE_OF) else None
    parts = inner.elts if isinstance(inner, ast.List) else [inner]
    return all(isinstance(part, ast.Constant) and part.value == 1 for part in parts)
