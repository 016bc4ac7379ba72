"""A model gets rows for the tokens that were added to its tokenizer: `model.resize_token_embeddings(len(tokenizer))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, insert_after
from explainer.source.file import SourceFile
from explainer.source.lineage import block_of
from explainer.source.name import dotted_name

_ADDS = frozenset({"add_tokens", "add_special_tokens"})
_RESIZE = "resize_token_embeddings"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each block that adds tokens and loads one model, where nothing resizes one."""
    if not context.has_failed or any(_RESIZE in file.attributes for file in context.program.parsed()):
        return
    for file in context.program.parsed():
        for name in _ADDS:
            for node in file.attributes.get(name, ()):
                call = file.parents.get(node)
                if isinstance(call, ast.Call) and call.func is node and dotted_name(node.value):
                    yield from _resized(call, file, dotted_name(node.value) or "")


def _resized(call: ast.Call, file: SourceFile, tokenizer: str) -> Iterator[Proposal]:
    added = file.statement(call)
    block = list(block_of(added, file))
    loads = [one for one in block if _loads_model(one)]
    if added not in block or len(loads) != 1:
        return
    last = max(added, loads[0], key=block.index)
    model = dotted_name(loads[0].targets[0])  # type: ignore[attr-defined]
    yield Proposal(
        edits=(insert_after(file, last, f"{model}.{_RESIZE}(len({tokenizer}))"),),
        culprit=culprit_of(file, call, f"adds tokens to `{tokenizer}`, for which `{model}` has no rows"),
        belief=2.0,
    )


def _loads_model(statement: ast.stmt) -> bool:
    """`model = AutoModelForCausalLM.from_pretrained(...)`, or a model of a configuration."""
    value = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    called = dotted_name(value.func) or "" if isinstance(value, ast.Call) else ""
    owner, _, method = called.rpartition(".")
    kind = owner.rpartition(".")[2]
    is_model = method in ("from_pretrained", "from_config") and ("Model" in kind or "For" in kind)
    return is_model and dotted_name(statement.targets[0]) is not None  # type: ignore[attr-defined]
