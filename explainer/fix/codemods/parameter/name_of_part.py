"""A word that freezes a part of the model, and is found inside other names too, gets the name before it: `layer` becomes `encoder.layer`.

`any(word in name for word in words)` takes `output_layer.weight` and `layer_scale` where the layers of an encoder are meant.
Proposed only where the words, read as names of whole parts, freeze one child of the model to its last parameter and nothing
beside it. Where a piece of that child would train, or another child be frozen too, what was meant is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.fix.network.all_frozen import AllFrozen, find_all_frozen
from explainer.model.patch import Edit
from explainer.source.network.name_test import HAS, Word


def propose(context: Context) -> Iterator[Proposal]:
    """An edit of the one word that takes more than the part it names."""
    if not context.has_failed:
        return
    for found in find_all_frozen(context):
        loose = [one for one in found.words if set(found.taken(one.text)) != set(_parts_of(one.text, found))]
        if found.test.how != HAS or len(loose) != 1:
            continue
        (word,) = loose
        wanted = _frozen_child(found)
        name = _full_name(word, found, wanted) if wanted else None
        if name is None:
            continue
        freed = [one for one in found.names if one not in wanted]
        why = f"is found in `{freed[0].rpartition('.')[0] or freed[0]}` too, and with the others every parameter is frozen"
        yield Proposal(
            edits=(Edit(file=word.file.path, start=word.start, end=word.start + len(word.text), new=name),),
            culprit=culprit_at(word.file, (word.start, word.start + len(word.text)), why),
            belief=2.5,
            applicability="unsafe",
            because=f"then {len(freed)} of the {len(found.names)} parameters train, none of them in `{wanted[0].partition('.')[0]}`",
            title=f"Name the part that is to be frozen: `{name}` for `{word.text}`",
        )


def _parts_of(word: str, found: AllFrozen) -> list[str]:
    """The names that have a word as the name of a part, or of parts one in the other."""
    return [name for name in found.names if f".{word.strip('.')}." in f".{name}."]


def _frozen_child(found: AllFrozen) -> list[str]:
    """What the words freeze as names of parts, where this is one child of the model and all of it; else nothing."""
    frozen = {name for one in found.words for name in _parts_of(one.text, found)}
    children = {name.partition(".")[0] for name in frozen}
    whole = [name for name in found.names if name.partition(".")[0] in children]
    return whole if len(children) == 1 and set(whole) == frozen and len(whole) < len(found.names) else []


def _full_name(word: Word, found: AllFrozen, wanted: list[str]) -> str | None:
    """The word with the one name before it, by which the test takes what is wanted and no more."""
    marked = f".{word.text}."
    before = {f".{name}.".partition(marked)[0].rpartition(".")[2] for name in _parts_of(word.text, found)}
    if len(before) != 1 or "" in before:
        return None
    full = f"{before.pop()}.{word.text}"
    texts = [full if one is word else one.text for one in found.words]
    return full if {name for one in texts for name in found.taken(one)} == set(wanted) else None
