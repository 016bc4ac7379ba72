"""An embedding with sparse gradients gets an optimizer that takes them: `SparseAdam` for it, Adam for the rest.

`Adam(table.parameters())` becomes `SparseAdam(table.parameters())` where the table is all that it has; where dense layers are
beside it, `sparse=True` goes instead.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.rewrite import remove_argument, spell
from explainer.source.file import SourceFile
from explainer.source.flow import flow_of

_DENSE = ("torch.optim.Adam", "torch.optim.AdamW", "torch.optim.NAdam", "torch.optim.RAdam")
_KEPT = ("lr", "betas", "eps")


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each optimizer that is given a sparse embedding alone, and one that makes each embedding dense."""
    message = " ".join(one.message for one in context.incident.exceptions)
    if not context.has_failed or "dense gradients" in message or not _has_dense(context):
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
                    if (
                        keyword.arg == "sparse"
                        and isinstance(keyword.value, ast.Constant)
                        and keyword.value.value is True
                    ):
                        yield Proposal(
                            edits=(remove_argument(file, node, keyword),),
                            culprit=culprit_of(file, node, "makes sparse gradients, which the optimizer does not take"),
                            belief=0.8,
                            title="Make the embedding dense: without `sparse=True`",
                            because="the gradient has the size of the table: more memory and time for large vocabularies",
                        )


def _has_dense(context: Context) -> bool:
    """Whether the program steps with an optimizer that does not take sparse gradients."""
    return any(
        isinstance(node, ast.Call) and context.program.names(file).is_call(node, *_DENSE)
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
