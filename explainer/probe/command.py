"""What the words of a command say: which program it runs, with which interpreter, with which arguments."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from explainer.digest import digest
from explainer.render.mask import mask_text, mask_value

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?")
_SCRIPTS = (".py", ".ipynb", ".sh", ".bash", ".slurm", ".sbatch")
# Modules that run a program which comes after them among the words.
_LAUNCHERS = frozenset((
    "torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner", "coverage",
    "cProfile", "pdb", "trace",
))  # fmt: skip
_MODULE = re.compile(r"[A-Za-z_][\w.]*")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The program of a command: its name under the project, its file where it has one there, and the words around it.

    `arguments` hold no secrets and no code; paths in them are relative to the project or to the home folder.
    """

    program: str
    file: str | None
    arguments: tuple[str, ...]


def read_command(command: Sequence[str], root: str) -> Ran:
    """The program that a command runs in the folder `root`.

    Example:
        >>> read_command(["torchrun", "--nproc-per-node", "2", "train.py", "--lr", "0.1"], "/project").arguments
        ('--nproc-per-node', '2', '--lr', '0.1')
    """
    words = list(command)
    for index, word in enumerate(words):
        if word == "-c" and _is_interpreted(
            words[:index]
        ):  # a program among the words: it is code, of which only a digest is kept
            code = digest(" ".join(words[index + 1 : index + 2]))
            return Ran(
                program=f"-c {code}", file=None, arguments=_arguments([*words[1:index], *words[index + 2 :]], root)
            )
        if (
            word == "-m"
            and _MODULE.fullmatch(" ".join(words[index + 1 : index + 2]))
            and words[index + 1] not in _LAUNCHERS
        ):
            name = words[index + 1]
            rest = [*words[1:index], *words[index + 2 :]]
            return Ran(program=f"-m {name}", file=_module_file(name, root), arguments=_arguments(rest, root))
        if word.endswith(_SCRIPTS) and not word.startswith("-"):
            path = os.path.realpath(os.path.join(root, word))
            if os.path.isfile(path) or word.endswith(".py"):
                rest = [*words[1:index], *words[index + 1 :]]
                return Ran(program=_shown_path(path, root), file=path, arguments=_arguments(rest, root))
    name = os.path.basename(words[0]) if words else ""
    return Ran(program=name, file=None, arguments=_arguments(words[1:], root))


def _is_interpreted(before: Sequence[str]) -> bool:
    """Whether `-c` after these words is that of Python or a shell."""
    names = [os.path.basename(word) for word in before]
    return any(_PYTHON.fullmatch(name) or name in _SHELLS for name in names)


def find_python(command: Sequence[str]) -> str | None:
    """The interpreter that a command runs: named in it, or that of a script of its; None where the words do not tell."""
    for word in command[:12]:
        if _PYTHON.fullmatch(os.path.basename(word)):
            return shutil.which(word)
    first = shutil.which(command[0]) if command else None
    if first is None:
        return None
    try:
        with open(first, "rb") as file:
            line = file.readline(400).decode("utf-8", "replace")
    except OSError:
        return None
    named = line[2:].split()[:1] if line.startswith("#!") else []
    is_python = bool(named) and _PYTHON.fullmatch(os.path.basename(named[0]))
    return named[0] if is_python and os.path.isfile(named[0]) else None


def shorten(text: str, root: str) -> str:
    """A text with the project's folder and the home folder taken out of the paths in it."""
    home = os.path.expanduser("~")
    text = text.replace(root.rstrip(os.sep) + os.sep, "")
    return text.replace(home + os.sep, "~" + os.sep) if len(home) > 1 else text


def _arguments(words: Sequence[str], root: str) -> tuple[str, ...]:
    """The words without secrets: also those that an option's name makes one."""
    found: list[str] = []
    option = ""
    for word in words[:200]:
        name, sign, value = word.partition("=")
        if word.startswith("-") or sign:
            masked = f"{name}={mask_value(name, value)}" if sign else word
            option = "" if sign else name
        else:
            masked = mask_value(option, word)
            option = ""
        found.append(shorten(mask_text(masked), root)[:200])
    return tuple(found)


def _module_file(name: str, root: str) -> str | None:
    parts = name.split(".")
    for folder in (root, os.path.join(root, "src")):
        for path in (os.path.join(folder, *parts) + ".py", os.path.join(folder, *parts, "__main__.py")):
            if os.path.isfile(path):
                return os.path.realpath(path)
    return None


def _shown_path(path: str, root: str) -> str:
    inside = root.rstrip(os.sep) + os.sep
    return path.removeprefix(inside) if path.startswith(inside) else os.path.basename(path)
