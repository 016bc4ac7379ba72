"""The optimizer is given the model that the loss runs: it was made for another one, or before the name got a new model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, lines_of, remove_statement
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.network.module import is_module
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.lineage import binds, block_of, reads

_NO_FORWARD = frozenset(
    {"parameters", "named_parameters", "train", "eval", "to", "cuda", "cpu", "state_dict", "zero_grad", "modules"}
)


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that owns a model which the program does not run."""
    if not context.has_failed:
        return
    program = context.program
    for file in program.parsed():
        owners = list(_owners(file, program))
        for statement, owner in owners:
            name = dotted_name(owner) or ""
            later = _made_anew(name, statement, file, program)
            if later is not None:
                yield Proposal(
                    edits=(remove_statement(file, statement), insert_after(file, later, lines_of(file, statement))),
                    culprit=culprit_of(file, later, f"makes another `{name}` than the optimizer was given"),
                    belief=2.5,
                )
            elif not _runs(name, file):
                owned = {dotted_name(one) for _, one in owners}
                others = [one for one in _called(file, program) if one not in owned]
                if len(others) == 1:
                    yield Proposal(
                        edits=_given(others[0], owner, statement, file),
                        culprit=culprit_of(file, owner, f"owns `{name}`, and the loss runs `{others[0]}`"),
                        belief=2.0,
                        applicability="unsafe",
                        because=f"right where `{others[0]}` is what should train",
                    )


def _given(name: str, owner: ast.expr, statement: ast.stmt, file: SourceFile) -> tuple[Edit, ...]:
    """The optimizer made for another model, behind the statement that makes that one."""
    block = list(block_of(statement, file))
    behind = block[block.index(statement) + 1 :] if statement in block else []
    later = next((one for one in behind if name in binds(one)), None)
    if later is None:
        return (edit_of(file, owner, name),)
    start, end = (at - file.span(statement)[0] for at in file.span(owner))
    text = lines_of(file, statement)
    return (remove_statement(file, statement), insert_after(file, later, f"{text[:start]}{name}{text[end:]}"))


def _owners(file: SourceFile, program: Program) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The statements that make an optimizer of torch, with the `model` of `model.parameters()`."""
    names = program.names(file)
    for node in file.walk():
        if isinstance(node, ast.Call) and (names.qualified(node.func) or "").startswith("torch.optim."):
            given = (
                node.args[0] if node.args else next((one.value for one in node.keywords if one.arg == "params"), None)
            )
            is_all = (
                isinstance(given, ast.Call)
                and isinstance(given.func, ast.Attribute)
                and given.func.attr == "parameters"
            )
            if is_all and isinstance(given.func.value, ast.Name):  # type: ignore[union-attr]
                yield file.statement(node), given.func.value  # type: ignore[union-attr]


def _made_anew(name: str, statement: ast.stmt, file: SourceFile, program: Program) -> ast.stmt | None:
    """The statement behind the optimizer's in its block that gives the name a module made there."""
    block = list(block_of(statement, file))
    behind = block[block.index(statement) + 1 :] if statement in block else []
    found = [
        one
        for one in behind
        if isinstance(one, ast.Assign) and name in binds(one) and _is_new(one.value, name, file, program)
    ]
    return found[-1] if found else None


def _is_new(node: ast.expr, name: str, file: SourceFile, program: Program) -> bool:
    """Whether an expression makes a module with parameters of its own: not `net.to(device)`, nor what wraps `net`."""
    if (program.names(file).qualified(getattr(node, "func", None)) or "") == "copy.deepcopy":
        return True
    return name not in reads(node, graph=False) and is_module(Value(node, file), program)


def _runs(name: str, file: SourceFile) -> bool:
    """Whether anything runs a module, hands it on, or takes a part of it."""
    for node in file.plain_names.get(name, ()):
        above = file.parents.get(node)
        is_other = isinstance(above, ast.Attribute) and above.attr in _NO_FORWARD
        if isinstance(node.ctx, ast.Load) and not is_other:
            return True
    return False


def _called(file: SourceFile, program: Program) -> list[str]:
    """The names of modules that the file calls."""
    names = dict.fromkeys(
        node.func.id
        for node in file.walk()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and is_module(Value(node.func, file), program)
    )
    return [one for one in names if not any(one == cls for cls in program.names(file).classes)]
