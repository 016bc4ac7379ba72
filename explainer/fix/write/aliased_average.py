"""What a program means for a copy of its parameters, and which are these themselves: `self.shadow = dict(model.named_parameters())`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explainer.fix.codemod import edit_of
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value
from explainer.source.value.resolve import resolver_of

_LISTS = frozenset({"parameters", "named_parameters"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasedAverage:
    """A container that holds parameters, where it is made, and the edit that makes it hold copies."""

    file: SourceFile
    node: ast.expr
    edit: Edit


def aliased_average(statement: ast.stmt, file: SourceFile, program: Program) -> AliasedAverage | None:
    """The container whose entry a statement writes in place from a parameter, where it holds that very model's parameters."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or not call.func.attr.endswith("_"):
        return None
    written: ast.expr = call
    while isinstance(written, ast.Call) and isinstance(written.func, ast.Attribute):
        written = written.func.value
    container = written.value if isinstance(written, ast.Subscript) else _walked(written, statement, file)
    read = {one.id for each in call.args for one in walk(each) if isinstance(one, ast.Name)}
    sources = [found for name in read if (found := _walked(ast.Name(name), statement, file)) is not None]
    made = list(resolver_of(program).behind(Value(container, file))) if container is not None else []
    if len(made) != 1 or len(sources) != 1:
        return None
    listed, edit = _copied(made[0].node, made[0].file)
    averaged = list(resolver_of(program).behind(Value(sources[0], file))) or [Value(sources[0], file)]
    owners = {_owner(one.node) for one in averaged}
    if edit is None or listed is None or owners != {_owner(listed)} or None in owners:
        return None
    assert isinstance(listed.func, ast.Attribute)
    copies = resolver_of(program).behind(Value(listed.func.value, made[0].file))
    if any(isinstance(one.node, ast.Call) and "copy" in (dotted_name(one.node.func) or "") for one in copies):
        return None
    return AliasedAverage(file=made[0].file, node=made[0].node, edit=edit)


def _owner(node: ast.AST) -> str | None:
    """`model` of `model.named_parameters()`, also where a list is made of it."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("list", "dict")
        and node.args
    ):
        node = node.args[0]
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _LISTS:
        return None
    return dotted_name(node.func.value)


def _walked(node: ast.expr, statement: ast.stmt, file: SourceFile) -> ast.expr | None:
    """What a loop walks to name an entry, alone or beside others: `for s, p in zip(self.shadow, model.parameters())`."""
    name = dotted_name(node)
    for loop in file.around(statement):
        if not isinstance(loop, ast.For) or name is None:
            continue
        names = [dotted_name(one) for one in loop.target.elts] if isinstance(loop.target, ast.Tuple) else []
        zipped = loop.iter if isinstance(loop.iter, ast.Call) and dotted_name(loop.iter.func) == "zip" else None
        if zipped is not None and name in names and len(names) == len(zipped.args):
            return zipped.args[names.index(name)]
        if zipped is None and name in (names[-1:] or [dotted_name(loop.target)]):
            return loop.iter
    return None


def _copied(made: ast.AST, file: SourceFile) -> tuple[ast.Call | None, Edit | None]:
    """What lists the parameters of a container, and the edit by which it holds copies; None of what is no such container."""
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and len(made.args) == 1 and not made.keywords:
        inner, text = made.args[0], file.segment(made.args[0])
        if isinstance(inner, ast.Call) and (made.func.id, _called(inner)) == ("list", "parameters"):
            return inner, edit_of(file, made, f"[p.detach().clone() for p in {text}]")
        if isinstance(inner, ast.Call) and (made.func.id, _called(inner)) == ("dict", "named_parameters"):
            return inner, edit_of(file, made, f"{{name: p.detach().clone() for name, p in {text}}}")
    value = made.value if isinstance(made, ast.DictComp) else made.elt if isinstance(made, ast.ListComp) else None
    if value is None or not isinstance(made, (ast.DictComp, ast.ListComp)) or len(made.generators) != 1:
        return None, None
    target, listed = made.generators[0].target, made.generators[0].iter
    last = target.elts[-1] if isinstance(target, ast.Tuple) else target
    is_parameter = _called(listed) in _LISTS and isinstance(value, ast.Name) and value.id == dotted_name(last)
    if not is_parameter or not isinstance(listed, ast.Call):
        return None, None
    return listed, edit_of(file, value, f"{file.segment(value)}.detach().clone()")


def _called(node: ast.expr) -> str:
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
