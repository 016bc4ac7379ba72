"""The reference of the command line, from its own `--help`, and of the library, from its docstrings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WIDTH = "96"
_MADE = {
    "GradfixCallback": "TrainerHooks",
    "LightningCallback": "LightningHooks",
}  # derived from them when first asked for
_MODEL = ("report", "finding", "incident", "environment")


def command_page() -> str:
    """Every command with the help that it prints."""
    from typer.testing import CliRunner

    from explainer.cli.app import app

    lines = ["# Commands", "", "What `--help` prints, for every command.", ""]
    for words in commands():
        result = CliRunner().invoke(app, [*words, "--help"], prog_name="gradfix", env={"COLUMNS": WIDTH}, color=False)
        if result.exit_code != 0:
            raise RuntimeError(f"gradfix {' '.join(words)} --help: {result.output}")
        lines += [f"## {' '.join(('gradfix', *words))}", "", "```text", result.output.strip("\n"), "```", ""]
    return "\n".join(lines)


def commands() -> list[tuple[str, ...]]:
    """The words of every command, the program itself first: `()`, `("explain",)`, `("rules", "list")`."""
    return [words for words, _ in declared()]


def declared() -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Every command as declared: its words and its options."""
    import typer

    from explainer.cli.app import app

    yield from _walk(typer.main.get_command(app), ())


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    named = [option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)]
    yield words, frozenset(option for option in named if option.startswith("-")) | {"--help", "-h"}
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk(inner, (*words, name))


def library_page() -> str:
    """The public names of `gradfix`, and the dataclasses that a report is made of."""
    import explainer
    import gradfix

    lines = ["# Python", "", "The names that `gradfix` exports, then what a report holds.", ""]
    public = [name for name in sorted(gradfix.__all__, key=str.lower) if not name.startswith("_")]
    homes = {name: getattr(gradfix, name).__module__ for name in public}
    lines += [_directive(f"{home}.{name}") for name, home in homes.items() if not home.startswith("explainer.model")]
    lines += ["## In trainers", ""]
    lines += [_directive(f"{explainer._HOMES[name]}.{hooks}", level=3, heading=name) for name, hooks in _MADE.items()]  # noqa: SLF001
    lines += ["## What a report holds", ""]
    lines += [_directive(f"explainer.model.{name}", level=3) for name in _MODEL]
    return "\n".join(lines)


def _directive(name: str, level: int = 2, heading: str = "") -> str:
    named = f"      heading: {heading}\n" if heading else ""
    return f"::: {name}\n    options:\n      heading_level: {level}\n{named}"
