"""An embedding with sparse gradients gets an optimizer that takes them: `SparseAdam` for it, Adam for the rest.

`Adam(table.parameters())` becomes `SparseAdam(table.parameters())` where the table is all that it has; where dense layers are
beside it, `sparse=True` goes instead, or the setting that it comes from. `SparseAdam(model.parameters())` keeps the sparse ones,
and an Adam beside it steps the others.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of, insert_after, insert_before
from explainer.fix.setting.edit import set_value
from explainer.fix.text.rewrite import free_name, remove_argument, spell
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.name import Names, dotted_name
from explainer.source.network.freeze import owner_of
from explainer.source.setting.flow import settings_behind
from explainer.source.value.flow import flow_of

_DENSE = ("torch.optim.Adam", "torch.optim.AdamW", "torch.optim.NAdam", "torch.optim.RAdam")
_KEPT = ("lr", "betas", "eps")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that is given a sparse embedding alone, and one that makes each embedding dense."""
    message = " ".join(one.message for one in context.incident.exceptions)
    if context.has_failed and "dense gradients" in message:
        yield from _beside_sparse(context)
        return
    if not context.has_failed or not _has_dense(context):
        return
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            if names.is_call(node, *_DENSE) and len(node.args) == 1 and _is_sparse_alone(node.args[0], file, context):
                if all(one.arg in _KEPT for one in node.keywords):
                    yield Proposal(
                        edits=(edit_of(file, node.func, spell(names, "torch.optim.SparseAdam")),),
                        culprit=culprit_of(file, node, "does not take sparse gradients"),
                        belief=1.5,
                    )
            elif names.is_call(node, "torch.nn.Embedding", "torch.nn.EmbeddingBag"):
                for keyword in node.keywords:
                    if keyword.arg == "sparse":
                        yield from _dense(node, keyword, file, context)


def _beside_sparse(context: Context) -> Iterator[Proposal]:
    """A second optimizer for what is dense, stepped and cleared where the sparse one is; not where anything else takes that one."""
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            call, name = node.value, dotted_name(node.targets[0])
            owner = owner_of(call.args[0]) if len(call.args) == 1 else None
            model = dotted_name(owner) if owner is not None else None
            if not names.is_call(call, "torch.optim.SparseAdam") or model is None or name is None:
                continue
            used = _driven(name, node, file, names)
            if used is None or any(one.arg not in _KEPT for one in call.keywords):
                continue
            scope = file.tree or node
            owned, dot, last = name.rpartition(".")
            sparse, other = free_name("sparse", scope), f"{owned}{dot}{free_name(f'dense_{last}', scope)}"
            rest = "".join(f", {file.segment(one)}" for one in call.keywords)
            tables = f"({spell(names, 'torch.nn.Embedding')}, {spell(names, 'torch.nn.EmbeddingBag')})"
            is_sparse = f"isinstance(m, {tables}) and m.sparse"
            chosen = f"{sparse} = {{p for m in {model}.modules() if {is_sparse} for p in m.parameters()}}"
            dense = f"{other} = {spell(names, 'torch.optim.Adam')}([p for p in {model}.parameters() if p not in {sparse}]{rest})"
            yield Proposal(
                edits=(
                    insert_before(file, node, chosen),
                    edit_of(file, call.args[0], f"[p for p in {model}.parameters() if p in {sparse}]"),
                    insert_after(file, node, dense),
                    *(insert_after(file, one, file.segment(one).replace(name, other, 1)) for one in used),
                ),
                culprit=culprit_of(file, node, "gives SparseAdam parameters whose gradients are dense"),
                belief=1.5,
            )


def _driven(name: str, made: ast.Assign, file: SourceFile, names: Names) -> list[ast.stmt] | None:
    """The statements that step or clear an optimizer; None where it is used in another way, or where the second is not known."""
    used: list[ast.stmt] = []
    for node in file.walk():
        if not isinstance(node, (ast.Name, ast.Attribute)) or dotted_name(node) != name or file.statement(node) is made:
            continue
        if "." not in name and names.function_of(node) is not names.function_of(made):
            return None
        statement = file.statement(node)
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or dotted_name(call.func) not in (f"{name}.step", f"{name}.zero_grad"):
            return None
        if call.args and dotted_name(call.func) == f"{name}.step":
            return None
        used.append(statement)
    return used


def _dense(node: ast.Call, keyword: ast.keyword, file: SourceFile, context: Context) -> Iterator[Proposal]:
    """Without `sparse=True`; where the value comes from a setting that says so in one place, that one says no."""
    culprit = culprit_of(file, node, "makes sparse gradients, which the optimizer does not take")
    edit: Edit | str = remove_argument(file, node, keyword)
    if not isinstance(keyword.value, ast.Constant):
        settings = settings_behind(keyword.value, file, context.program)
        if len(settings) != 1 or settings[0].value is not True:
            return
        edit = set_value(settings[0], False)  # noqa: FBT003 - a value, no switch
        span = (settings[0].key or settings[0].span)[0], settings[0].span[1]
        culprit = culprit_at(settings[0].file, span, "asks for sparse gradients, which the optimizer does not take")
    elif keyword.value.value is not True:
        return
    if isinstance(edit, Edit):
        yield Proposal(
            edits=(edit,),
            culprit=culprit,
            belief=0.8,
            title="Make the embedding dense: without `sparse=True`",
            because="the gradient has the size of the table: more memory and time for large vocabularies",
        )


def _has_dense(context: Context) -> bool:
    """Whether the program steps with an optimizer that does not take sparse gradients."""
    return any(
        isinstance(node, (ast.Attribute, ast.Name)) and context.program.names(file).qualified(node) in _DENSE
        for file in context.program.parsed()
        for node in file.walk()
    )


def _is_sparse_alone(node: ast.expr, file: SourceFile, context: Context) -> bool:
    """Whether parameters are those of one sparse embedding: `table.parameters()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "parameters":
        return False
    made = flow_of(context.program).constructor_of(node.func.value, file)
    if made is None or not context.program.names(file).is_call(made, "torch.nn.Embedding", "torch.nn.EmbeddingBag"):
        return False
    return any(
        one.arg == "sparse" and isinstance(one.value, ast.Constant) and one.value.value is True for one in made.keywords
    )
