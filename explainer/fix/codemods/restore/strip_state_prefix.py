"""The keys of a state dict lose a prefix, or get one, where it is loaded: `module.` of DataParallel, `model.` of Lightning.

So do those of a part, the part's name, and of an `AveragedModel`, whose counter is left out. Where `strict=False` has passed
over all of them in silence, as a run was seen to do, it goes on passing over what fits nowhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explainer.fix.clue.blame import crash_frames
from explainer.fix.codemod import Context, Proposal, culprit_of, edit_of
from explainer.fix.network.state_load import loads_of, sifted
from explainer.model.patch import Edit
from explainer.model.verification import PASSES_OVER
from explainer.source.file import SourceFile

_WRAPPERS = ("module.", "_orig_mod.")
_UNEXPECTED = re.compile(r"Unexpected key\(s\) in state_dict: ([^\n]*)")
_SEEN = re.compile(
    rf"(\S+):(\d+) {re.escape(PASSES_OVER)}: \d+ of \d+ fit \S+ (with|without) the prefix `([\w.]+)`(.*)$"
)
_MISSING = re.compile(r"Missing key\(s\) in state_dict: ([^\n]*)")


@dataclass(frozen=True, slots=True)
class _Rename:
    """The prefix that the keys lose, or get; `is_part` where keys without it are left out, `clashes` where some then fit no size."""

    prefix: str
    is_added: bool = False
    is_part: bool = False
    clashes: bool = False

    def written(self, state: str) -> str:
        """The state dict with its keys renamed."""
        if self.is_added:
            return f'{{f"{self.prefix}{{name}}": value for name, value in {state}.items()}}'
        test = f' if name.startswith("{self.prefix}")' if self.is_part else ""
        return f'{{name.removeprefix("{self.prefix}"): value for name, value in {state}.items(){test}}}'


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for the loading that the traceback names, or that was seen to load nothing, where the keys differ by a prefix."""
    yield from _failed(context)
    yield from _silent(context)


def _failed(context: Context) -> Iterator[Proposal]:
    rename = next((one for each in context.incident.exceptions if (one := _rename(each.message)) is not None), None)
    if rename is None:
        return
    for file in context.program.parsed():
        frames = crash_frames(file, context)
        for node in file.walk() if frames else ():
            if not isinstance(node, ast.Call) or node.lineno not in frames or not node.args:
                continue
            is_load = isinstance(node.func, ast.Attribute) and node.func.attr == "load_state_dict"
            state = node.args[0]
            if not is_load or isinstance(state, ast.DictComp):
                continue
            why = "begin with" if not rename.is_added else "lack"
            yield Proposal(
                edits=(edit_of(file, state, rename.written(_text(file.segment(state), state))),),
                culprit=culprit_of(file, node, f"loads keys that {why} the prefix `{rename.prefix}`"),
                belief=1.5,
            )


def _silent(context: Context) -> Iterator[Proposal]:
    """The loads that a run was seen to make with `strict=False`; only their line where one renaming does not do."""
    seen: dict[tuple[str, int], set[_Rename | None]] = {}
    for found in (one for line in context.incident.log if (one := _SEEN.search(line.text))):
        is_clear = not found[5] or "would clash" in found[5]
        rename = _Rename(found[4], is_added=found[3] == "with", clashes=bool(found[5])) if is_clear else None
        seen.setdefault((found[1], int(found[2])), set()).add(rename)
    for file in context.program.parsed() if seen else ():
        name = file.path.replace("\\", "/").rpartition("/")[2]
        for (base, line), renames in seen.items():
            for call, state in loads_of(file) if base == name else ():
                if call.lineno <= line <= (call.end_lineno or call.lineno):
                    yield _told(file, call, state, renames)


def _told(file: SourceFile, call: ast.Call, state: ast.expr, renames: set[_Rename | None]) -> Proposal:
    rename = next(iter(renames)) if len(renames) == 1 else None
    over = sifted(file, state) if rename is not None else None
    if rename is None or (rename.clashes and (over is None or rename.is_added)):
        return Proposal(edits=(), culprit=culprit_of(file, call, "passes over keys that the model has"), belief=2.0)
    how = "lack" if rename.is_added else "begin with"
    title = "Put the prefix `{}` before the keys" if rename.is_added else "Take the prefix `{}` off the keys"
    return Proposal(
        edits=_renamed(file, state, rename) if over is None or rename.is_added else _before(file, over, rename),
        culprit=culprit_of(file, call, f"passes over the keys, which {how} the prefix `{rename.prefix}`"),
        belief=2.0,
        title=title.format(rename.prefix) + " where they are loaded",
    )


def _renamed(file: SourceFile, state: ast.expr, rename: _Rename) -> tuple[Edit, ...]:
    """The edit of a state dict; of the keys alone where it is written out as a comprehension, which may leave some out."""
    if not isinstance(state, ast.DictComp):
        return (edit_of(file, state, rename.written(_text(file.segment(state), state))),)
    key = file.segment(state.key)
    if rename.is_added:
        return (edit_of(file, state.key, f'f"{rename.prefix}{{{key}}}"'),) if isinstance(state.key, ast.Name) else ()
    removed = f'.removeprefix("{rename.prefix}")'
    return () if key.endswith(removed) else (edit_of(file, state.key, f"{_text(key, state.key)}{removed}"),)


def _before(file: SourceFile, mapping: ast.expr, rename: _Rename) -> tuple[Edit, ...]:
    """The edit that takes the prefix off before keys are left out by their names."""
    text = file.segment(mapping)
    return () if ".removeprefix(" in text else (edit_of(file, mapping, rename.written(_text(text, mapping))),)


def _text(text: str, node: ast.expr) -> str:
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _rename(message: str) -> _Rename | None:
    """What makes the keys of a file those of the model, by the keys that a message names."""
    unexpected, missing = (_keys(one, message) for one in (_UNEXPECTED, _MISSING))
    for prefix in _WRAPPERS:
        bare = {key.removeprefix(prefix) for key in unexpected if key.startswith(prefix)}
        if unexpected and len(bare) == len(unexpected) and (not missing or bare & set(missing)):
            return _Rename(prefix)
    if not unexpected or not missing:
        return None
    removed = _prefix(unexpected, missing[0])
    if removed is not None and set(missing) <= {
        one.removeprefix(removed) for one in unexpected if one.startswith(removed)
    }:
        return _Rename(removed, is_part=not all(one.startswith(removed) for one in unexpected))
    added = _prefix(missing, unexpected[0])
    if added is not None and {f"{added}{one}" for one in unexpected} == set(missing):
        return _Rename(added, is_added=True)
    return None


def _keys(pattern: re.Pattern[str], message: str) -> list[str]:
    found = pattern.search(message)
    return re.findall(r'"([^"]+)"', found.group(1)) if found else []


def _prefix(longer: Sequence[str], key: str) -> str | None:
    """What stands before a key in one of the longer ones, where that is one thing."""
    found = {one[: -len(key)] for one in longer if one.endswith(f".{key}")}
    return next(iter(found)) if len(found) == 1 else None
