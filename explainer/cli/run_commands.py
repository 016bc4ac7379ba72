"""`gradfix run` and `gradfix verify`, declared with typer."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Optional

import typer

Form = Enum("Form", {"text": "text", "json": "json"}, type=str)
Formed = Annotated[Form, typer.Option(help="What to print.")]
Command = Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The program and its arguments.")]
Root = Annotated[Optional[str], typer.Option(metavar="DIR", help="The project; no file outside of it changes.")]
Steps = Annotated[int, typer.Option(min=1, max=100_000, help="Optimizer steps that a verification makes.")]
Timeout = Annotated[float, typer.Option(min=1, help="Seconds for one verification.")]
_WORDS = {"ignore_unknown_options": True, "allow_interspersed_args": False}

_RUN_HELP = """Run a program; explain its failure; with --fix repair and prove it.

The program's output, input, signals and exit status are its own. With --trace a failed program is run once more with each
operation watched: the line that wrote, cut or made what failed becomes a fact; a program that ended well is watched for a few
steps. --fix traces where a trace can tell. With --fix an edit is applied, the program is run again
for a few optimizer steps under watch, and the edit is taken back unless losses and gradients are healthy; --dry-run does all of it in a copy of the project.

Of several ranks the one that failed first is explained. --timeout takes the stacks of all of them before it ends the program.
--report-dir collects what the ranks of all nodes tell; `gradfix explain FOLDER` reads it later.

\b
Examples:
  gradfix run -- python train.py --lr 1e-4
  gradfix run --timeout 3600 --report-dir /shared/reports -- torchrun --nproc-per-node 8 train.py
  gradfix run --trace -- python train.py
  gradfix run --fix -- python train.py
  gradfix run --fix --dry-run -- python train.py
  gradfix run --fix --unsafe-fixes -- torchrun --nproc-per-node 2 train.py
  gradfix run --fix --format json -- python train.py > repair.json

\b
Exit status: the program's own; 0 when repaired and verified; 2 wrong use.
"""
_VERIFY_HELP = """Run a program for a few optimizer steps, and judge losses and gradients.

Trackers are off, saves go to a scratch folder, and the project's files are put back as they were (--allow-writes lifts
that). Gradients are looked at before each step. A program that sets no seed gets one.

--save keeps the first step's gradients, --against compares with them after a change; --twin compares with the same
program run eagerly, without activation checkpointing, on copies of what autograd saves.

\b
Examples:
  gradfix verify -- python train.py
  gradfix verify --steps 20 --timeout 120 -- accelerate launch train.py
  gradfix verify --save before.json -- python train.py      then, after a change:
  gradfix verify --against before.json -- python train.py
  gradfix verify --twin --device cuda:1 -- python train.py
  gradfix verify --format json -- python -m project.train

\b
Exit status: 0 green, 1 red, 2 wrong use, 3 inconclusive.
"""


def add_commands(app: typer.Typer) -> None:
    """Declare the commands of this file."""
    app.command(help=_RUN_HELP, context_settings=_WORDS)(run)
    app.command(help=_VERIFY_HELP, context_settings=_WORDS)(verify)


def run(
    command: Command,
    fix: Annotated[bool, typer.Option("--fix", help="Try the edits of the findings until one is verified.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="Also edits that change memory, speed or training.")
    ] = False,
    trace: Annotated[
        bool, typer.Option("--trace", help="Run a failed program again under the tracer: the guilty line as a fact.")
    ] = False,
    keep_unproved: Annotated[
        bool, typer.Option("--keep-unproved", help="Keep an edit whose verification was inconclusive.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --fix: repair a copy, show the diff; the project is not touched.")
    ] = False,
    steps: Steps = 3,
    timeout: Annotated[
        Optional[float],
        typer.Option(
            min=1, help="Seconds after which the run is taken to hang; with --fix, for one verification (600)."
        ),
    ] = None,
    report_dir: Annotated[
        Optional[str], typer.Option(metavar="FOLDER", help="Collect the reports of all ranks here; nodes may share it.")
    ] = None,
    root: Root = None,
    format: Formed = Form.text,
    probe: Annotated[bool, typer.Option(help="Look at the installed packages and the GPU of this machine.")] = True,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show everything on the card.")] = False,
) -> None:
    from explainer.cli.run import RunOptions, run_and_explain

    options = RunOptions(
        command=tuple(command), fix=fix, unsafe=unsafe_fixes, trace=trace, keep_unproved=keep_unproved,
        dry_run=dry_run, steps=steps, timeout=timeout, report_dir=report_dir, root=root, format=format.value, verbose=verbose, probe=probe, knowledge=knowledge,
    )  # fmt: skip
    raise typer.Exit(run_and_explain(options))


def verify(
    command: Command,
    steps: Steps = 3,
    timeout: Timeout = 600.0,
    save: Annotated[
        Optional[str], typer.Option(metavar="REPORT", help="Write the report with the first gradients to this file.")
    ] = None,
    against: Annotated[
        Optional[str],
        typer.Option(metavar="REPORT", help="Red where the first gradients are not those of this report."),
    ] = None,
    twin: Annotated[
        bool, typer.Option("--twin", help="Red where they are not those without checkpointing and compilation.")
    ] = False,
    device: Annotated[
        str, typer.Option(metavar="DEVICE", help="auto (the freest GPU first), cpu, cuda or cuda:N.")
    ] = "auto",
    allow_writes: Annotated[bool, typer.Option("--allow-writes", help="Let the program save and track.")] = False,
    root: Root = None,
    format: Formed = Form.text,
) -> None:
    from explainer.cli.verify import VerifyOptions, verify_and_judge

    options = VerifyOptions(
        command=tuple(command), steps=steps, timeout=timeout, save=save, against=against, is_twin=twin, device=device,
        allow_writes=allow_writes, root=root, format=format.value,
    )  # fmt: skip
    raise typer.Exit(verify_and_judge(options))
