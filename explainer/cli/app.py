"""The whole command line, declared with typer: commands, options, help, completion."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Optional

import typer

from explainer.cli import completion, fix_commands, run_commands, serve_commands, triage_commands, ui_commands
from explainer.cli.options import COLOURS, FORMATS, ExplainOptions
from explainer.errors import UsageError

app = typer.Typer(
    name="gradfix",
    help="From a failed PyTorch training run to its root cause.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
Format = Enum("Format", {name: name for name in FORMATS}, type=str)  # type: ignore[misc]
Colour = Enum("Colour", {name: name for name in COLOURS}, type=str)  # type: ignore[misc]

_EXPLAIN_HELP = """Explain a failed training run from its log.

Reads FILEs (logs, notebooks, folders of them), or standard input; in a pipe the program's output passes through while
it is read.

\b
Examples:
  python train.py 2>&1 | gradfix explain
  gradfix explain train.log
  gradfix explain notebook.ipynb --verbose
  gradfix explain logs/ --format json > reports.ndjson
  gradfix explain --cause inplace/op-on-saved-tensor

\b
Exit status: 0 explained, 1 nothing recognised, 2 wrong use or unreadable input.
"""

_PROBE_HELP = """Show the environment: interpreter, packages, GPUs, driver, launcher. torch is never imported.

\b
Examples:
  gradfix probe
  gradfix probe --python .venv/bin/python
  gradfix probe --format json > env.json      then elsewhere: gradfix explain train.log --env env.json
"""

_SHOW_HELP = """Show a cause: why it happens, how to fix it.

\b
Examples:
  gradfix rules show nan/sqrt-at-zero
  gradfix rules show nan/sqrt-at-zero --web
