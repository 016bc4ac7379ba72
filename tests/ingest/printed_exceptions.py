"""Makes exceptions at random, prints them as this interpreter does, and writes down what a reader should find.

Run with any Python (standard library only): `python printed_exceptions.py SEED COUNT` writes one JSON object a line:
the printed text, and for each exception its type, message (notes included), link, parent and frames.
"""

from __future__ import annotations

import json
import linecache
import random
import sys
import traceback

WORDS = (
    "loss",
    "x",
    "mat1 and mat2",
    "shape [2, 3]",
    "'quoted'",
    '"double"',
    "a: b",
    "τ",
    "C:\\temp",
    "{}",
    "<b>",
    "|",
)
HAS_GROUPS = sys.version_info >= (3, 11)
SPECIAL = (ValueError, RuntimeError, KeyError, OSError, AssertionError)


class ShapeError(RuntimeError):
    """An exception of this file's own, printed with its module where it is not `__main__`."""


def sentence(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(5)))


def message(rng: random.Random) -> str:
    lines = [sentence(rng)]
    for _ in range(rng.choice((0, 0, 0, 1, 3))):
        lines.append(rng.choice(("", "\t", "  ")) + sentence(rng))
    return "\n".join(lines).rstrip()


def raiser(rng: random.Random, number: int):
    """A function that calls itself down a random depth and raises what it is given; its source has a file name."""
    depth = rng.randrange(1, 5)
    filler = "x" * rng.randrange(3)
    lines = ["def bottom(error):", f"    {filler}_y = 1", "    raise error", ""]
    call = "bottom"
    for level in range(depth):
        body = rng.choice((f"return {call}(error)", f"return [{call}(error)][0] if error else None"))
        if rng.random() < 0.3:
            body = f"return {call}(\n        error,\n    )"
        lines += [f"def level_{level}(error):", f"    {body}", ""]
        call = f"level_{level}"
    source = "\n".join(lines)
    path = f"/tmp/project {number}/mod_{number}.py" if rng.random() < 0.8 else f"C:\\work\\mod_{number}.py"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    space: dict = {}
    exec(compile(source, path, "exec"), space)
    return space[call]


def make(rng: random.Random, depth: int = 0) -> BaseException:
    """An exception, perhaps raised, chained, noted or grouped."""
    if HAS_GROUPS and depth < 3 and rng.random() < 0.25:
        members = [make(rng, depth + 1) for _ in range(rng.randrange(1, 4))]
        error: BaseException = ExceptionGroup(sentence(rng) or "group", members)  # noqa: F821
    else:
        error = rng.choice((*SPECIAL, ShapeError))(message(rng))
    if hasattr(error, "add_note"):
        for _ in range(rng.choice((0, 0, 1, 2))):
            error.add_note(sentence(rng) or "note")
    if rng.random() < 0.85:
        error = raised(rng, error, make(rng, depth + 1) if depth < 2 and rng.random() < 0.4 else None)
    return error


def raised(rng: random.Random, error: BaseException, origin: BaseException | None) -> BaseException:
    throw = raiser(rng, rng.randrange(10**6))
    try:
        if origin is None:
            throw(error)
        elif rng.random() < 0.5:
            error.__cause__ = origin
            throw(error)
        else:
            try:
                raise origin
            except BaseException:
                throw(error)
    except BaseException as caught:
        return caught
    raise AssertionError("nothing was raised")


def expected(error: BaseException, link: str | None = None, parent: int | None = None, start: int = 0) -> list[dict]:
    """What a reader should find, in printed order."""
    found: list[dict] = []
    if error.__cause__ is not None:
        found += expected(error.__cause__, link, parent, start)
        link = "direct_cause"
    elif error.__context__ is not None and not error.__suppress_context__:
        found += expected(error.__context__, link, parent, start)
        link = "during_handling"
    elif parent is not None:
        link = link or "group_member"
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("__main__", "builtins"):
        name = f"{kind.__module__}.{name}"
    text = "\n".join([str(error), *getattr(error, "__notes__", [])])
    index = start + len(found)
    found.append(
        {
            "type": name,
            "message": text.rstrip(),
            "link": link,
            "parent": parent,
            "frames": [
                [frame.filename, frame.lineno, frame.name, (frame.line or "").partition("\n")[0]]
                for frame in traceback.extract_tb(error.__traceback__)
            ],
        }
    )
    for member in getattr(error, "exceptions", ()):
        found += expected(member, None, index, start + len(found))
    return found


def sample(seed: int) -> dict:
    """One printed exception and what it holds."""
    rng = random.Random(seed)
    error = make(rng)
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"seed": seed, "text": text, "exceptions": expected(error)}


if __name__ == "__main__":
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        print(json.dumps(sample(seed)))
