"""`torch.float16` becomes `torch.bfloat16`, or float32 where the GPU has no bfloat16, everywhere in the program at once.

`dtype` in the rule's options is the one to write; with `for_numpy` only where the program hands tensors to NumPy, which has no bfloat16.
bfloat16 has float32's range; a GradScaler beside it does no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.text.rewrite import spell
from explainer.model.patch import Edit
from explainer.source.network.precision import DTYPE, FLAG, METHOD, WORD, Half, find_halves, is_module
from explainer.source.program import Program
from explainer.source.tree import walk

_WORDS = {
    "bfloat16": {"fp16": "bf16", "16-mixed": "bf16-mixed", "16": "bf16", "torch.float16": "torch.bfloat16"},
    "float32": {"fp16": "no", "16-mixed": "32-true", "16": "32", "torch.float16": "torch.float32"},
}
_CASTS = frozenset({"float", "double", "to", "type", "long", "int", "bool", "argmax", "argsort"})
_UNKNOWN = "needs a GPU that has bfloat16 (compute capability 8.0 or more); which one runs this is not known"
_WIDER = "twice the memory of float16"


def propose(context: Context) -> Iterator[Proposal]:
    """One edit of all places that choose float16."""
    dtype = str(context.options.get("dtype", ""))
    able = context.ability("bf16")
    if not context.has_failed or dtype not in _WORDS or (dtype == "bfloat16" and able is False):
        return
    meets_numpy = any(_is_for_numpy(node) for file in context.program.parsed() for node in file.walk())
    if meets_numpy if dtype == "bfloat16" else context.options.get("for_numpy") and not meets_numpy:
        return
    halves = list(find_halves(context.program))
    edits = tuple(edit for half in halves for edit in _edits(half, dtype, context.program))
    if not edits:
        return
    first = max(halves, key=lambda half: _guilt(half, context.program))
    node = first.node.value if isinstance(first.node, ast.keyword) else first.node
    reason = _UNKNOWN if able is None else None
    yield Proposal(
        edits=edits,
        culprit=culprit_of(first.file, node, "chooses float16, whose largest number is 65504"),
        belief=1.0,
        applicability="unsafe" if dtype == "float32" or able is None else None,
        because=_WIDER if dtype == "float32" else reason,
    )


def _is_for_numpy(node: ast.AST) -> bool:
    """Whether a node is `weight.grad.numpy()`: a tensor in the dtype that it has. NumPy takes float16, and no bfloat16."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "numpy":
        return False
    return not _CASTS & {one.attr for one in walk(node.func.value) if isinstance(one, ast.Attribute)}


def _guilt(half: Half, program: Program) -> int:
    """How much a place is the one that decides: a cast of a module, a setting, a dtype, autocast's last."""
    if half.kind in (FLAG, WORD):
        return 2
    if half.kind == METHOD:
        assert isinstance(half.node, ast.Call)
        assert isinstance(half.node.func, ast.Attribute)
        return 3 if is_module(half.node.func.value, half.file, program) else 0
    return 1


def _edits(half: Half, dtype: str, program: Program) -> Iterator[Edit]:
    file, node = half.file, half.node
    if half.kind == FLAG:
        assert isinstance(node, ast.keyword)
        start, end = file.offset(node.lineno, node.col_offset), file.span(node.value)[1]
        yield Edit(file=file.path, start=start, end=end, new="bf16=True" if dtype == "bfloat16" else "fp16=False")
    elif half.kind == WORD:
        assert isinstance(node, ast.Constant)
        quote = file.segment(node)[0]
        yield edit_of(file, node, f"{quote}{_WORDS[dtype].get(str(node.value), dtype)}{quote}")
    elif half.kind == METHOD:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        end = file.span(node.func)[1]
        yield Edit(file=file.path, start=end - len("half"), end=end, new="bfloat16" if dtype == "bfloat16" else "float")
    elif half.kind == DTYPE and isinstance(node, ast.expr):
        yield edit_of(file, node, spell(program.names(file), f"torch.{dtype}"))
