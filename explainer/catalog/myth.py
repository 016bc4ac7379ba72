"""The myths: popular remedies, each with an experiment that shows what it does to the gradients.

`myths/<slug>/` holds `myth.toml` (the statement), `experiment.py` (which ends in assertions that hold exactly where the
statement does) and `printed/<torch-version>.txt`. Nothing here runs the experiment.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from explainer.catalog.place import knowledge_folder
from explainer.catalog.source import read_toml
from explainer.errors import RuleError

MYTHS = "myths"
KEYS = ("remedy", "claim", "verdict", "shows", "instead", "since")
_LINES = 60
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class MythPage:
    """A popular remedy: what people hope of it, what it really does (with the numbers printed), what to do instead.

    `program` is its experiment, which lies at `path`; `printed` holds what it printed, by torch release.
    """

    slug: str
    remedy: str
    claim: str
    verdict: str
    shows: str
    instead: str
    since: str
    path: str
    program: str
    printed: tuple[tuple[str, str], ...]


def read_myths(extra: str | None = None) -> tuple[MythPage, ...]:
    """The myths that come with gradfix and those of the folder `extra`, by slug; where both have one, `extra`'s.

    Raises:
        RuleError: a file that is missing or no TOML, or a table without one of its keys.
    """
    found: dict[str, MythPage] = {}
    for folder in (knowledge_folder(), extra):
        if folder is not None:
            found |= {slug: _page(folder, slug) for slug in myth_slugs(folder)}
    return tuple(found[slug] for slug in sorted(found))


def myth_slugs(folder: str) -> list[str]:
    """The names of the folders under `folder`/myths."""
    place = os.path.join(folder, MYTHS)
    if not os.path.isdir(place):
        return []
    return sorted(entry.name for entry in os.scandir(place) if entry.is_dir() and entry.name[0] not in "._")


def _page(folder: str, slug: str) -> MythPage:
    place = os.path.join(folder, MYTHS, slug)
    shown = f"{MYTHS}/{slug}/myth.toml"
    raw = read_toml(os.path.join(place, "myth.toml"), shown)
    missing = [key for key in KEYS if not isinstance(raw.get(key), str)]
    if missing:
        raise RuleError(f"{shown}: no text under {missing[0]!r}")
    path = os.path.join(place, "experiment.py")
    printed = os.path.join(place, "printed")
    releases = sorted(os.listdir(printed)) if os.path.isdir(printed) else []
    return MythPage(
        slug=slug,
        path=path,
        program=_read(path, f"{MYTHS}/{slug}/experiment.py"),
        printed=tuple((name.removesuffix(".txt"), _read(os.path.join(printed, name), name)) for name in releases),
        **{key: raw[key] for key in KEYS},
    )


def _read(path: str, shown: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{shown}: cannot be read: {error}") from error


def check_myths(folder: str, named: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int | None, str]]:
    """What is wrong with the myths under `folder`: file, line, fault; `named` has the causes of each `experiment`."""
    slugs = myth_slugs(folder)
    for slug in slugs:
        yield from _check_table(folder, slug)
        yield from _check_experiment(folder, slug)
        yield from _check_printed(folder, slug)
        if slug not in named:
            yield f"{MYTHS}/{slug}/myth.toml", None, "no cause names this experiment"
    known = {*slugs, *myth_slugs(knowledge_folder())}
    for slug in sorted(set(named) - known):
        for cause in named[slug]:
            yield f"{cause}/cause.toml", None, f"experiment {slug!r} is no folder of {MYTHS}/"


def _check_table(folder: str, slug: str) -> Iterator[tuple[str, int | None, str]]:
    from pydantic import ValidationError

    from explainer.catalog.schema import MythTable

    path = f"{MYTHS}/{slug}/myth.toml"
    if not _SLUG.fullmatch(slug):
        yield path, None, "the folder's name is no slug such as `retain-graph-on-carried-state`"
    if os.path.exists(os.path.join(folder, MYTHS, slug, "cause.toml")):
        yield f"{MYTHS}/{slug}/cause.toml", None, f"{MYTHS}/ holds no causes"
    try:
        raw = read_toml(os.path.join(folder, path), path)
        MythTable.model_validate(raw)
    except RuleError as error:
        yield path, None, str(error).removeprefix(f"{path}: ")
    except ValidationError as error:
        for one in error.errors():
            yield path, None, f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
    else:
        if list(raw) != list(KEYS):
            yield path, None, f"keys out of order: want {', '.join(KEYS)}"


def _check_experiment(folder: str, slug: str) -> Iterator[tuple[str, int | None, str]]:
    path = f"{MYTHS}/{slug}/experiment.py"
    try:
        program = _read(os.path.join(folder, path), path)
        tree = ast.parse(program)
    except RuleError as error:
        yield path, None, str(error).removeprefix(f"{path}: ")
        return
    except SyntaxError as error:
        yield path, error.lineno, f"does not parse: {error.msg}"
        return
    if not any(isinstance(node, ast.Assert) for node in tree.body):
        yield path, None, "asserts nothing: it has to fail where the statement does not hold"
    if program.count("\n") >= _LINES:
        yield path, _LINES, f"has {program.count(chr(10))} lines; under {_LINES} are wanted"


def _check_printed(folder: str, slug: str) -> Iterator[tuple[str, int | None, str]]:
    from explainer.catalog.check import printed_files

    paths = printed_files(folder, f"{MYTHS}/{slug}")
    if not paths:
        yield f"{MYTHS}/{slug}/printed", None, "is empty: record what the experiment prints"
    for path in paths:
        if not _read(os.path.join(folder, path), path).startswith("# origin="):
            yield path, 1, "the first line is no header `# origin=recorded python=3.11 torch=2.13.0`"
