"""Checks a rule base: the format of each file, that samples match their wordings, that prose has its headings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from explainer.catalog.myth import check_myths
from explainer.catalog.place import rule_files
from explainer.catalog.source import read_toml
from explainer.errors import RuleError

HEADINGS = (
    "What happens",
    "Why",
    "How to fix",
    "Fix safety",
    "When it is something else",
    "References",
)
KEYS = (
    "title", "summary", "kind", "status", "since", "signature", "look_alikes", "proves_not", "needs", "prior", "applies",
    "form", "evidence", "fix", "myth",
)  # fmt: skip
CHANGE_KEYS = ("kind", "of", "old", "new", "added", "deprecated", "removed", "write", "becomes", "note", "checked")
CONDITIONS = {
    "message": {"pattern", "contains", "fields", "anywhere"},
    "frames": {"fields", "file", "function", "code", "library", "at", "stack"},
    "warnings": {"pattern", "contains", "file", "category", "code"},
    "log": {"pattern", "contains", "fact", "value", "metric", "anywhere"},
    "environment": {"package", "version", "gpu", "has"},
    "interface": {"story", "sure"},
    "source": {"reader"},
    "live": {"fact", "value"},
    "trace": {"fact", "value"},
}
_COMMON = {"id", "reads", "says", "weight", "proves", "absent", "signature"}


class Fault(NamedTuple):
    """What is wrong in a rule base: the file relative to its folder, the line where it is known, and the fault."""

    file: str
    line: int | None
    message: str


def check_rules(folder: str) -> list[Fault]:
    """Everything that is wrong with the rules under `folder`, in the order of the files."""
    faults: list[Fault] = []
    paths = [path for path, _, _ in rule_files(folder)]
    for path in paths:
        faults.extend(_check_file(folder, path, paths))
    faults.extend(Fault(*fault) for fault in check_myths(folder, _experiments(folder, paths)))
    return faults


def _experiments(folder: str, paths: Sequence[str]) -> dict[str, list[str]]:
    """The experiments that myths of causes name, with those causes; what is no TOML has a fault of its own."""
    found: dict[str, list[str]] = {}
    for path in paths:
        if not path.endswith("/cause.toml"):
            continue
        try:
            raw = read_toml(os.path.join(folder, path), path)
        except RuleError:
            continue
        myths = raw.get("myth", ())
        for myth in myths if isinstance(myths, list) else ():
            if isinstance(myth, dict) and "experiment" in myth:
                found.setdefault(str(myth["experiment"]), []).append(path.removesuffix("/cause.toml"))
    return found


def _check_file(folder: str, path: str, paths: Sequence[str]) -> Iterator[Fault]:
    from pydantic import BaseModel, ValidationError

    from explainer.catalog.schema import CauseFile, InterfaceFile, SignatureFile

    models: dict[str, type[BaseModel]] = {"signatures": SignatureFile, "interfaces": InterfaceFile}
    kind = path.partition("/")[0]
    try:
        raw = read_toml(os.path.join(folder, path), path)
        models.get(kind, CauseFile).model_validate(raw)
    except RuleError as error:
        yield Fault(path, None, str(error).removeprefix(f"{path}: "))
        return
    except ValidationError as error:
        lines = _lines(os.path.join(folder, path))
        for one in error.errors():
            key = ".".join(str(part) for part in one["loc"])
            yield Fault(path, _line_of(lines, one["loc"]), f"{key or 'file'}: {one['msg']}")
        return
    if kind == "interfaces":
        yield from _check_changes(path, raw)
        return
    yield from _check_samples(path, raw)
    if kind not in models:
        yield from _check_keys(path, raw)
        yield from _check_conditions(path, raw)
        yield from _check_look_alikes(path, raw, paths)
        yield from _check_shapes(folder, path.removesuffix("/cause.toml"), raw.get("kind", "failure"))
        yield from _check_prose(folder, path.replace("cause.toml", "README.md"), raw["title"])


def _lines(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")


def _line_of(lines: list[str], place: tuple[int | str, ...]) -> int | None:
    """The line on which a key stands: the n-th table of its name, then the key in it."""
    start = 0
    for index, part in enumerate(place):
        following = place[index + 1] if index + 1 < len(place) else None
        if isinstance(part, str) and isinstance(following, int):
            headers = [at for at, text in enumerate(lines) if re.match(rf"\s*\[\[(?:\w+\.)*{part}\]\]", text)]
            headers = [at for at in headers if at >= start]
            if following < len(headers):
                start = headers[following]
        elif isinstance(part, str):
            found = next(
                (at for at in range(start, len(lines)) if re.match(rf"\s*{re.escape(part)}\s*=", lines[at])), None
            )
            start = start if found is None else found
    return start + 1


def _check_changes(path: str, raw: dict[str, Any]) -> Iterator[Fault]:
    """Keys in order, releases in order, each change once."""
    seen: set[tuple[Any, ...]] = set()
    for number, change in enumerate(raw["change"], start=1):
        name = f"change {number} ({change['of']} {change.get('old') or change.get('new')})"
        if list(change) != [key for key in CHANGE_KEYS if key in change]:
            yield Fault(path, None, f"{name}: keys out of order: want {', '.join(CHANGE_KEYS)}")
        if (
            "deprecated" in change
            and "removed" in change
            and _numbers(change["deprecated"]) > _numbers(change["removed"])
        ):
            yield Fault(path, None, f"{name}: deprecated after it was removed")
        key = tuple(change.get(part) for part in ("kind", "of", "old", "new"))
        if key in seen:
            yield Fault(path, None, f"{name}: stands twice")
        seen.add(key)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _check_samples(path: str, raw: dict[str, Any]) -> Iterator[Fault]:
    for number, form in enumerate(raw.get("form", ()), start=1):
        samples = form.get("sample", ())
        if not samples and form.get("stands") != "metrics":
            yield Fault(path, None, f"form {number} has no [[form.sample]]")
        for sample in samples:
            text = " ".join(sample["text"].split())
            missing = [literal for literal in form.get("contains", ()) if literal not in text]
            if missing:
                yield Fault(path, None, f"form {number}: its sample lacks {missing[0]!r}")
            elif form.get("pattern") and not re.search(form["pattern"], text):
                yield Fault(path, None, f"form {number}: its pattern does not match its sample {text[:60]!r}")


def _check_keys(path: str, raw: dict[str, Any]) -> Iterator[Fault]:
    present = [key for key in raw if key in KEYS]
    if present != [key for key in KEYS if key in raw]:
        yield Fault(path, None, f"keys out of order: want {', '.join(key for key in KEYS if key in raw)}")


def _check_conditions(path: str, raw: dict[str, Any]) -> Iterator[Fault]:
    for rule in raw.get("evidence", ()):
        odd = set(rule) - _COMMON - CONDITIONS[rule["reads"]]
        if odd:
            yield Fault(
                path, None, f"evidence {rule['id']!r} reads {rule['reads']!r}, which knows no {', '.join(sorted(odd))}"
            )
        if not set(rule) & CONDITIONS[rule["reads"]]:
            yield Fault(path, None, f"evidence {rule['id']!r} has no condition")


def _check_look_alikes(path: str, raw: dict[str, Any], paths: Sequence[str]) -> Iterator[Fault]:
    for other in raw.get("look_alikes", ()):
        if f"{other['cause']}/cause.toml" not in paths:
            yield Fault(path, None, f"look-alike {other['cause']!r} is no cause of this rule base")


def _check_prose(folder: str, path: str, title: str) -> Iterator[Fault]:
    full = os.path.join(folder, path)
    if not os.path.isfile(full):
        yield Fault(path, None, "is missing")
        return
    lines = _lines(full)
    if lines[0] != f"# {title}":
        yield Fault(path, 1, f"the heading is not the cause's title, {title!r}")
    found = [line[3:] for line in lines if line.startswith("## ")]
    if tuple(found) != HEADINGS:
        yield Fault(path, None, f"the headings are not {', '.join(HEADINGS)}")

    sections = "\n".join(lines).split("\n## ")[1:]
    for section in sections:
        heading, _, text = section.partition("\n")
        if text.strip() in ("", "..."):
            yield Fault(path, lines.index(f"## {heading}") + 1, f"{heading!r} says nothing yet")


def _check_shapes(folder: str, cause: str, kind: str) -> Iterator[Fault]:
    """Each folder of a cause is a shape: a program that parses, its fix, and recordings with their header."""
    import ast

    for shape in sorted(entry.name for entry in os.scandir(os.path.join(folder, cause)) if entry.is_dir()):
        place = f"{cause}/{shape}"
        for name in ("broken.py", "fixed.py"):
            path = os.path.join(folder, place, name)
            if os.path.isfile(path):
                try:
                    ast.parse("\n".join(_lines(path)))
                except SyntaxError as error:
                    yield Fault(f"{place}/{name}", error.lineno, f"does not parse: {error.msg}")
            elif name == "broken.py" or kind == "failure":
                yield Fault(f"{place}/{name}", None, "is missing")
        for path in printed_files(folder, place):
            if not _lines(os.path.join(folder, path))[0].startswith("# origin="):
                yield Fault(path, 1, "the first line is no header `# origin=recorded python=3.11 torch=2.13.0`")


def printed_files(folder: str, shape: str) -> list[str]:
    """The recordings of a shape, relative to `folder`."""
    place = os.path.join(folder, shape, "printed")
    names = sorted(os.listdir(place)) if os.path.isdir(place) else []
    return [f"{shape}/printed/{name}" for name in names if name.endswith(".txt")]


def main(folder: str = "knowledge") -> int:
    """Print the faults of the rule base in `folder`, one a line; the exit status."""
    faults = check_rules(folder)
    for fault in faults:
        print(f"{fault.file}:{fault.line or 1}: {fault.message}")
    return 1 if faults else 0


if __name__ == "__main__":
    import sys

    sys.exit(main(*sys.argv[1:2]))
