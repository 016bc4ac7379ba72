"""The manual page `gradfix(1)`, from the help of the command line: `python -m tools.man_page | man -l -`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from explainer import __version__

ENVIRONMENT = {
    "GRADFIX_STATE_DIR": "Where the journal of applied patches and the memory lie; by default in the user's state folder.",
    "GRADFIX_NO_MEMORY": "Set, failures, fixes and good runs are not remembered.",
    "GRADFIX_DEBUG": "Set, a fault of gradfix itself is shown with its traceback.",
    "NO_COLOR, FORCE_COLOR": "Never or always colour.",
    "VIRTUAL_ENV": "The environment whose packages are looked at.",
}


def man_page() -> str:
    """The page as roff."""
    import typer

    from explainer.cli.app import app

    root: Any = typer.main.get_command(app)
    lines = [
        f'.TH GRADFIX 1 "" "gradfix {__version__}" "User Commands"',
        ".SH NAME",
        f"gradfix \\- {_text((root.help or '').strip().rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B gradfix",
        ".I COMMAND",
        "[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...",
        ".SH COMMANDS",
    ]
    for words, command in _walk(root, ("gradfix",)):
        lines += [f".SS {_text(' '.join(words))}", *_help(command.help or ""), *_parameters(command)]
    lines.append(".SH ENVIRONMENT")
    for name, says in ENVIRONMENT.items():
        lines += [".TP", f".B {name}", _text(says)]
    lines += [".SH SEE ALSO", "https://gradfix.readthedocs.io/"]
    return "\n".join(lines) + "\n"


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with its words."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        yield from _walk(one, (*words, name))


def _help(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that are marked keep their lines."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        lines = paragraph.split("\n")
        if lines[0].strip() == "\b":
            yield from (".PP", ".nf", *(_text(line) for line in lines[1:]), ".fi")
        else:
            yield from (".PP", *(_text(line.strip()) for line in lines))


def _parameters(command: Any) -> Iterator[str]:
    """The arguments and options of a command, each with what it means."""
    for one in command.params:
        says = one.help or ""
        if one.param_type_name == "argument":
            yield from (".TP", f"\\fI{_text(one.metavar or one.name.upper())}\\fR", _text(says or "See above."))
            continue
        names = ", ".join(f"\\fB{_text(name)}\\fR" for name in (*one.opts, *one.secondary_opts))
        value = "" if one.is_flag else f" \\fI{_text(_metavar(one))}\\fR"
        yield from (".TP", f"{names}{value}", _text(says or "See above."))


def _metavar(option: Any) -> str:
    """What stands for an option's value: its name for it, its choices, or the option's own name."""
    choices = getattr(
        getattr(option, "type", None), "choices", None
    )  # typer 0.29 has options of its own, without a type
    if choices:
        return "|".join(str(getattr(one, "value", one)) for one in choices)
    return str(option.metavar or option.name.upper())


def _text(text: str) -> str:
    """Text as roff takes it: no control lines, no escapes, hyphens that can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", plain)


if __name__ == "__main__":
    sys.stdout.write(man_page())
