"""Where one fused kernel of attention is forced, and takes no such input, the others are allowed beside it.

`sdpa_kernel(SDPBackend.FLASH_ATTENTION)` becomes `sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
SDPBackend.MATH])`; a setting that picks the backends of a table picks those that hold the present one and others. All compute the
same attention; PyTorch takes the first that can.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.fix.clue.crash import message_of
from explainer.fix.clue.failure import failing_statements
from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.fix.setting.edit import set_value
from explainer.model.patch import Edit
from explainer.source.file import SourceFile
from explainer.source.network.attention_kernel import Backends, find_forced, read_backends
from explainer.source.setting.flow import settings_behind
from explainer.source.setting.setting import Setting
from explainer.source.tree import walk

_REFUSED = re.compile(r"No available kernel|No viable backend for scaled_dot_product_attention")
_MATH, _EFFICIENT = "MATH", "EFFICIENT_ATTENTION"
_FLAGS = frozenset({"enable_math", "enable_mem_efficient"})
_SWITCHES = ("torch.backends.cuda.enable_math_sdp", "torch.backends.cuda.enable_mem_efficient_sdp")
_WHY = "allows no kernel that takes this input"
_TITLE = "Allow the other kernels of attention"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for what forces the kernel round the failing call; for the only one of the program where none stands round it."""
    if not _REFUSED.search(message_of(context)):
        return
    forced = list(find_forced(context.program))
    frames = {(file.path, statement) for file, statement in failing_statements(context)}
    around = [one for one in forced if any((one.file.path, each) in frames for each in _inside(one))]
    for one in around or (forced if len(forced) == 1 else []):
        yield from _allowed(one, context)
    yield from _switched(context)


def _inside(one: Backends) -> Iterator[ast.AST]:
    """The statements of the block that a context manager opens; of a function that it decorates."""
    block = one.file.enclosing(one.call, ast.With, ast.FunctionDef, ast.AsyncFunctionDef)
    is_opened = isinstance(block, ast.With) and any(one.call in set(walk(item)) for item in block.items)
    return (each for each in walk(block) if isinstance(each, ast.stmt)) if is_opened and block else iter(())


def _allowed(one: Backends, context: Context) -> Iterator[Proposal]:
    """The setting that picks another entry of the table; else the list, where it is written."""
    if _MATH in one.names:
        return
    key = _better(one)
    if key is not None:
        yield from _picked(one, key, context)
        return
    yield Proposal(
        edits=(edit_of(one.where, one.written, _with_others(one)),),
        culprit=culprit_of(one.where, one.written, _WHY),
        belief=1.8,
        title=_TITLE,
        is_origin=True,
    )


def _with_others(one: Backends) -> str:
    """The list with the kernels that are not in it."""
    others = [f"{one.spelled}.{name}" for name in (_EFFICIENT, _MATH) if name not in one.names]
    if isinstance(one.written, (ast.List, ast.Tuple)):
        present = [one.where.segment(each) for each in one.written.elts]
    else:
        present = [one.where.segment(one.written)]
    return f"[{', '.join([*present, *others])}]"


def _better(one: Backends) -> str | None:
    """The key of the table whose backends hold the present ones and others; else one that allows the product of matrices."""
    entries: dict[str, frozenset[str]] = {}
    for key, value in zip(one.table.keys, one.table.values, strict=True) if one.table is not None else ():
        read = read_backends(value)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and read is not None:
            entries[key.value] = read
    wider = [key for key, names in entries.items() if names > one.names and names & {_MATH, _EFFICIENT}]
    wider.sort(key=lambda key: (_MATH not in entries[key], len(entries[key])))
    return next(iter(wider), None) or next((key for key, names in entries.items() if _MATH in names), None)


def _picked(one: Backends, key: str, context: Context) -> Iterator[Proposal]:
    """The edits by which the table's other entry is picked: in a setting, or where the key is written."""
    if one.key is None or one.asked is None:
        return
    if isinstance(one.key, ast.Constant):
        quote = one.asked.segment(one.key)[:1]
        yield Proposal(
            edits=(edit_of(one.asked, one.key, f"{quote}{key}{quote}"),),
            culprit=culprit_of(one.asked, one.key, _WHY),
            belief=2.2,
            title=f"{_TITLE}: those of `{key}`",
            is_origin=True,
        )
        return
    settings = [each for each in settings_behind(one.key, one.asked, context.program) if each.value == one.picked]
    for setting in settings[:2]:
        edit = set_value(setting, key)
        if isinstance(edit, Edit):
            yield Proposal(
                edits=(edit,),
                culprit=culprit_at(setting.file, _span(setting), _WHY),
                belief=2.2,
                title=f"{_TITLE}: `{setting.name}` of `{key}`",
                is_origin=True,
            )


def _span(setting: Setting) -> tuple[int, int]:
    return (setting.key or setting.span)[0], setting.span[1]


def _switched(context: Context) -> Iterator[Proposal]:
    """`sdp_kernel(enable_math=False, ...)` and `enable_math_sdp(False)`: what they switch off is on again."""
    found: list[tuple[SourceFile, ast.expr]] = []
    for file in context.program.parsed():
        names = context.program.names(file)
        for node in file.walk():
            if not isinstance(node, ast.Call):
                continue
            given = node.args[:1] if names.is_call(node, *_SWITCHES) else []
            if names.is_call(node, "torch.backends.cuda.sdp_kernel"):
                given = [one.value for one in node.keywords if one.arg in _FLAGS]
            found += [(file, one) for one in given if isinstance(one, ast.Constant) and one.value is False]
    if found:
        yield Proposal(
            edits=tuple(edit_of(file, one, "True") for file, one in found),
            culprit=culprit_of(*found[0], "switches off a kernel that takes every input"),
            belief=1.8,
            title=_TITLE,
        )
