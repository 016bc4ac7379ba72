"""A pattern that fits no parameter of the live model names the one that it means: `encoder.layers.2` for `encoder.layer.2`.

The names of parameters are what the live model has; the word is written in the program or in its configuration. Where no name is
near, or several are, the word is pointed at with the nearest ones, and stays: what was to train the author knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_at
from explainer.model.patch import Edit
from explainer.source.network.name_test import NameTest, Word, find_name_tests, fits, words_of
from explainer.source.network.near_name import A_HEAD, SPELLED, Near, close_names, near_name, with_parts


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each test none of whose words fits a name, where each has one that is near; else its words."""
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    if not context.has_failed or not live:
        return
    seen: set[tuple[str, int]] = set()
    for test in find_name_tests(context.program):
        words = {(one.file.path, one.start): one for one in words_of(test.words, context.program) or []}
        if (
            not words
            or set(words) <= seen
            or any(fits(name, one.text, test.how) for one in words.values() for name in with_parts(live))
        ):
            continue
        seen |= set(words)
        yield from _proposed(test, list(words.values()), live)


def _proposed(test: NameTest, words: Sequence[Word], live: Sequence[str]) -> Iterator[Proposal]:
    near = [near_name(one.text, test.how, live) for one in words]
    meant = [one for one in near if one is not None]
    taken = {name for name in live for one in meant if fits(name, one.text, test.how)}
    is_known = len(meant) == len(near) and len(taken) < len(live)
    for word, one in zip(words, near, strict=True):
        yield Proposal(
            edits=tuple(_edit(each, new) for each, new in zip(words, meant, strict=True)) if is_known else (),
            culprit=culprit_at(word.file, word.span, _why(word, one, test, live)),
            belief=2.2 if is_known else 1.8,
            applicability="safe" if is_known and all(each.far == SPELLED for each in meant) else "unsafe",
            because=_because(meant, len(taken), len(live)) if is_known else None,
            title=f"Name what the model has: `{meant[0].text}` for `{words[0].text}`" if is_known else None,
        )
        if is_known:
            return


def _edit(word: Word, near: Near) -> Edit:
    return Edit(file=word.file.path, start=word.span[0], end=word.span[1], new=word.spelled(near.text))


def _why(word: Word, near: Near | None, test: NameTest, live: Sequence[str]) -> str:
    names = [near.text] if near is not None else close_names(word.text, test.how, live)
    listed = ", ".join(f"`{one}`" for one in names)
    return f"fits no name of the model's {len(live)} parameters; the nearest: {listed}"


def _because(meant: Sequence[Near], count: int, whole: int) -> str:
    if any(one.far == A_HEAD for one in meant):
        return f"it is the one head of the model; then {count} of the {whole} parameters fit"
    return f"no name fits as it is; then {count} of the {whole} parameters do"
