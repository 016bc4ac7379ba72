"""`gradfix triage`, declared with typer."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

Form = Enum("Form", {"text": "text", "json": "json"}, type=str)
Engine = Enum("Engine", {"local": "local", "ray": "ray"}, type=str)

_HELP = """Explain many logs: what breaks, how often, on what, where.

Reads logs and notebooks, plain, gzip or zstandard: files, folders, globs, and addresses that fsspec knows (s3://, gs://, hf://;
extra `fleet`). One row a failure. With --out: rows.parquet, report.html, and clusters/ with what no rule knows, each a file for
`gradfix rules new --from-cluster`. What cannot be read gets a row that says so.

Ctrl-C keeps what is done under --out; --resume goes on from there, and later reads only what is new, has changed or could not
be read. --engine ray runs on this machine, or on the cluster that RAY_ADDRESS names (extra `ray`).

\b
Examples:
  gradfix triage logs/
  gradfix triage 'runs/*/rank*.log.gz' --out triage
  gradfix triage s3://bucket/jobs/ --out triage --resume
  RAY_ADDRESS=auto gradfix triage s3://bucket/jobs/ --engine ray --out triage
  gradfix triage logs/ --format json > rows.ndjson

\b
Exit status: 0, 5 when some inputs could not be read, 2 wrong use, 130 interrupted.
"""


def add_commands(app: typer.Typer) -> None:
    """Declare the commands of this file."""
    app.command(help=_HELP)(triage)


def triage(
    inputs: Annotated[list[str], typer.Argument(metavar="PATH|GLOB|URL...", help="Logs, folders, globs, addresses.")],
    engine: Annotated[Engine, typer.Option(help="Processes of this machine, or Ray.")] = Engine.local,
    out: Annotated[Optional[str], typer.Option(metavar="FOLDER", help="Where to write rows, report, clusters.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the triage in --out.")] = False,
    workers: Annotated[
        Optional[int], typer.Option(min=1, max=1024, help="How many processes; by default one a processor.")
    ] = None,
    format: Annotated[Form, typer.Option(help="A table, or a line of JSON for each row.")] = Form.text,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
) -> None:
    from explainer.cli.triage import run_triage
    from explainer.fleet.triage import Request

    request = Request(
        words=tuple(inputs), engine=engine.value, out=out, resume=resume, workers=workers, knowledge=knowledge
    )
    raise typer.Exit(run_triage(request, format.value))
