"""A new adapter that is made from a saved adapter's configuration gets one for training: `config.inference_mode = False`.

PEFT saves every `adapter_config.json` with `inference_mode` true, so that an adapter which is loaded to be used is frozen; what
`get_peft_model` makes from it is frozen as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.text.rewrite import free_name
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.peft import WRAPS
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.lineage import binds, definitions, scope_of

_FLAG = "inference_mode"
_WHY = "reads a saved adapter's configuration, whose `inference_mode` is true: what is made from it is frozen"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each configuration that is read from a saved adapter, and that a new one is made from."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            recipe = _recipe(node, names)
            if recipe is not None:
                yield from _edited(recipe, file, context.program)


def _recipe(node: ast.AST, names: Names) -> ast.expr | None:
    """The configuration that a call makes an adapter from."""
    if not isinstance(node, ast.Call):
        return None
    is_wrap = names.is_call(node, *WRAPS)
    if not is_wrap and not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_adapter"):
        return None
    named = next((one.value for one in node.keywords if one.arg in ("peft_config", "adapter_config")), None)
    return named or (node.args[1] if len(node.args) > 1 else None)


def _edited(recipe: ast.expr, file: SourceFile, program: Program) -> Iterator[Proposal]:
    names, statement, scope = program.names(file), file.statement(recipe), scope_of(recipe, file, program)
    if scope is None:
        return
    if _is_read(recipe, names):
        name = free_name("config", scope)
        text = f"{name} = {file.segment(recipe)}\n{name}.{_FLAG} = False"
        edits = (insert_before(file, statement, text), edit_of(file, recipe, name))
        yield Proposal(edits=edits, culprit=culprit_of(file, recipe, _WHY), belief=2.2)
        return
    name = dotted_name(recipe) or ""
    made = definitions(name, statement, scope) if name else []
    value = made[0].value if len(made) == 1 and isinstance(made[0], ast.Assign) and name in binds(made[0]) else None
    if value is None or not _is_read(value, names) or _is_set(name, scope):
        return
    edit = insert_after(file, made[0], f"{name}.{_FLAG} = False")
    yield Proposal(edits=(edit,), culprit=culprit_of(file, value, _WHY), belief=2.2)


def _is_read(node: ast.expr, names: Names) -> bool:
    """`PeftConfig.from_pretrained(path)`, of any class of configurations that PEFT has."""
    called = (names.qualified(node.func) or "") if isinstance(node, ast.Call) else ""
    owner, _, method = called.rpartition(".")
    return called.startswith("peft.") and method == "from_pretrained" and owner.endswith("Config")


def _is_set(name: str, scope: ast.AST) -> bool:
    """Whether the program says itself what the configuration is for."""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and dotted_name(one) == f"{name}.{_FLAG}"
        for one in walk(scope)
    )