"""


def _version(is_wanted: bool) -> None:
    if is_wanted:
        from explainer import __version__

        typer.echo(f"gradfix {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """From a failed PyTorch training run to its root cause."""


@app.command(help=_EXPLAIN_HELP)
def explain(
    files: Annotated[
        Optional[list[str]],
        typer.Argument(metavar="FILE", help="Logs, .ipynb files or folders; - for standard input."),
    ] = None,
    format: Annotated[Format, typer.Option(help="What to print.")] = Format.text,  # type: ignore[attr-defined]
    top: Annotated[int, typer.Option(min=1, max=100, help="How many findings to show in full.")] = 1,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show everything.")] = False,
    probe: Annotated[bool, typer.Option(help="Look at the installed packages and the GPU of this machine.")] = True,
    env: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="Use an environment written by `gradfix probe --format json`.")
    ] = None,
    python: Annotated[Optional[str], typer.Option(metavar="PATH", help="The interpreter that ran the program.")] = None,
    cause: Annotated[
        Optional[str],
        typer.Option(metavar="ID", help="Explain a cause of the rule base instead.", autocompletion=completion.causes),
    ] = None,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")] = None,
    root: Annotated[
        Optional[str], typer.Option(metavar="DIR", help="The project; paths are shown relative to it.")
    ] = None,
    mask: Annotated[bool, typer.Option(help="Hide tokens, keys and passwords.")] = True,
    tracebacks_only: Annotated[
        bool, typer.Option("--tracebacks-only", help="Look at tracebacks alone: faster on huge logs.")
    ] = False,
    color: Annotated[Colour, typer.Option(help="Colour the text.")] = Colour.auto,  # type: ignore[attr-defined]
    passthrough: Annotated[
        Optional[bool], typer.Option(help="Show what is read while it is read; by itself only a pipe's.")
    ] = None,
) -> None:
    from explainer.cli.explain import run_explain

    options = ExplainOptions(
        files=tuple(files or ()),
        format=format.value,
        top=top,
        verbose=verbose,
        probe=probe,
        env=env,
        python=python,
        cause=cause,
        knowledge=knowledge,
        root=root,
        mask=mask,
        tracebacks_only=tracebacks_only,
        color=color.value,
        passthrough=passthrough,
    )
    raise typer.Exit(run_explain(options))


@app.command(help=_PROBE_HELP)
def probe(
    python: Annotated[Optional[str], typer.Option(metavar="PATH", help="Another interpreter than this one.")] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    from explainer.cli.probe import run_probe

    raise typer.Exit(run_probe(python, format))


fix_commands.add_commands(app)
run_commands.add_commands(app)
serve_commands.add_commands(app)
triage_commands.add_commands(app)
ui_commands.add_commands(app)
rules = typer.Typer(
    help="Read and search the rule base.", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.add_typer(rules, name="rules")
Knowledge = Annotated[Optional[str], typer.Option(metavar="DIR", help="Add rules of your own.")]


@rules.command("list")
def list_rules(
    family: Annotated[
        Optional[str], typer.Argument(help="Only this family.", autocompletion=completion.families)
    ] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    knowledge: Knowledge = None,
) -> None:
    """List the causes.

    Example: gradfix rules list nan
    """
    from explainer.cli.rules import list_causes

    raise typer.Exit(list_causes(family, format, knowledge))


@rules.command("show", help=_SHOW_HELP)
def show(
    cause: Annotated[
        str,
        typer.Argument(metavar="ID", help="family/cause, or a part of it.", autocompletion=completion.causes),
    ],
    knowledge: Knowledge = None,
    color: Annotated[Colour, typer.Option(help="Colour the text.")] = Colour.auto,  # type: ignore[attr-defined]
    web: Annotated[
        bool, typer.Option("--web", help="Open its page, with programs and recordings, in a browser.")
    ] = False,
) -> None:
    from explainer.cli.rules import show_rule

    raise typer.Exit(show_rule(cause, knowledge, color.value, is_web=web))


@rules.command("search")
def search(
    words: Annotated[list[str], typer.Argument(help="A message, an operation, a library, a symptom; typos are fine.")],
    top: Annotated[int, typer.Option(min=1, max=100, help="How many causes to show.")] = 8,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    knowledge: Knowledge = None,
) -> None:
    """Search the causes by message, operation, library or symptom.

    Example: gradfix rules search inplce relu
    """
    from explainer.cli.rules import search_causes

    raise typer.Exit(search_causes(" ".join(words), top, format, knowledge))


@rules.command("myths")
def myths(
    slug: Annotated[Optional[str], typer.Argument(help="One of them, or a part of its name.")] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    knowledge: Knowledge = None,
) -> None:
    """Show popular remedies that are wrong or half right, each with the experiment that shows it.

    Example: gradfix rules myths retain-graph-on-inplace-error
    """
    from explainer.cli.myth import list_myths, show_myth

    raise typer.Exit(list_myths(format, knowledge) if slug is None else show_myth(slug, format, knowledge))


@rules.command("check")
def check(
    folder: Annotated[
        Optional[str], typer.Argument(metavar="[DIR]", help="Rules; those of gradfix by default.")
    ] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    """Check a rule base: format, samples, patterns, prose. Prints file:line: fault.

    Example: gradfix rules check my-rules
    """
    from explainer.cli.authoring import check_folder

    raise typer.Exit(check_folder(folder, format))


@rules.command("new")
def new(
    cause: Annotated[str, typer.Argument(metavar="FAMILY/SLUG", help="The id of the new cause.")],
    from_cluster: Annotated[
        Optional[str], typer.Option(metavar="FILE", help="For the messages of this file of a triage's clusters/.")
    ] = None,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="Into this folder of rules.")] = None,
) -> None:
    """Lay out the folder of a new cause.

    Example: gradfix rules new nan/negative-variance --knowledge my-rules
    """
    from explainer.cli.authoring import new_cause

    raise typer.Exit(new_cause(cause, knowledge, from_cluster))


@rules.command("record")
def record(
    cause: Annotated[str, typer.Argument(metavar="ID", help="family/slug.", autocompletion=completion.causes)],
    shape: Annotated[Optional[str], typer.Option(help="Only this shape.")] = None,
    python: Annotated[Optional[str], typer.Option(metavar="PATH", help="An interpreter that has torch.")] = None,
    print_only: Annotated[bool, typer.Option("--print", help="Print the recording; write no file.")] = False,
    knowledge: Annotated[Optional[str], typer.Option(metavar="DIR", help="From this folder of rules.")] = None,
) -> None:
    """Run a cause's reproducers and record what they print, with the releases that printed it.

    Example: gradfix rules record nan/sqrt-at-zero --python .venv/bin/python
    """
    from explainer.cli.authoring import record as run_record

    raise typer.Exit(run_record(cause, shape, python, knowledge, keep=not print_only))


@rules.command("interfaces")
def interfaces(
    words: Annotated[
        Optional[list[str]], typer.Argument(help="Parts of an old or new name, a class, a library; all must occur.")
    ] = None,
    format: Annotated[str, typer.Option(help="text or json.")] = "text",
    knowledge: Knowledge = None,
) -> None:
    """Search what the libraries renamed, moved, removed and added, with the releases.

    Example: gradfix rules interfaces evaluation_strategy
    """
    from explainer.cli.interface import search_interfaces

    raise typer.Exit(search_interfaces(" ".join(words or ()), format, knowledge))


@rules.command("schema")
def schema(
    name: Annotated[
        str, typer.Argument(help="report, verification, environment, cause, signature or interface.")
    ] = "report",
) -> None:
    """Print a JSON schema.

    Example: gradfix rules schema report > report.schema.json
    """
    from explainer.cli.rules import print_schema

    raise typer.Exit(print_schema(name))


def run_app(words: list[str]) -> int:
    """Run the command line on `words`; the exit status.

    Raises:
        UsageError: the words are none that it takes.
    """
    try:
        result: Any = app(args=words, prog_name="gradfix", standalone_mode=False)
    except typer.Abort:
        return 130
    except Exception as error:
        # A usage error; whether its class is click's or typer's own depends on typer's release.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        raise UsageError(describe()) from None
    return result if isinstance(result, int) else 0
