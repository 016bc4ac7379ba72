"""`gradfix ui`, declared with typer."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand

_HELP = """Open the interface: findings, source, diffs, apply, live verification, undo.

From a log, from a pipe (-; the keyboard is then the terminal's), or with a command that is run inside. Nothing is written to
the program without a key. Where the terminal cannot show it, the plain text of explain or run is printed instead.

\b
Examples:
  gradfix ui train.log
  python train.py 2>&1 | gradfix ui -
  gradfix ui -- python train.py --lr 1e-4
  gradfix ui --web train.log

\b
Keys: f fix, a apply, v verify, u undo, t trace, e editor, / search, ? help, q quit.
"""
_COMMAND = "gradfix.command"


class _WithCommand(TyperCommand):
    """Keeps what stands behind `--` apart: it is the program's command, not a FILE."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = tuple(args[at + 1 :])
            args = args[:at]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        formatter.write_usage(ctx.command_path, "[OPTIONS] [FILE | -] [-- CMD...]")


def add_commands(app: typer.Typer) -> None:
    """Declare the command of this file."""
    app.command(cls=_WithCommand, help=_HELP)(ui)


def ui(
    ctx: typer.Context,
    file: Annotated[
        Optional[str], typer.Argument(metavar="FILE", help="A log or .ipynb file; - for standard input.")
    ] = None,
    root: Annotated[
        Optional[str], typer.Option(metavar="DIR", help="The project; no file outside of it changes.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, max=100_000, help="Optimizer steps that a verification makes.")] = 3,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for one verification.")] = 600.0,
    probe: Annotated[bool, typer.Option(help="Look at the installed packages and the GPU of this machine.")] = True,
    env: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="Use an environment written by `gradfix probe --format json`.")
    ] = None,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
    mask: Annotated[bool, typer.Option(help="Hide tokens, keys and passwords.")] = True,
    web: Annotated[bool, typer.Option("--web", help="Serve it to a browser on this machine.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port of --web.")] = 8000,
) -> None:
    from explainer.cli.ui import UiOptions, run_ui

    options = UiOptions(
        file=file, command=tuple(ctx.meta.get(_COMMAND, ())), root=root, steps=steps, timeout=timeout, probe=probe, env=env,
        knowledge=knowledge, mask=mask, web=web, port=port,
    )  # fmt: skip
    raise typer.Exit(run_ui(options))
