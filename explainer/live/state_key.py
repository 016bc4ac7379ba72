"""What makes the keys that a load has passed over those that the module misses: a prefix, or the dots of the names.

What a program leaves out on purpose, a head or another part, is told by names and sizes: one renaming turns nearly all of the
keys that were passed over into keys that the module misses, of the same sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

NEARLY_ALL = 0.8  # of the keys that were passed over
HALF = 0.5  # of the keys that the module misses, where nothing at all was loaded
LITTLE = 4  # keys that would fit, at least, for each one that was loaded
MAX_OTHERS = 3
SEPARATORS = ("", "_", "/", "-")

Fits = dict[tuple[str, bool], list[str]]
"""The keys of a file that fit without a prefix, or (True) with it in front."""
Spelling = tuple[str, bool]
"""What stands for the dots: of the module's names in the keys, or (True) of the keys in the module's names."""
Found = tuple[list[tuple[str, str]], dict[str, Any]]
"""The keys that fit, each with the module's own, and what is told of it."""


def passed_over(
    given: Mapping[str, Any], own: Mapping[str, Any], unexpected: list[str], missing: list[str]
) -> Found | None:
    """The keys that fit but for a prefix, or for the dots of the names; None where that is not sure.

    `given` and `own` are the sizes by key: of the state, of the module.
    """
    return by_prefix(given, own, unexpected, missing) or _by_dots(given, own, unexpected, missing)


def by_prefix(
    given: Mapping[str, Any], own: Mapping[str, Any], unexpected: list[str], missing: list[str]
) -> Found | None:
    """The keys that fit but for a prefix; None where that is not sure."""
    passed = set(unexpected)
    fits = _fits({key: given.get(key) for key in unexpected}, {key: own.get(key) for key in missing})
    if not fits:
        return None
    (prefix, is_added), keys = max(fits.items(), key=lambda one: len(one[1]))
    if not _is_enough(len(keys), len(passed), len(missing), len(given.keys() - passed)):
        return None
    others = [one for one, found in fits.items() if 2 * len(found) >= len(keys) and one != (prefix, is_added)]
    renamed = {key: f"{prefix}{key}" if is_added else key.removeprefix(prefix) for key in given}
    # Once all are renamed: a key that was loaded is so no more, another meets a tensor of another size.
    fitting = set(keys)
    changed = {key: name for key, name in renamed.items() if name != key and key not in fitting}
    clashes = [key for key, name in changed.items() if key not in passed or name in own or name in given]
    told = {
        "keys": len(given), "fit": len(keys), "prefix": prefix, "is_added": is_added,
        "others": [one for one, _ in others[:MAX_OTHERS]], "clashes": len(clashes),
    }  # fmt: skip
    return [(key, renamed[key]) for key in keys], told


def _fits(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Fits:
    found: Fits = defaultdict(list)
    for key, size in given.items():
        for prefix, rest in _split(key):
            if size is not None and wanted.get(rest) == size:
                found[prefix, False].append(key)
    for key, size in wanted.items():
        for prefix, rest in _split(key):
            if size is not None and given.get(rest) == size:
                found[prefix, True].append(rest)
    return found


def _split(key: str) -> Iterator[tuple[str, str]]:
    """`a.b.c` as `a.` and `b.c`, as `a.b.` and `c`."""
    at = key.find(".")
    while at >= 0:
        yield key[: at + 1], key[at + 1 :]
        at = key.find(".", at + 1)


def _is_enough(fit: int, passed: int, missing: int, loaded: int) -> bool:
    is_nearly_all = fit >= NEARLY_ALL * passed and loaded * LITTLE <= fit
    return is_nearly_all or (not loaded and fit > 1 and fit >= HALF * missing)


def _by_dots(
    given: Mapping[str, Any], own: Mapping[str, Any], unexpected: list[str], missing: list[str]
) -> Found | None:
    """The keys that are the module's names without their dots, or the other way round; None where that is not sure."""
    passed, wanted = set(unexpected), set(missing)
    loaded = given.keys() - passed
    if any("." in key for key in loaded):
        return None  # the names are spelled alike: what is passed over is another part
    sizes = {key: size for key, size in given.items() if key in passed and size is not None}
    found: dict[Spelling, tuple[list[tuple[str, str]], int]] = {}
    for spelling in ((separator, is_own) for separator in SEPARATORS for is_own in (False, True)):
        sure, unsure = _pairs(given, wanted | loaded, spelling)
        fits = [(key, name) for key, name in sure if name in wanted and key in sizes and sizes[key] == own.get(name)]
        same = sum(key == name for key, name in sure)  # loaded, and so again
        found[spelling] = fits, len(sure) + unsure - len(fits) - same
    (separator, is_own), (fits, clashes) = max(found.items(), key=lambda one: len(one[1][0]))
    is_clear = sum(2 * len(others) >= len(fits) for others, _ in found.values()) == 1
    is_little = len(loaded) * LITTLE <= len(fits)  # names without dots, which are spelled alike either way
    if len(fits) < 2 or not is_clear or not is_little or not _is_enough(len(fits), len(passed), len(missing), 0):
        return None
    told = {
        "keys": len(given), "fit": len(fits), "prefix": "", "separator": separator, "is_added": is_own, "others": [],
        "clashes": clashes,
    }  # fmt: skip
    return fits, told


def _pairs(given: Collection[str], names: Collection[str], spelling: Spelling) -> tuple[list[tuple[str, str]], int]:
    """Each key with the one name that it is but for the spelling, and how many pairs there are that share a key or a name."""
    separator, is_own = spelling
    if is_own:
        made = [(key, key.replace(".", separator)) for key in given]
        pairs = [(key, name) for key, name in made if name in names]
    else:
        made = [(name.replace(".", separator), name) for name in names]
        pairs = [(key, name) for key, name in made if key in given]
    by_key, by_name = Counter(key for key, _ in pairs), Counter(name for _, name in pairs)
    sure = [(key, name) for key, name in pairs if by_key[key] == by_name[name] == 1]
    return sure, len(pairs) - len(sure)
