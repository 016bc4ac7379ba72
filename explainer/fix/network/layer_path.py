"""Paths of modules, as `target_modules` selects them: a pattern for another tree of modules, a last name that fits too much.

Paths come from the live model, with each number as `*`: `model.language_model.layers.*.self_attn.q_proj`. PEFT matches a pattern
with the whole path, and a name of a list with its last parts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_PART = re.compile(r"\w+|\(\w+(?:\|\w+)*\)|\\d\+|\[0-9\]\+|\\w\+")
_DOT = r"\."
_CHILD = re.compile(r"(?P<indent> +)\((?P<name>[^)]{1,80})\): (?P<kind>\w+)\(")
_ADAPTED = ("Linear", "Embedding", "Conv1d", "Conv2d", "Conv3d", "Conv1D")
MAX_WITHIN = 16
_NUMBERS = (r"\d+", "[0-9]+", r"\d", r"\w+", "[^.]+", ".*", ".+")


def repathed(pattern: str, layers: Sequence[str]) -> tuple[str, str] | None:
    """The head of a pattern that no layer has, and what the model has in its place: the tree of another release.

    The part behind it fits as it is. Of several places the one that shares most words with the old head; None where that is none.
    """
    parts = pattern.split(_DOT)
    paths = [path.replace("*", "0") for path in layers]
    if (
        len(parts) < 2
        or not all(_PART.fullmatch(one) for one in parts)
        or any(re.fullmatch(pattern, one) for one in paths)
    ):
        return None
    for cut in range(1, len(parts)):
        old, behind = parts[:cut], _DOT.join(parts[cut:])
        found = [re.fullmatch(rf"(?:(?P<head>.+)\.)?{behind}", path) for path in paths]
        heads = {one["head"] or "" for one in found if one is not None}
        if not heads:
            continue
        shared = sorted(heads, key=lambda head: len(set(head.split(".")) & set(old)))
        most = [len(set(head.split(".")) & set(old)) for head in shared[-2:]]
        is_clear = len(shared) == 1 or most[1] > most[0]
        if not is_clear or not all(re.fullmatch(r"\w+", one) for one in old) or re.search(r"\d", shared[-1]):
            return None
        new = "".join(f"{one}{_DOT}" for one in shared[-1].split(".") if one)
        return "".join(f"{one}{_DOT}" for one in old), new
    return None


def narrowed(names: Sequence[str], layers: Sequence[str], blocks: Sequence[str]) -> list[str] | None:
    """The names, with those that also fit a block told by the part before them: `attn.out` for `out`.

    None where no name fits both, or the part before a layer differs.
    """
    new = list(names)
    for at, name in enumerate(names):
        if not _fits(name, blocks):
            continue
        owners = {path.removesuffix(name).rstrip(".").rpartition(".")[2] for path in _fits(name, layers)}
        longer = f"{next(iter(owners))}.{name}" if len(owners) == 1 else ""
        if not re.match(r"\w", longer) or _fits(longer, blocks):
            return None
        new[at] = longer
    return new if new != list(names) else None


def layers_within(message: str) -> list[str]:
    """The layers of the block that PEFT prints as not supported, by their paths in it; none where their names are numbers."""
    found: list[str] = []
    above: list[tuple[int, str]] = []
    for line in message.splitlines():
        child = _CHILD.match(line)
        if child is None:
            continue
        depth = len(child["indent"])
        above = [one for one in above if one[0] < depth]
        if not child["name"].isidentifier():
            return []
        above.append((depth, child["name"]))
        if child["kind"] in _ADAPTED:
            found.append(".".join(name for _, name in above))
    return found


def entered(
    names: Sequence[str], within: Sequence[str], layers: Sequence[str], blocks: Sequence[str]
) -> list[str] | None:
    """The names, with those of blocks told by the layers in them: `q_proj.linear` for `q_proj`; None where one has others."""
    if len(within) > MAX_WITHIN:
        return None
    if len(names) == 1 and not layers:
        return [f"{names[0]}.{one}" for one in within] or None
    new: list[str] = []
    for name in names:
        if _fits(name, layers) or not _fits(name, blocks):
            new.append(name)
            continue
        longer = [f"{name}.{one}" for one in within]
        if not longer or not all(_fits(one, layers) for one in longer):
            return None
        new += longer
    return new if new != list(names) else None


def inside(pattern: str, within: Sequence[str], layers: Sequence[str]) -> str | None:
    """The pattern of a block, as one of the layers in it; None where that would leave out layers that the old one fits."""
    block = pattern.removesuffix("$").removesuffix(".*").removesuffix(_DOT)
    if not within or len(within) > MAX_WITHIN or "|" in block or not re.search(r"\w\)?$", block):
        return None
    new = f"{block}{_DOT}({'|'.join(one.replace('.', _DOT) for one in within)})"
    fits = [path for path in (one.replace("*", "0") for one in layers) if re.fullmatch(pattern, path)]
    return new if all(re.fullmatch(new, one) for one in fits) else None


def leaves(pattern: str, layers: Sequence[str], blocks: Sequence[str]) -> str | None:
    r"""The pattern of blocks and all in them, as one of the layers in them: `(attn|mlp)\.(q_proj|up_proj)` for `(attn|mlp).*`.

    None where it takes no block, or a layer that is not in one.
    """
    block = pattern.removesuffix("$").removesuffix(".*").removesuffix(_DOT)
    try:
        fits = [path for path in (one.replace("*", "0") for one in layers) if re.fullmatch(pattern, path)]
        within = [re.fullmatch(rf"(?:{block})\.(?P<rest>[\w.]+)", path) for path in fits]
        is_wide = any(re.fullmatch(pattern, one.replace("*", "0")) for one in blocks)
    except re.error:
        return None
    names = list(dict.fromkeys(one["rest"] for one in within if one is not None))
    if not is_wide or not names or None in within or len(names) > MAX_WITHIN:
        return None
    new = f"{block}{_DOT}({'|'.join(one.replace('.', _DOT) for one in names)})"
    taken = [one.replace("*", "0") for one in (*layers, *blocks) if re.fullmatch(new, one.replace("*", "0"))]
    return new if sorted(taken) == sorted(fits) else None


def picked(pattern: str, layers: Sequence[str], numbered: Sequence[str]) -> str | None:
    r"""The pattern with the numbers of the layers in a container whose other children it takes as well: `ff\.[02]` for `ff\.\d+`.

    None where it ends in no number, or takes layers elsewhere too.
    """
    try:
        re.compile(pattern)
    except re.error:
        return None
    end = next((one for one in _NUMBERS if pattern.removesuffix("$").endswith(one)), None)
    fits = [one.replace("*", "0") for one in numbered if re.fullmatch(pattern, one.replace("*", "0"))]
    kinds = {re.sub(r"\d+$", "*", one) for one in fits}
    others = [one for one in layers if re.fullmatch(pattern, one.replace("*", "0"))]
    if (
        end is None
        or not fits
        or any(one.replace("*", "0") not in {kind.replace("*", "0") for kind in kinds} for one in others)
    ):
        return None
    last = sorted({one.rpartition(".")[2] for one in fits}, key=int)
    new = f"[{''.join(last)}]" if all(len(one) == 1 for one in last) else f"({'|'.join(last)})"
    return pattern.removesuffix("$").removesuffix(end) + new


def _fits(name: str, paths: Sequence[str]) -> list[str]:
    return [path for path in paths if path == name or path.endswith(f".{name}")]
