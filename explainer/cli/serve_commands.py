"""`gradfix mcp`, declared with typer."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Optional

import typer

_MCP_HELP = """Serve agents over the Model Context Protocol, on standard input and output.

Tools: explain, probe, rules, fix (as diffs), verify. Nothing is written and no program is run unless it is allowed here:
--allow-apply adds apply and undo, --allow-run lets verify run the programs that the agent names. Files outside of --root
are neither read nor written. Needs the extra `mcp`.

\b
Examples:
  gradfix mcp --root .
  gradfix mcp --root ~/project --allow-apply --allow-run
  claude mcp add gradfix -- gradfix mcp --root .
"""


def add_commands(app: typer.Typer) -> None:
    """Declare the commands of this file."""
    app.command(help=_MCP_HELP)(mcp)


def mcp(
    root: Annotated[
        Optional[str], typer.Option(metavar="DIR", help="The project; nothing outside of it is read or written.")
    ] = None,
    allow_apply: Annotated[
        bool, typer.Option("--allow-apply", help="Let the agent apply edits to files, and undo them.")
    ] = False,
    allow_run: Annotated[bool, typer.Option("--allow-run", help="Let the agent run programs to verify them.")] = False,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
) -> None:
    from explainer.cli.screen import is_terminal
    from explainer.integrations.mcp_server import Bounds, serve

    if is_terminal(sys.stdin):
        print("gradfix: this speaks JSON-RPC with an agent that starts it; Ctrl-D ends it", file=sys.stderr)
    serve(Bounds(root=root or os.getcwd(), allow_apply=allow_apply, allow_run=allow_run, knowledge=knowledge))
