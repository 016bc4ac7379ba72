"""Names of parameters that miss the name of a wrapper get it: `head` becomes `net.head`.

A filter over `named_parameters()` takes nothing, and one beginning makes each of its words fit: `net.` of a module that holds
the network, `module.` of DistributedDataParallel, `_orig_mod.` of `torch.compile`. By the names that the live model has, or
by the attributes of the program's classes. Where several beginnings fit, or a word fits without, nothing is proposed. Else, where the
words name something else too, the filter goes over the module that was wrapped: `model.net.named_parameters()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.network.attribute_tree import names_of
from explainer.source.network.name_test import GLOB, IS, STARTS, NameTest, Word, find_name_tests, fits, words_of
from explainer.source.network.near_name import with_parts

_GUESSED = "the names are those of the classes; what the program does with the model before is not seen"


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each filter whose words all miss the same beginning."""
    if not context.has_failed:
        return
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    seen: set[tuple[Edit, ...]] = set()
    for test in find_name_tests(context.program):
        words = words_of(test.words, context.program) or []
        names = live or names_of(test.owner, test.file, context.program)
        missing = _missing([one.text for one in words], test, with_parts(names))
        if missing is None:
            continue
        edits = tuple(Edit(file=one.file.path, start=one.start, end=one.start, new=missing) for one in _once(words))
        if edits in seen:
            continue
        seen.add(edits)
        first = words[0]
        why = f"asks for parameters named `{first.text}`, which the model calls `{missing}{first.text}`"
        yield Proposal(
            edits=edits,
            culprit=culprit_at(first.file, (first.start, first.start + len(first.text)), why),
            belief=2.5,
            applicability="safe" if live else "unsafe",
            because=f"no name fits as it is, and with `{missing}` before it each does" if live else _GUESSED,
            title=f"Name the parameters as the model does: `{missing}{first.text}` for `{first.text}`",
        )
        if all(one.isidentifier() for one in missing.split(".")[:-1]):
            inner = f"{test.file.segment(test.owner)}.{missing.rstrip('.')}"
            yield Proposal(
                edits=(edit_of(test.file, test.owner, inner),),
                culprit=culprit_of(test.file, test.owner, f"names its parameters with `{missing}` before them"),
                belief=2.0,
                applicability="safe" if live else "unsafe",
                because="the words stay as whatever else reads them has them" if live else _GUESSED,
                title=f"Ask `{inner}` for its parameters, which are called so there",
            )


def _once(words: Sequence[Word]) -> list[Word]:
    return list({(one.file.path, one.start): one for one in words}.values())


def _missing(words: Sequence[str], test: NameTest, names: Sequence[str]) -> str | None:
    """The one beginning with which each word fits a name; None where a word fits without it, or there are several."""
    if test.how not in (STARTS, IS, GLOB) or not words or not names or any(_fits(word, test, names) for word in words):
        return None
    beginnings = [f"{name}." for name in names]
    found = [one for one in beginnings if all(_fits(one + word, test, names) for word in words)]
    if len(found) > 1 and test.how == STARTS:  # `head` is the part of that name rather than `head_mix`
        known = set(names)
        found = [one for one in found if all((one + word).rstrip(".") in known for word in words)]
    return found[0] if len(found) == 1 else None


def _fits(word: str, test: NameTest, names: Sequence[str]) -> bool:
    return any(fits(name, word, test.how) for name in names)
