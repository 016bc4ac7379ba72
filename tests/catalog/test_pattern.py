"""Patterns of rules cannot blow up: the checker refuses what could, and what it accepts is quick on its worst case."""

from __future__ import annotations

import re
import signal
from contextlib import contextmanager

import pytest

from explainer.catalog.pattern import MAX_TEXT, check_pattern, parser

REFUSED = {
    "a repeat in a repeat": r"(a+)+$",
    "a star in a star": r"(?:x*)*y",
    "alternation in a repeat": r"(?:a|a\w+)*!",
    "three wildcards": r".*a.*b.*c",
    "four bounded wildcards": r".{0,400}a.{0,400}b.{0,400}c.{0,400}d",
    "a back-reference": r"(\w+) \1",
    "no expression": r"(unclosed",
    "too long": "a" * 2000,
}
ACCEPTED = {
    "a literal": "modified by an inplace operation",
    "narrow classes": r"version (?P<version>\d+); expected version (?P<expected>\d+)",
    "an optional part": r"operation(?:: \[(?P<type>[\w.]+) (?P<shape>\[[\d, ]*\])\])?",
    "one wildcard": r"Expected .* to match",
    "two anchored wildcards": r"^Expected .* to match .*",
    "bounded": r"got .{0,80} instead",
    "alternatives": r"(?:log|exp|sqrt)Backward\d*",
}


@pytest.mark.parametrize("pattern", REFUSED.values(), ids=REFUSED.keys())
def test_refused(pattern: str) -> None:
    """A pattern that can cost too much, or is none, is refused with a reason."""
    assert check_pattern(pattern)


@pytest.mark.parametrize("pattern", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(pattern: str) -> None:
    """What messages need is accepted."""
    assert check_pattern(pattern) == []


@contextmanager
def hang_guard(seconds: int):
    """Ends a test that hangs; it asserts nothing about time."""

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)  # of this process alone: a busy machine makes no pattern slow
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def worst_cases(pattern: str, size: int = MAX_TEXT) -> list[str]:
    """Texts that make a pattern try everything: what it repeats, repeated, without the end that it waits for."""
    units = ["a", " ", "1", "ab1 ", "[1, 2", "x.y", "'", "("]
    literals = [part for part in re.split(r"[\\(){}\[\]*+?.|^$]+", pattern) if len(part) > 2]
    units += literals + ["".join(literals[:2])]
    return [(unit * size)[: size - 1] + "\x00" for unit in units] + [
        (literals[0] if literals else "a") + (unit * size)[:size] for unit in units
    ]


def rule_patterns() -> list[str]:
    from explainer.catalog.bundle import load_catalog

    catalog = load_catalog()
    found = {form["pattern"] for _, form in catalog.forms() if "pattern" in form}
    for name in catalog.cause_ids:
        for rule in catalog.cause(name).evidence:
            found.update(str(rule.conditions[key]) for key in ("pattern", "code", "function") if key in rule.conditions)
    return sorted(found)


@pytest.mark.parametrize("size", [MAX_TEXT // 4, pytest.param(MAX_TEXT, marks=pytest.mark.slow)])
def test_every_pattern_of_the_rule_base_on_its_worst_case(size: int) -> None:
    """Each pattern of ours is fed what suits it worst; none hangs."""
    for pattern in rule_patterns():
        compiled = re.compile(pattern)
        with hang_guard(5):
            for text in worst_cases(pattern, size):
                compiled.search(text)


def test_the_parser_is_there() -> None:
    """The standard library's own parser of expressions has moved between releases."""
    assert len(parser.parse("a|b")) == 1
