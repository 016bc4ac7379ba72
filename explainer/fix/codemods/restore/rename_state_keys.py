"""Keys without dots get the module's names where they are loaded: `encoder0weight` of an average whose buffers may have no dots.

A run was seen to pass over all of them in silence; what fits nowhere, the average's counter, it goes on passing over.

    names = {name.replace(".", ""): name for name in model.state_dict()}
    model.load_state_dict({names.get(key, key): value for key, value in weights.items()}, strict=False)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of, insert_before
from explainer.fix.network.state_load import loads_of, sifted
from explainer.fix.text.rewrite import free_name, operand
from explainer.model.patch import Edit
from explainer.model.verification import PASSES_OVER
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.value.binding import reaching, scope_of

_SEEN = re.compile(
    rf"(\S+):(\d+) {re.escape(PASSES_OVER)}: \d+ of \d+ fit \S+ (?:with `([_/-])` for|without) the dots of (its names|the keys)(, .*)?$"
)
_STATEMENTS = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Return, ast.Assert)
_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """What stands for the dots: of the module's names in the keys, or (`is_own`) of the keys in the module's names."""

    separator: str
    is_own: bool
    clashes: bool


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loads that a run was seen to make of keys which lack the dots of names; only their line where that does not do."""
    seen: dict[tuple[str, int], set[_Spelling]] = {}
    for found in (one for line in context.incident.log if (one := _SEEN.search(line.text))):
        spelling = _Spelling(found[3] or "", is_own=found[4] == "the keys", clashes=bool(found[5]))
        seen.setdefault((found[1], int(found[2])), set()).add(spelling)
    for file in context.program.parsed() if seen else ():
        name = file.path.replace("\\", "/").rpartition("/")[2]
        for (base, line), spellings in seen.items():
            for call, state in loads_of(file) if base == name else ():
                if call.lineno <= line <= (call.end_lineno or call.lineno):
                    yield _told(file, call, state, spellings)


def _told(file: SourceFile, call: ast.Call, state: ast.expr, spellings: set[_Spelling]) -> Proposal:
    edits: tuple[Edit, ...] = ()
    if len(spellings) == 1:
        (spelling,) = spellings
        # Some keys are meant to stay behind by the names that the model has: they do once all have these names.
        over = sifted(file, state) if spelling.clashes else state
        if over is not None and not _is_renamed(over):
            edits = _shortened(file, over, spelling) if spelling.is_own else _named(file, call, over, spelling)
    return Proposal(
        edits=edits,
        culprit=culprit_of(file, call, "passes over the keys, which are not spelled as the model's names are"),
        belief=2.0,
        title="Give the keys the names that the model has, where they are loaded" if edits else None,
    )


def _shortened(file: SourceFile, state: ast.expr, spelling: _Spelling) -> tuple[Edit, ...]:
    """The edit of keys that lose their dots."""
    key = f'key.replace(".", "{spelling.separator}")'
    return (edit_of(file, state, f"{{{key}: value for key, value in {_text(file, state)}.items()}}"),)


def _named(file: SourceFile, call: ast.Call, state: ast.expr, spelling: _Spelling) -> tuple[Edit, ...]:
    """The edits of keys that are looked up by the names of the module, before the statement that loads them, or sifts them."""
    module = call.func.value if isinstance(call.func, ast.Attribute) else None
    statement = file.statement(state)
    dotted = dotted_name(module)
    if module is None or dotted is None or not _is_plain(file, state, statement):
        return ()
    parts = dotted.split(".")
    paths = [".".join(parts[: end + 1]) for end in range(len(parts))]
    if any(reaching(one, statement, file) != reaching(one, call, file) for one in paths):
        return ()  # the model is made between the two
    names = free_name("names", scope_of(call, file))
    spelled = f'{{name.replace(".", "{spelling.separator}"): name for name in {dotted}.state_dict()}}'
    return insert_before(file, statement, f"{names} = {spelled}"), _looked_up(file, state, names)


def _looked_up(file: SourceFile, state: ast.expr, names: str) -> Edit:
    """The edit of a state dict; of its keys alone where it is written out as a comprehension of plain ones."""
    if isinstance(state, ast.DictComp) and isinstance(state.key, ast.Name):
        return edit_of(file, state.key, f"{names}.get({state.key.id}, {state.key.id})")
    text = f"{{{names}.get(key, key): value for key, value in {_text(file, state)}.items()}}"
    return edit_of(file, state, text)


def _is_plain(file: SourceFile, state: ast.expr, statement: ast.stmt) -> bool:
    """Whether what stands before the statement is executed once before the state is made, and names the same module."""
    within = [one for one in file.around(state) if isinstance(one, _SCOPES) and statement in file.around(one)]
    # The first mapping of a comprehension belongs to what is around it.
    is_own = all(isinstance(one, _SCOPES[1:]) and _is_first(file, one, state) for one in within)
    is_if = isinstance(statement, ast.If) and not file.segment(statement).startswith("elif")
    return is_own and (is_if or isinstance(statement, _STATEMENTS))


def _is_first(file: SourceFile, comprehension: ast.AST, node: ast.expr) -> bool:
    first = getattr(comprehension, "generators")[0].iter  # noqa: B009
    return first is node or first in file.around(node)


def _is_renamed(state: ast.expr) -> bool:
    """Whether the keys are looked up, or lose something, already."""
    key = state.key if isinstance(state, ast.DictComp) else None
    return isinstance(key, ast.Call) and isinstance(key.func, ast.Attribute) and key.func.attr in {"get", "replace"}


def _text(file: SourceFile, node: ast.expr) -> str:
    return file.segment(node) if isinstance(node, (ast.Dict, ast.DictComp)) else operand(file, node)
