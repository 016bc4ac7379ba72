"""`attention(x, x, x, key_padding_mask=m)` becomes `attention(..., need_weights=False)` where the weights are not used.

Asked for its weights, `nn.MultiheadAttention` computes a softmax whose hidden rows are NaN; without them it uses
`scaled_dot_product_attention`, which gives 0 with finite gradients for such rows from torch 2.5 on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.clue.blame import anomaly_node, nearness
from explainer.fix.codemod import Context, Proposal, culprit_of
from explainer.fix.text.rewrite import add_argument
from explainer.source.data.padding import inverted_masks
from explainer.source.file import SourceFile
from explainer.source.program import Program
from explainer.source.value.flow import flow_of


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each masked attention whose weights nobody reads."""
    if not context.has_failed:
        return
    for file in context.program.parsed():
        for node in file.walk():
            if (
                isinstance(node, ast.Call)
                and _is_masked_attention(node, file, context.program)
                and _ignores_weights(node, file)
                and not any(inverted_masks(node, file, context.program))
            ):
                yield Proposal(
                    edits=(add_argument(file, node, "need_weights=False"),),
                    culprit=culprit_of(
                        file, node, "computes weights, by a softmax that a sample without a key makes NaN"
                    ),
                    belief=(1.5 if "Softmax" in anomaly_node(context) else 0.5) + nearness(file, node, context),
                )


def _is_masked_attention(node: ast.Call, file: SourceFile, program: Program) -> bool:
    given = {one.arg for one in node.keywords}
    if not given & {"key_padding_mask", "attn_mask"} or given & {"need_weights", None}:
        return False
    made = flow_of(program).constructor_of(node.func, file)
    return made is not None and program.names(file).qualified(made.func) == "torch.nn.MultiheadAttention"


def _ignores_weights(node: ast.Call, file: SourceFile) -> bool:
    """Whether only the first result is used: `out, _ = attention(...)` or `attention(...)[0]`."""
    above = file.parents.get(node)
    if isinstance(above, ast.Subscript):
        return isinstance(above.slice, ast.Constant) and above.slice.value == 0
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Tuple):
        return False
    last = above.targets[0].elts[-1]
    return isinstance(last, ast.Name) and (last.id == "_" or last.id.startswith("_"))
