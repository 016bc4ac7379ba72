"""`gradfix fix`, `undo` and `history`, declared with typer."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

from explainer.cli import completion
from explainer.cli.options import COLOURS, ExplainOptions

Colour = Enum("Colour", {name: name for name in COLOURS}, type=str)  # type: ignore[misc]
Form = Enum("Form", {"text": "text", "json": "json"}, type=str)
Painted = Annotated[Colour, typer.Option(help="Colour the text.")]
Formed = Annotated[Form, typer.Option(help="What to print.")]

_FIX_HELP = """Show the edits that cure a failure, as diffs; apply one.

Explains the log (- for standard input) of a program that lies under --root, and plans edits in it. Where a log holds
several failures the last one counts. Without --apply nothing is written.

\b
Examples:
  gradfix fix train.log
  gradfix fix train.log --apply
  gradfix fix train.log --fix out-of-place --apply
  python train.py 2>&1 | gradfix fix - --apply
  gradfix fix notebook.ipynb --apply
  gradfix fix train.log --fix out-of-place --no-mask | patch -p1

\b
Exit status: 0 done or shown, 1 nothing to fix, 2 wrong use or unreadable input, 4 refused.
"""

_UNDO_HELP = """Take applied patches back, byte for byte.

A file that has changed since is left alone, and the change is shown.

\b
Examples:
  gradfix undo
  gradfix undo 3f2a9c
  gradfix undo --all

\b
Exit status: 0 done, 2 wrong use, 4 refused.
"""

_HISTORY_HELP = """List what happened to a project, oldest first: failures, patches with their ids, verifications.

Failures and verifications come from the memory (GRADFIX_NO_MEMORY=1 keeps none), patches from the journal. --forget empties
the memory; patches can be undone all the same.

\b
Examples:
  gradfix history
  gradfix history --all --format json
  gradfix history --forget --all
"""


def add_commands(app: typer.Typer) -> None:
    """Declare the commands of this file."""
    app.command(help=_FIX_HELP)(fix)
    app.command(help=_UNDO_HELP)(undo)
    app.command(help=_HISTORY_HELP)(history)


def fix(
    log: Annotated[str, typer.Argument(metavar="LOG", help="A log or .ipynb file; - for standard input.")],
    diff: Annotated[bool, typer.Option("--diff", help="Show the edits and write nothing; so by itself.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Apply the first safe edit.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Let --apply take edits that change memory, speed or training.")
    ] = False,
    fix: Annotated[
        Optional[str], typer.Option(metavar="ID", help="Only this edit.", autocompletion=completion.edits)
    ] = None,
    cause: Annotated[
        Optional[str],
        typer.Option(metavar="ID", help="Only edits for this cause.", autocompletion=completion.causes),
    ] = None,
    root: Annotated[
        Optional[str], typer.Option(metavar="DIR", help="The project; no file outside of it changes.")
    ] = None,
    format: Formed = Form.text,
    color: Painted = Colour.auto,  # type: ignore[attr-defined]
    probe: Annotated[bool, typer.Option(help="Look at the installed packages and the GPU of this machine.")] = True,
    env: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="Use an environment written by `gradfix probe --format json`.")
    ] = None,
    python: Annotated[Optional[str], typer.Option(metavar="PATH", help="The interpreter that ran the program.")] = None,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
    mask: Annotated[bool, typer.Option(help="Hide tokens, keys and passwords.")] = True,
) -> None:
    from explainer.cli.fix import FixOptions, run_fix
    from explainer.errors import UsageError

    if diff and apply:
        raise UsageError("--diff shows and --apply writes: give one of them")
    reading = ExplainOptions(
        format=format.value, probe=probe, env=env, python=python, knowledge=knowledge, mask=mask, color=color.value
    )
    options = FixOptions(
        file=log, is_applied=apply, allow_unsafe=unsafe_fixes, fix=fix, cause=cause, root=root, explain=reading
    )
    raise typer.Exit(run_fix(options))


def undo(
    patch: Annotated[
        Optional[str],
        typer.Argument(metavar="ID", help="The patch; the last one by itself.", autocompletion=completion.patches),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Every patch of the project, the last one first.")] = False,
    root: Annotated[Optional[str], typer.Option(metavar="DIR", help="The project, or a folder in it.")] = None,
    color: Painted = Colour.auto,  # type: ignore[attr-defined]
) -> None:
    from explainer.cli.undo import run_undo

    raise typer.Exit(run_undo(patch, root, color.value, is_all=all))


def history(
    root: Annotated[Optional[str], typer.Option(metavar="DIR", help="The project, or a folder in it.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every project.")] = False,
    format: Formed = Form.text,
    forget: Annotated[bool, typer.Option("--forget", help="Forget the project's failures and good runs.")] = False,
) -> None:
    from explainer.cli.history import run_forget, run_history

    raise typer.Exit(run_forget(root, is_all=all) if forget else run_history(root, format.value, is_all=all))
