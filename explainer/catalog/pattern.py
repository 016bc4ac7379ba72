"""Keeps regular expressions of rules from blowing up: a bound on the work that a pattern can cost, worked out statically.

Python's matcher backtracks. A repeat inside a repeat costs exponential time on a text made for it, and each broad
repeat (`.*`) that can give characters to what follows multiplies the cost by the length of the text. Rules are data
that a user may bring, so both are refused; a pattern that passes costs at most about `MAX_STEPS` steps.
"""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

MAX_PATTERN = 1500
MAX_TEXT = 4000
MAX_STEPS = 1e8
_REPEATS = tuple(
    getattr(codes, name) for name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") if hasattr(codes, name)
)
_ALPHABET = frozenset(map(chr, range(32, 127))) | {"\n", "\t", "é"}


def check_pattern(pattern: str, *, is_whole: bool = False) -> list[str]:
    """What is wrong with a pattern; empty where it is safe to run on `MAX_TEXT` characters.

    `is_whole` says that it is matched against a whole text and not searched for at each place of it.
    """
    if len(pattern) > MAX_PATTERN:
        return [f"pattern is longer than {MAX_PATTERN} characters"]
    try:
        tree = parser.parse(pattern)
    except re.error as error:
        return [f"no regular expression: {error}"]
    faults: list[str] = []
    cost = _cost(tree, faults)
    if pattern[:1] != "^" and not is_whole:
        cost *= MAX_TEXT
    if not faults and cost > MAX_STEPS:
        faults.append(f"too costly: about {cost:.0e} steps at worst; bound its repeats or narrow their characters")
    return faults


def _cost(items: Any, faults: list[str]) -> float:
    """The number of ways in which the repeats of a sequence can share out a text, at worst."""
    ways = 1.0
    sequence = list(items)
    for index, (code, argument) in enumerate(sequence):
        if code in _REPEATS:
            low, high, body = argument
            inner = _cost(body, faults)
            if _is_unbounded(high) and _has_repeat(body):
                faults.append("a repeat inside an unbounded repeat")
            if high != low and _gives_away(body, sequence[index + 1 :]):
                ways *= min(float(high), MAX_TEXT) if not _is_unbounded(high) else MAX_TEXT
            ways *= max(inner, 1.0)
        elif code is codes.SUBPATTERN:
            ways *= max(_cost(argument[3], faults), 1.0)
        elif code is codes.BRANCH:
            ways *= max(sum(_cost(branch, faults) for branch in argument[1]), 1.0)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            ways *= max(_cost(argument[1], faults), 1.0)
        elif code is codes.GROUPREF:
            faults.append("a back-reference")
    return ways


def _is_unbounded(high: Any) -> bool:
    return high is codes.MAXREPEAT or (isinstance(high, int) and high > 1000)


def _has_repeat(items: Any) -> bool:
    """Whether a sequence holds a repeat of variable length, so that repeating it can split a text in many ways."""
    for code, argument in items:
        if code in _REPEATS and argument[0] != argument[1] and _is_unbounded(argument[1]):
            return True
        if code is codes.SUBPATTERN and _has_repeat(argument[3]):
            return True
        if code is codes.BRANCH and any(_has_repeat(branch) for branch in argument[1]):
            return True
    return False


def _gives_away(body: Any, following: list[Any]) -> bool:
    """Whether a repeat can stop earlier and let what follows take its characters, so that backtracking has choices."""
    taken = _characters(body)
    first = _first(following)
    return bool(taken & first)


def _characters(items: Any) -> frozenset[str]:
    """All characters that a sequence can consume, from a small alphabet that stands for the rest."""
    found: set[str] = set()
    for code, argument in items:
        found |= _of(code, argument)
    return frozenset(found)


def _of(code: Any, argument: Any) -> frozenset[str]:
    if code is codes.LITERAL:
        return frozenset({chr(argument)})
    if code is codes.NOT_LITERAL:
        return _ALPHABET - {chr(argument)}
    if code is codes.ANY:
        return _ALPHABET
    if code is codes.IN:
        return _in_set(argument)
    if code in _REPEATS:
        return _characters(argument[2])
    if code is codes.SUBPATTERN:
        return _characters(argument[3])
    if code is codes.BRANCH:
        return frozenset().union(*(_characters(branch) for branch in argument[1]))
    return frozenset()


def _in_set(members: Any) -> frozenset[str]:
    negated, found = False, set()
    for code, argument in members:
        if code is codes.NEGATE:
            negated = True
        elif code is codes.LITERAL:
            found.add(chr(argument))
        elif code is codes.RANGE:
            found |= {sign for sign in _ALPHABET if argument[0] <= ord(sign) <= argument[1]}
        elif code is codes.CATEGORY:
            found |= _category(argument)
    return _ALPHABET - found if negated else frozenset(found)


def _category(category: Any) -> set[str]:
    name = str(category).lower()
    tests = {"digit": str.isdigit, "space": str.isspace}
    test = next((test for word, test in tests.items() if word in name), lambda sign: sign.isalnum() or sign == "_")
    return {sign for sign in _ALPHABET if test(sign) != ("not" in name)}


def _first(following: list[Any]) -> frozenset[str]:
    """The characters with which what follows can begin; at the end of a pattern none."""
    found: set[str] = set()
    for code, argument in following:
        if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            continue
        if code is codes.SUBPATTERN:
            found |= _first(list(argument[3]))
            if not _can_be_empty(argument[3]):
                return frozenset(found)
            continue
        if code is codes.BRANCH:
            found |= frozenset().union(*(_first(list(branch)) for branch in argument[1]))
            if not any(_can_be_empty(branch) for branch in argument[1]):
                return frozenset(found)
            continue
        if code in _REPEATS:
            found |= _first(list(argument[2]))
            if argument[0] > 0 and not _can_be_empty(argument[2]):
                return frozenset(found)
            continue
        found |= _of(code, argument)
        return frozenset(found)
    return frozenset(found)


def _can_be_empty(items: Any) -> bool:
    for code, argument in items:
        if code in _REPEATS and argument[0] == 0:
            continue
        if code in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            continue
        if code is codes.SUBPATTERN and _can_be_empty(argument[3]):
            continue
        if code is codes.BRANCH and any(_can_be_empty(branch) for branch in argument[1]):
            continue
        return False
    return True
