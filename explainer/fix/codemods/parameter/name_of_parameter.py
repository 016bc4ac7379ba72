"""A pattern that fits no parameter of the live model names the one that it means: `encoder.layers.2` for `encoder.layer.2`.

The names of parameters are what the live model has; the word is written in the program or in its configuration. Where no name is
near, or several are, the word is pointed at with the nearest ones, and stays: what was to train the author knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from explainer.fix.codemod import Context, Proposal, culprit_at, culprit_of, edit_of
from explainer.model.patch import Edit
from explainer.source.network.name_test import STARTS, NameTest, Word, find_name_tests, fits, groups_of
from explainer.source.network.near_name import A_HEAD, SPELLED, Near, close_names, near_name, with_parts
from explainer.source.program import Program


def propose(context: Context) -> Iterator[Proposal]:
    """An edit for each test none of whose words fits a name, where each has one that is near; else its words."""
    live = next((one.value.split() for one in context.incident.facts if one.name == "live_parameter_names"), [])
    if not context.has_failed or not live:
        return
    seen: set[tuple[str, int]] = set()
    for tests in _of_one_statement(context.program):
        is_any = False
        for pairs in _at_a_time(tests, context.program):
            words = {(word.file.path, word.start): (test, word) for test, word in pairs}
            is_fit = any(fits(name, word.text, test.how) for test, word in pairs for name in with_parts(live))
            if not words or set(words) <= seen or is_fit:
                continue
            seen |= set(words)
            is_any = True
            yield from _proposed(list(words.values()), live)
        if is_any:
            yield from _anywhere(tests, live)


def _at_a_time(tests: Sequence[NameTest], program: Program) -> Iterator[list[tuple[NameTest, Word]]]:
    """The words that the tests compare with at a time: those of each stage of a plan, where a function gets them by stage."""
    groups = [groups_of(test.words, program) for test in tests]
    if len({len(each) for each in groups}) == 1:
        for each in zip(*groups, strict=True):
            yield [(test, word) for test, words in zip(tests, each, strict=True) for word in words]
    else:
        yield [(test, word) for test, each in zip(tests, groups, strict=True) for words in each[:1] for word in words]


def _of_one_statement(program: Program) -> list[list[NameTest]]:
    """The tests of names, those together that stand in one condition: `"query" in name or "value" in name`."""
    found: dict[tuple[str, ast.AST], list[NameTest]] = {}
    for test in find_name_tests(program):
        where = test.words.file
        node: ast.AST = where.statement(test.words.node)
        found.setdefault((where.path, node), []).append(test)
    return list(found.values())


def _proposed(words: Sequence[tuple[NameTest, Word]], live: Sequence[str]) -> Iterator[Proposal]:
    near = [near_name(word.text, test.how, live) for test, word in words]
    meant = [one for one in near if one is not None]
    taken = {
        name
        for name in live
        for (test, _), one in zip(words, near, strict=True)
        if one and fits(name, one.text, test.how)
    }
    is_known = len(meant) == len(near) and len(taken) < len(live)
    for (test, word), one in zip(words, near, strict=True):
        yield Proposal(
            edits=tuple(_edit(each, new) for (_, each), new in zip(words, meant, strict=True)) if is_known else (),
            culprit=culprit_at(word.file, word.span, _why(word, one, test, live)),
            belief=2.2 if is_known else 1.8,
            applicability="safe" if is_known and all(each.far == SPELLED for each in meant) else "unsafe",
            because=_because(meant, len(taken), len(live)) if is_known else None,
            title=f"Name what the model has: `{meant[0].text}` for `{words[0][1].text}`" if is_known else None,
        )
        if is_known:
            return


def _anywhere(tests: Sequence[NameTest], live: Sequence[str]) -> Iterator[Proposal]:
    """`"lora_" in name` for `name.startswith("lora_")`, where names have the word at the beginning of a later part."""
    if len(tests) != 1 or tests[0].how != STARTS:
        return
    (test,) = tests
    node, file = test.words.node, test.words.file
    call = file.parents.get(node)
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
    if text is None or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    taken = [name for name in live if f".{text}" in name]
    beginnings = {name.partition(f".{text}")[0] for name in taken}  # of one, which is missing, another edit says so
    if len(beginnings) > 1 and len(taken) < len(live) and len(taken) == sum(text in name for name in live):
        above = file.parents.get(call)
        asked = f"{file.segment(node)} in {file.segment(call.func.value)}"
        yield Proposal(
            edits=(edit_of(file, call, f"({asked})" if isinstance(above, (ast.Compare, ast.UnaryOp)) else asked),),
            culprit=culprit_of(
                file, call, f"fits no name of the model's {len(live)} parameters, of which `{text}` begins a later part"
            ),
            belief=2.3,
            applicability="safe",
            because=f"no name begins so; {len(taken)} of the {len(live)} parameters have it further on",
            title=f"Look for the word anywhere in the name: `{asked}`",
        )


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
